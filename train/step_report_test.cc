#include "train/step_report.h"

#include <gtest/gtest.h>

#include "comm/testing/run_ranks.h"

namespace remuda::train {
namespace {

TEST(StepReport, AllRanksLearnTheSameOfAll) {
  run_ranks(3, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const int rank = communicator.rank();
    StepReport mine{.weight = 10.0 * (rank + 1),
                    .loss_sum = 0.5,
                    .square_norm = 2.0 + rank,
                    .compute_s = 0.25 * (rank + 1),
                    .wait_s = 0.125 * rank,
                    .data_s = 1.5 * rank,
                    .update_s = 2.5 * rank,
                    .gradient_wait_s = 3.5 * rank,
                    .memory_bytes = 1e12 + rank};
    if (rank == 0) mine.next_shares = {30, 20, 10};
    if (rank == 2) mine.status = kOutOfMemory | kLeaving;
    const auto totals = exchange(communicator, mine);
    ASSERT_TRUE(totals) << totals.error().message;
    EXPECT_EQ(totals->weight, 60);
    EXPECT_EQ(totals->loss_sum, 1.5);
    EXPECT_EQ(totals->square_norm, 9);
    EXPECT_EQ(totals->compute_s, (std::vector{0.25, 0.5, 0.75}));
    EXPECT_EQ(totals->wait_s, (std::vector{0.0, 0.125, 0.25}));
    EXPECT_EQ(totals->data_s, (std::vector{0.0, 1.5, 3.0}));
    EXPECT_EQ(totals->update_s, (std::vector{0.0, 2.5, 5.0}));
    EXPECT_EQ(totals->gradient_wait_s, (std::vector{0.0, 3.5, 7.0}));
    EXPECT_EQ(totals->memory_bytes, (std::vector{1e12, 1e12 + 1, 1e12 + 2}));
    EXPECT_EQ(totals->next_shares, (std::vector{30, 20, 10}));
    EXPECT_EQ(totals->any_status(), kOutOfMemory | kLeaving);
    EXPECT_EQ(totals->first_with(kOutOfMemory), 2);
    EXPECT_EQ(totals->first_with(kReadyTwice), -1);
  });
}

TEST(StepReport, WhatOneRankHasUsedIsUsed) {
  run_ranks(3, comm::kSharedMemory, [](comm::Communicator& communicator) {
    StepReport mine{.used = std::vector<char>(100)};
    for (const int own : {0, 31, 32, 63, 64, 99})
      if (own % 3 == communicator.rank()) mine.used[size_t(own)] = 1;
    if (communicator.rank() == 0) mine.next_shares = {1, 2, 3};
    const auto totals = exchange(communicator, mine);
    ASSERT_TRUE(totals);
    for (int i = 0; i < 100; ++i)
      EXPECT_EQ(totals->used[size_t(i)], i == 0 || i == 31 || i == 32 || i == 63 || i == 64 || i == 99) << i;
    EXPECT_EQ(totals->next_shares, (std::vector{1, 2, 3}));
  });
}

TEST(StepReport, WeightsOfManyTokensStayExact) {
  run_ranks(4, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto totals = exchange(communicator, {.weight = 1'000'000'007});
    ASSERT_TRUE(totals);
    EXPECT_EQ(totals->weight, 4'000'000'028);
  });
}

}  // namespace
}  // namespace remuda::train
