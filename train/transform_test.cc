#include "train/transform.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <thread>
#include <torch/script.h>

#include "base/testing/scratch_folder.h"
#include "train/testing/data_files.h"

namespace remuda::train {
namespace {

using ::testing::HasSubstr;

constexpr int kTransformed = 6;

class TransformTest : public ::testing::Test {
 protected:
  TransformTest() {
    testing::ModelCase model_case;
    model_case.input = {1, 4, 5, testing::kLabels, 0};
    spec_ = testing::write_samples(folder_, model_case, kTransformed);
    spec_.test = spec_.train;
    plain_.emplace(Samples::open(spec_, data::Split::train, {}).value());
  }

  /// A file with this program.
  std::string file(const std::string& source) {
    torch::jit::Module module("Transform");
    module.register_attribute("training", c10::BoolType::get(), true);
    module.define(source);
    module.save(folder_.path("transform.pt"));
    return folder_.path("transform.pt");
  }
  Result<Samples> open(const std::string& source, data::Split split = data::Split::train, uint64_t seed = 1) {
    spec_.transform = file(source);
    return Samples::open(spec_, split, {}, seed);
  }
  std::string refusal(const std::string& source) {
    const auto samples = open(source);
    if (samples) return "none";
    EXPECT_EQ(samples.error().kind, ErrorKind::usage);
    const std::string path = "the transform " + folder_.path("transform.pt") + " ";
    EXPECT_THAT(samples.error().message, ::testing::StartsWith(path));
    return samples.error().message.substr(path.size());
  }
  static torch::Tensor sample(const Samples& samples, uint64_t index, uint64_t epoch = 0) {
    const auto& input = samples.model_input();
    const torch::Tensor values = torch::empty({input.channels, input.height, input.width});
    std::array<int64_t, 1> target{};
    const auto written =
        samples.set().write(index, epoch, {static_cast<std::byte*>(values.data_ptr()), values.nbytes()},
                            std::as_writable_bytes(std::span(target)));
    EXPECT_TRUE(written) << (written ? "" : written.error().message);
    return values;
  }

  ScratchFolder folder_;
  job::DataSpec spec_;
  std::optional<Samples> plain_;
};

TEST_F(TransformTest, GivesWhatTheModelTakes) {
  const Samples samples =
      open("def forward(self, image):\n  return torch.cat([image * 2, image], 0).narrow(2, 1, 3)\n").value();
  const ModelInput& input = samples.model_input();
  EXPECT_EQ(std::tuple(input.channels, input.height, input.width, input.classes),
            std::tuple(2, 4, 3, plain_->model_input().classes));
  const std::vector<uint64_t> indices{4, 1};
  const Batch batch = samples.gather(indices).value(), plain = plain_->gather(indices).value();
  EXPECT_EQ(batch.input.sizes(), (std::vector<int64_t>{2, 2, 4, 3}));
  EXPECT_TRUE(batch.input.equal(torch::cat({plain.input * 2, plain.input}, 1).narrow(3, 1, 3)));
  EXPECT_TRUE(batch.target.equal(plain.target));
}

TEST_F(TransformTest, RandomNumbersDependOnSeedEpochAndSample) {
  const std::string source = "def forward(self, image, random):\n  return random.view(1, 8, 8)\n";
  const Samples samples = open(source).value(), same = open(source).value(),
                other = open(source, data::Split::train, 2).value();
  std::set<float> first_numbers;
  for (uint64_t epoch = 1; epoch <= 3; ++epoch)
    for (uint64_t index = 0; index < kTransformed; ++index) {
      const auto numbers = sample(samples, index, epoch);
      EXPECT_TRUE(numbers.ge(0).logical_and(numbers.lt(1)).all().item<bool>());
      EXPECT_TRUE(numbers.equal(sample(same, index, epoch)));
      EXPECT_FALSE(numbers.equal(sample(other, index, epoch)));
      first_numbers.insert(numbers.view({-1})[0].item<float>());
    }
  EXPECT_EQ(first_numbers.size(), size_t{3 * kTransformed});
  torch::Tensor all = torch::empty({0});
  for (uint64_t index = 0; index < kTransformed; ++index) all = torch::cat({all, sample(samples, index, 1).view({-1})});
  EXPECT_NEAR(all.mean().item<double>(), 0.5, 5 * std::sqrt(1.0 / 12 / (64 * kTransformed))) << "5 standard errors";
}

TEST_F(TransformTest, KnowsWhatTheSampleIsFor) {
  const std::string source = "def forward(self, image):\n  if self.training:\n    return image + 1\n  return image\n";
  const auto plain = sample(*plain_, 2);
  EXPECT_TRUE(sample(open(source).value(), 2).equal(plain + 1));
  EXPECT_TRUE(sample(open(source, data::Split::test).value(), 2).equal(plain));
}

// What it changes in place is its own image, not the next one's.
TEST_F(TransformTest, MayChangeTheImageInPlace) {
  const Samples samples = open("def forward(self, image):\n  return image.mul_(2)\n").value();
  for (uint64_t index : {3, 0, 3}) EXPECT_TRUE(sample(samples, index).equal(sample(*plain_, index) * 2));
}

TEST_F(TransformTest, OnManyThreadsGivesTheSame) {
  const Samples samples = open("def forward(self, image, random):\n  return image * random[3]\n").value();
  std::vector<torch::Tensor> expected;
  for (uint64_t index = 0; index < kTransformed; ++index) expected.push_back(sample(samples, index, 2));
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round)
        for (uint64_t index = 0; index < kTransformed; ++index)
          EXPECT_TRUE(sample(samples, index, 2).equal(expected[index]));
    });
}

