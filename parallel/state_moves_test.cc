// Who owns the optimizer's state of a program, by what its steps take.
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <thread>

#include "parallel/parallel.h"
#include "parallel/testing/ranks.h"

namespace remuda::parallel {
namespace {

using namespace testing;

/// From here on this thread's updates take 2 us for each value besides, as those of a slow device.
void update_slowly() {
  at::addThreadLocalCallback(at::RecordFunctionCallback([](const at::RecordFunction& op) {
                               if (std::string_view(op.name()) == "aten::addcdiv_" && !op.inputs().empty())
                                 std::this_thread::sleep_for(2000 * op.inputs()[0].toTensor().numel() *
                                                             std::chrono::nanoseconds(1));
                               return std::unique_ptr<at::ObserverContext>();
                             }).needsInputs(true));
}

/// Each rank computes its half of the batch, whatever it is offered, so that who owns what changes no bit.
TEST(MovesOfState, StateGoesToWhereItIsUpdatedFasterAndNoBitChanges) {
  std::vector<torch::Tensor> learned;
  for (const std::vector<double>& state_shares : {std::vector<double>{1, 1}, {}})
    run_ranks(2, [&](const Group& group) {
      torch::manual_seed(3);
      torch::nn::Linear model(100, 100);
      Options options;
      options.optimizer = AdamW{};
      options.state_shares = state_shares;
      DataParallel parallel(group, *model, options);
      if (group.rank() == 1) update_slowly();
      const torch::Tensor inputs = torch::arange(800, torch::kFloat).sin().view({8, 100});
      const size_t before = parallel.state_bytes();
      for (int step = 0; step < 60; ++step) {
        parallel.my_part(8);
        parallel.begin(4);
        model->forward(inputs.narrow(0, 4 * group.rank(), 4)).square().sum().backward();
        ASSERT_TRUE(parallel.step(0.01).applied);
      }
      parallel.check();
      at::clearThreadLocalCallbacks();
      const double kept = double(parallel.state_bytes()) / double(before);
      if (state_shares.empty() && group.rank() == 1) {
        EXPECT_LT(kept, 0.2);
      }
      if (!state_shares.empty()) {
        EXPECT_EQ(kept, 1);
      }
      if (group.rank() == 0) learned.push_back(model->weight.detach().clone());
    });
  EXPECT_TRUE(learned[0].equal(learned[1]));
}

}  // namespace
}  // namespace remuda::parallel
