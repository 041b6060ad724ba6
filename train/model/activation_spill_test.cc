// On the stand-in for an accelerator, as nothing moves on a CPU.
#include "train/model/activation_spill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/local_step.h"
#include "train/testing/cases.h"
#include "train/testing/sharded.h"
#include "train/testing/standin/standin.h"

namespace remuda::train {
namespace {

using testing::configure_standin;
using ::testing::HasSubstr;
using testing::ModelCase;
using testing::WaitKind;

constexpr size_t kEverything = 0;  // however small it is

/// A model on the stand-in, whose activations are moved.
struct Spilled {
  ModelCase model_case;
  const DeviceOps ops = DeviceOps::open(torch::Device(torch::kXPU, 0)).value();
  const std::unique_ptr<Model> model = testing::make_seeded(model_case, torch::kFloat);
  const Batch batch = testing::make_batch(model_case, 6, 1, torch::kFloat);
  ActivationSpill spill{ops, kEverything};

  explicit Spilled(ModelCase one) : model_case(std::move(one)) { model->to(ops.device()); }

  LossSum forward(bool moves = true) {
    const auto input = batch.input.to(ops.device());
    std::vector<torch::Tensor> kept = model->parameters();
    for (const torch::Tensor& buffer : model->buffers()) kept.push_back(buffer);
    const ActivationSpill::Scope scope(moves ? &spill : nullptr, kept);
    return testing::case_loss(model_case, *model, {input, batch.target});
  }