// A sum over several threads is rounded in another way than one over a single thread.
TEST_F(TransformTest, TheBitsDoNotDependOnTheNumberOfThreads) {
  const std::string source =
      "def forward(self, image):\n  values = torch.arange(300000.0).sin() * image[0, 0, 0]\n"
      "  return values.mean().view(1, 1, 1)\n";
  const Samples samples = open(source).value();
  std::vector<torch::Tensor> given;
  for (const int threads : {1, 2, 5}) {
    at::set_num_threads(threads);
    given.push_back(sample(samples, 1));
    EXPECT_EQ(at::get_num_threads(), threads) << "for what the thread does besides";
  }
  EXPECT_TRUE(given[1].equal(given[0]));
  EXPECT_TRUE(given[2].equal(given[0]));
}

TEST_F(TransformTest, DrawingRandomNumbersItselfIsRefusedAndLeavesTheGenerator) {
  torch::manual_seed(5);
  const auto expected = torch::rand({3});
  torch::manual_seed(5);
  EXPECT_THAT(refusal("def forward(self, image):\n  return image + torch.rand_like(image)\n"),
              HasSubstr("draws random numbers of its own, which no run could repeat"));
  EXPECT_TRUE(torch::rand({3}).equal(expected));
}

TEST_F(TransformTest, WhatItMustTakeAndGiveIsSaid) {
  EXPECT_EQ(refusal("def forward(self, a, b, c):\n  return a\n"),
            "must have a method forward(image) or forward(image, random)");
  EXPECT_EQ(refusal("def other(self, a):\n  return a\n"),
            "must have a method forward(image) or forward(image, random)");
  EXPECT_EQ(refusal("def forward(self, image):\n  return 3\n"), "gives a Int; it must give a tensor");
  EXPECT_EQ(refusal("def forward(self, image):\n  return image.double()\n"),
            "gives Double of shape [1, 4, 5]; it must give Float of shape [channels, height, width]");
  EXPECT_EQ(refusal("def forward(self, image):\n  return image[0]\n"),
            "gives Float of shape [4, 5]; it must give Float of shape [channels, height, width]");
  EXPECT_THAT(refusal("def forward(self, image):\n  return image.view(3, 3, 3)\n"), HasSubstr("fails on image 0: "));
  spec_.transform = folder_.write("transform.pt", "hello");
  EXPECT_THAT(Samples::open(spec_, data::Split::train, {}).error().message,
              HasSubstr("cannot be loaded as TorchScript"));
}

TEST_F(TransformTest, AllImagesMustBecomeOneShape) {
  const Samples samples = open(
                              "def forward(self, image, random):\n"
                              "  return image.narrow(2, 0, 1 + int(random[0] * 5))\n")
                              .value();
  const auto columns = samples.model_input().width;
  std::vector<float> input(size_t(4 * columns));
  std::array<int64_t, 1> target{};
  std::string message;
  for (uint64_t index = 1; index < kTransformed && message.empty(); ++index) {
    const auto written = samples.set().write(index, 0, std::as_writable_bytes(std::span(input)),
                                             std::as_writable_bytes(std::span(target)));
    if (!written) message = written.error().message;
  }
  EXPECT_THAT(message, HasSubstr(fmt::format("but [1, 4, {}] for the first; all must be the same", columns)));
}

}  // namespace
}  // namespace remuda::train
