#include "quorum/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <latch>
#include <optional>

#include "comm/rendezvous.h"
#include "comm/testing/run_ranks.h"

namespace remuda::quorum {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kLabel = 7;
constexpr auto kTcp = comm::ConnectOptions::Transport::tcp;
const std::string kSecret(32, 's');

Membership found(comm::Communicator& communicator) {
  auto membership = Membership::found(communicator, comm::all_ranks(communicator.size()), "127.0.0.1", kSecret, kLabel);
  EXPECT_TRUE(membership) << membership.error().message;
  return std::move(*membership);
}

Membership::Occasion occasion(int size, int lost) {
  return {.members = comm::all_ranks(size), .notice_s = 20, .lost = {lost, "it closed its connections"}};
}

TEST(Membership, ThoseThatAreLeftAgreeAndMeet) {
  std::latch first_has_gone(3);
  comm::run_ranks(3, kTcp, [&](comm::Communicator& communicator) {
    const int rank = communicator.rank();
    std::optional<Membership> membership = found(communicator);
    if (rank == 0) membership.reset();
    first_has_gone.arrive_and_wait();
    if (rank == 0) return;
    auto agreement = membership->agree(occasion(3, 0));
    ASSERT_TRUE(agreement) << agreement.error().message;
    EXPECT_THAT(agreement->ranks, ElementsAre(1, 2));
    ASSERT_EQ(agreement->lost.size(), 1U);
    EXPECT_EQ(agreement->lost[0].rank, 0);
    EXPECT_EQ(agreement->lost[0].cause, "it closed its connections");
    comm::ConnectOptions options{.rank = rank - 1,
                                 .size = 2,
                                 .master_address = agreement->meeting.address,
                                 .master_port = agreement->meeting.port,
                                 .secret = kSecret,
                                 .connect_timeout_s = 20};
    if (rank == 1) options.listener = std::move(agreement->listener);
    EXPECT_TRUE(comm::connect(std::move(options)));
  });
}

TEST(Membership, OneThatIsLeftAloneEnds) {
  std::latch others_have_gone(3);
  comm::run_ranks(3, kTcp, [&](comm::Communicator& communicator) {
    std::optional<Membership> membership = found(communicator);
    if (communicator.rank() > 0) membership.reset();
    others_have_gone.arrive_and_wait();
    if (communicator.rank() > 0) return;
    const auto agreement = membership->agree(occasion(3, 1));
    ASSERT_FALSE(agreement);
    EXPECT_THAT(agreement.error().message,
                HasSubstr("rank 0 of 3 is left here, and may not go on, because the others may"));
    EXPECT_EQ(agreement.error().kind, ErrorKind::failed);
  });
}

TEST(Membership, FewerThanMayBeLeftEnd) {
  std::latch first_has_gone(3);
  comm::run_ranks(3, kTcp, [&](comm::Communicator& communicator) {
    std::optional<Membership> membership = found(communicator);
    if (communicator.rank() == 0) membership.reset();
    first_has_gone.arrive_and_wait();
    if (communicator.rank() == 0) return;
    Membership::Occasion lost = occasion(3, 0);
    lost.least = 3;
    const auto agreement = membership->agree(lost);
    ASSERT_FALSE(agreement);
    EXPECT_THAT(agreement.error().message, HasSubstr("lets the run go on with 3 or more"));
  });
}

// Rank 2 comes to the first agreement again, as if it had not heard of it, when rank 1 is at the next one already.
TEST(Membership, WhoHasNotHeardWhatWasDecidedBeforeHearsItThen) {
  std::latch first_has_gone(3), have_agreed(2);
  comm::run_ranks(3, kTcp, [&](comm::Communicator& communicator) {
    const int rank = communicator.rank();
    std::optional<Membership> membership = found(communicator);
    if (rank == 0) membership.reset();
    first_has_gone.arrive_and_wait();
    if (rank == 0) return;
    Membership::Occasion first = occasion(3, 0);
    first.notice_s = 3;
    for (int times = 0; times < (rank == 1 ? 1 : 3); ++times) {  // the second time it hears rank 1's last messages
      const auto agreement = membership->agree(first);
      if (times == 0) have_agreed.arrive_and_wait();
      ASSERT_TRUE(agreement) << agreement.error().message;
      EXPECT_THAT(agreement->ranks, ElementsAre(1, 2));
    }
    const auto next =
        membership->agree({.generation = 1, .members = {1, 2}, .least = 2, .notice_s = 20, .newcomer = 3});
    ASSERT_TRUE(next) << next.error().message;
    EXPECT_THAT(next->ranks, ElementsAre(1, 2)) << "nobody welcomes rank 3";
  });
}

TEST(Membership, HearsThatTheRunIsDone) {
  std::latch last_has_gone(3);
  comm::run_ranks(3, kTcp, [&](comm::Communicator& communicator) {
    const int rank = communicator.rank();
    std::optional<Membership> membership = found(communicator);
    if (rank == 2) membership.reset();
    last_has_gone.arrive_and_wait();
    if (rank == 2) return;
    Membership::Occasion last = occasion(3, 2);
    last.is_done = rank == 0;
    const auto agreement = membership->agree(last);
    ASSERT_TRUE(agreement) << agreement.error().message;
    EXPECT_TRUE(agreement->is_done);
  });
}

// Ranks 0 and 2 of three are left, and rank 3 joins them.
TEST(Membership, ANewcomerIsTakenInByThoseThatAreThere) {
  comm::run_ranks(3, kTcp, [&](comm::Communicator& communicator) {
    const std::vector<int> grown{0, 2, 3};
    const auto pair = communicator.split(std::vector{0, 1}, kLabel);
    ASSERT_TRUE(pair);
    std::optional<Membership> before;
    if (*pair) {
      auto membership = Membership::found(**pair, {0, 2}, "127.0.0.1", kSecret, kLabel);
      ASSERT_TRUE(membership) << membership.error().message;
      before.emplace(std::move(*membership));
    }
    auto after = Membership::found(communicator, grown, "127.0.0.1", kSecret, kLabel);
    ASSERT_TRUE(after) << after.error().message;
    if (!before) return;
    const auto agreement = before->agree(
        {.generation = 1, .members = {0, 2}, .least = 2, .notice_s = 20, .newcomer = 3, .welcomes = true});
    ASSERT_TRUE(agreement) << agreement.error().message;
    EXPECT_EQ(agreement->ranks, grown);
    EXPECT_TRUE(agreement->lost.empty());
  });
}

TEST(Membership, AnAddressThatNobodyReachesEndsAll) {
  comm::run_ranks(2, kTcp, [&](comm::Communicator& communicator) {
    const bool is_first = communicator.rank() == 0;
    const auto membership =
        Membership::found(communicator, {0, 1}, is_first ? "127.0.0.1" : "0.0.0.0", kSecret, kLabel);
    ASSERT_FALSE(membership);
    EXPECT_THAT(membership.error().message,
                HasSubstr(is_first ? "rank 1 has no address at which others reach it" : "at which address they reach"));
  });
}

}  // namespace
}  // namespace remuda::quorum