  /// On the host.
  std::vector<torch::Tensor> gradients(bool moves = true) {
    for (const auto& parameter : model->parameters()) parameter.mutable_grad() = torch::Tensor();
    forward(moves).sum.backward();
    std::vector<torch::Tensor> copies;
    for (const auto& parameter : model->parameters()) copies.push_back(parameter.grad().to(torch::kCPU));
    return copies;
  }
};

class Activations : public ::testing::TestWithParam<ModelCase> {
 protected:
  ~Activations() override { configure_standin(0, {}); }
};

INSTANTIATE_TEST_SUITE_P(Models, Activations, ::testing::ValuesIn(testing::model_cases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Activations, ThatWereOnTheHostGiveTheSameBits) {
  Spilled run(GetParam());
  const auto expected = run.gradients(false);
  EXPECT_EQ(run.spill.cost().bytes, 0);
  configure_standin(0, {.random_delay_s = 2e-4});
  for (int pass = 0; pass < 3; ++pass) EXPECT_TRUE(testing::same_bits(run.gradients(), expected)) << pass;
  EXPECT_EQ(run.spill.cost().passes, 3);
  EXPECT_GT(run.spill.cost().bytes, 0);
}

// Until somebody waits, the copies do nothing, or what is computed does nothing.
TEST_P(Activations, AreWaitedFor) {
  const auto expected = Spilled(GetParam()).gradients(false);
  for (const WaitKind kind : {WaitKind::copies_for_compute, WaitKind::compute_for_copies}) {
    const bool for_compute = kind == WaitKind::copies_for_compute;
    const auto gradients = [&](int ignored) {
      Spilled run(GetParam());
      configure_standin(0, {.lazy_compute = for_compute, .lazy_copies = !for_compute});
      testing::watch_waits(0, kind, ignored);
      auto found = run.gradients();
      configure_standin(0, {});
      return found;
    };
    EXPECT_TRUE(testing::same_bits(gradients(-1), expected));
    const int count = testing::watch_waits(0, kind, -1);
    ASSERT_GE(count, 3);
    int needed = 0;
    for (int ignored = 0; ignored < count; ++ignored)
      needed += testing::same_bits(gradients(ignored), expected) ? 0 : 1;
    EXPECT_GE(needed, count / 2) << "of " << count << (for_compute ? " for compute" : " for copies");
  }
}

class ActivationSpillTest : public ::testing::Test {
 protected:
  ~ActivationSpillTest() override { configure_standin(0, {}); }

  torch::Tensor weight(int64_t rows, int64_t columns) const {
    return torch::full({rows, columns}, 0.01, torch::device(ops_.device())).requires_grad_();
  }
  double moved() { return spill_.cost().bytes; }

  const DeviceOps ops_ = DeviceOps::open(torch::Device(torch::kXPU, 0)).value();
  ActivationSpill spill_{ops_, kEverything};
};

// Of 16 layers 4 are on the device at a time: two on their way, what is computed, and its gradient.
TEST_F(ActivationSpillTest, TakesTheRoomOfAFewLayers) {
  constexpr int64_t kRows = 4096, kColumns = 8;
  constexpr size_t kLayer = kRows * kColumns * sizeof(float);
  const torch::Tensor w = weight(kColumns, kColumns);
  const auto step = [&](bool moves) {
    w.mutable_grad() = torch::Tensor();
    torch::Tensor x = torch::ones({kRows, kColumns}, torch::device(ops_.device()));
    {
      const ActivationSpill::Scope scope(moves ? &spill_ : nullptr, {w});
      for (int layer = 0; layer < 16; ++layer) x = x.mm(w).tanh();
    }
    x.sum().backward();
    return w.grad().to(torch::kCPU);
  };
  const torch::Tensor expected = step(false);
  configure_standin(0, {.memory_cap = testing::standin_memory(0) + 9 * kLayer});
  EXPECT_ANY_THROW(step(false));
  EXPECT_TRUE(step(true).equal(expected));
}

TEST_F(ActivationSpillTest, MovesWhatSeveralOperatorsSaveOnce) {
  const torch::Tensor w = weight(8, 8), x = torch::arange(32 * 8, torch::kFloat).view({32, 8}).to(ops_.device());
  const auto gradient = [&](bool moves) {
    w.mutable_grad() = torch::Tensor();
    const ActivationSpill::Scope scope(moves ? &spill_ : nullptr, {w});
    const torch::Tensor y = x.mm(w);  // saves x, and a view of w
    (y.narrow(0, 0, 16) * y.narrow(0, 16, 16)).sum().backward();
    return w.grad().to(torch::kCPU);
  };
  const torch::Tensor expected = gradient(false);
  EXPECT_TRUE(gradient(true).equal(expected)) << "each part of y in its place";
  EXPECT_EQ(moved(), double(x.nbytes() + x.nbytes()));
}

TEST_F(ActivationSpillTest, LeavesWhatIsSmallWhereItIs) {
  ActivationSpill spill(ops_, 32 * 8 * sizeof(float) + 1);
  const torch::Tensor w = weight(8, 8);
  {
    const ActivationSpill::Scope scope(&spill, {w});
    torch::ones({32, 8}, torch::device(ops_.device())).mm(w).sum().backward();
  }
  EXPECT_EQ(spill.cost().bytes, 0);
}

// As in libtorch. The copy to the host may have old values, new ones or both.
TEST_F(ActivationSpillTest, WhatIsSavedMayNotBeChanged) {
  const torch::Tensor w = weight(8, 8);
  for (const bool stays : {false, true}) {
    torch::Tensor x = torch::ones({4, 8}, torch::device(ops_.device()));
    const ActivationSpill::Scope scope(&spill_, stays ? std::vector{w, x} : std::vector{w});
    const torch::Tensor loss = x.mm(w).sum();
    x.add_(1);
    try {
      loss.backward();
      ADD_FAILURE() << "computed with other values";
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), HasSubstr("was changed in place"));
    }
  }
}

TEST_F(ActivationSpillTest, WhatWasChangedIsAnotherTensor) {
  const torch::Tensor w = weight(8, 8);
  torch::Tensor x = torch::full({4, 8}, 2.0, torch::device(ops_.device()));
  const ActivationSpill::Scope scope(&spill_, {w});
  const torch::Tensor unused = x.mm(w);
  x.mul_(3);
  const torch::Tensor other = torch::ones({4, 8}, torch::device(ops_.device())).mm(w).mm(w).mm(w);  // x is gone then
  x.mm(w).sum().backward();
  EXPECT_TRUE(w.grad().to(torch::kCPU).equal(torch::full({8, 8}, 24.0)));
}

TEST_F(ActivationSpillTest, AGraphThatIsNeverUsedLeavesNothing) {
  configure_standin(0, {.random_delay_s = 1e-3});
  const torch::Tensor w = weight(8, 8);
  const size_t before = testing::standin_memory(0);
  const auto forward = [&] {
    const ActivationSpill::Scope scope(&spill_, {w});
    torch::Tensor x = torch::ones({32, 8}, torch::device(ops_.device()));
    for (int layer = 0; layer < 5; ++layer) x = x.mm(w);
    return x.sum();
  };
  testing::watch_waits(0, WaitKind::compute_for_copies, -1);
  forward();
  EXPECT_EQ(testing::standin_memory(0), before);
  EXPECT_EQ(testing::watch_waits(0, WaitKind::compute_for_copies, -1), 5)
      << "none is read when it is another's already";
  const auto gradient = [&] {
    w.mutable_grad() = torch::Tensor();
    forward().backward();
    return w.grad().to(torch::kCPU);
  };
  const torch::Tensor first = gradient();
  EXPECT_TRUE(gradient().equal(first));
}

// Until somebody waits, copies do nothing: then they would write to memory that others have been given.
TEST_F(ActivationSpillTest, WhatCameAheadOfItsUseDoesNoHarmWhereNobodyUsesIt) {
  const torch::Tensor w = weight(8, 8);
  torch::Tensor unused, x = torch::ones({32, 8}, torch::device(ops_.device()));
  {
    const ActivationSpill::Scope scope(&spill_, {w});
    unused = torch::full({32, 8}, 2.0, torch::device(ops_.device())).mm(w);
    for (int layer = 0; layer < 4; ++layer) x = x.mm(w);
  }
  configure_standin(0, {.lazy_copies = true});
  x.sum().backward();
  unused = torch::Tensor();
  std::vector<torch::Tensor> others;
  for (int i = 0; i < 20; ++i) others.push_back(torch::full({32, 8}, 7.0, torch::device(ops_.device())));
  configure_standin(0, {});
  for (const torch::Tensor& other : others) EXPECT_TRUE(other.to(torch::kCPU).eq(7).all().item<bool>());
}

TEST_F(ActivationSpillTest, GivesBackMemoryOfTheHostThatLaterPassesDoNotNeed) {
  const torch::Tensor w = weight(8, 8);
  const auto pass = [&](int64_t rows) {
    torch::Tensor x = torch::ones({rows, 8}, torch::device(ops_.device()));
    {
      const ActivationSpill::Scope scope(&spill_, {w});
      for (int layer = 0; layer < 5; ++layer) x = x.mm(w);
    }
    x.sum().backward();
  };
  const size_t before = testing::standin_pinned_bytes();
  for (int i = 0; i < 3; ++i) pass(1024);
  const size_t large = testing::standin_pinned_bytes() - before;
  EXPECT_GE(large, 5 * 1024 * 8 * sizeof(float));
  EXPECT_LT(large, 10 * 1024 * 8 * sizeof(float)) << "each pass has that of the one before";
  for (int i = 0; i < 2; ++i) pass(32);
  EXPECT_LT(testing::standin_pinned_bytes() - before, large / 2);
}

// Moved, it would come back as what lies behind it.
TEST_F(ActivationSpillTest, LeavesViewsThatReadTheirMemoryInAnotherWayWhereTheyAre) {
  const torch::Tensor w = weight(4, 8),
                      z = torch::ones({4, 8}, torch::dtype(torch::kComplexFloat).device(ops_.device()));
  const torch::Tensor x = torch::ones({4, 8}, torch::device(ops_.device())), y = z.detach().clone().requires_grad_();
  const ActivationSpill::Scope scope(&spill_, {w, y});
  const torch::Tensor negative = at::_neg_view(x) * w, conjugate = z.conj() * y;
  EXPECT_EQ(moved(), 0);
  const torch::Tensor plain = x * w;
  EXPECT_EQ(moved(), double(x.nbytes()));
}

TEST_F(ActivationSpillTest, OnACpuNothingMoves) {
  const DeviceOps ops = DeviceOps::open(torch::kCPU).value();
  ActivationSpill spill(ops, kEverything);
  const torch::Tensor w = torch::ones({8, 8}).requires_grad_();
  {
    const ActivationSpill::Scope scope(&spill, {w});
    torch::ones({4, 8}).mm(w).sum().backward();
  }
  EXPECT_EQ(spill.cost().passes, 0);
  EXPECT_EQ(spill.seconds_per_byte(), 0);
}

TEST_F(ActivationSpillTest, KnowsHowLongACopyTakes) { EXPECT_GT(spill_.seconds_per_byte(), 0); }

}  // namespace
}  // namespace remuda::train
