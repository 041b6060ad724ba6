#include <atomic>
#include <chrono>
#include <future>
#include <gtest/gtest.h>

#include "comm/testing/run_ranks.h"

namespace remuda::comm {
namespace {

TEST(Timeout, CanBeSetBetweenCalls) {
  constexpr int kRanks = 3;
  for (const auto transport : {ConnectOptions::Transport::tcp, ConnectOptions::Transport::shared_memory}) {
    std::promise<void> over;
    const std::shared_future<void> all_gave_up = over.get_future().share();
    std::atomic<int> gave_up = 0;
    run_ranks(
        kRanks, transport,
        [&](Communicator& communicator) {
          EXPECT_TRUE(communicator.barrier(0));
          if (communicator.rank() == 0) {
            EXPECT_EQ(all_gave_up.wait_for(std::chrono::seconds(60)), std::future_status::ready);
            return;
          }
          communicator.set_timeout(0.2);
          EXPECT_FALSE(communicator.barrier(1));
          if (++gave_up == kRanks - 1) over.set_value();
        },
        600);
  }
}

}  // namespace
}  // namespace remuda::comm
