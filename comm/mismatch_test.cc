// Ranks that disagree, leave or stay silent: every rank gets an error that names who, on every transport.

#include <fmt/format.h>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <vector>

#include "comm/testing/transport_suite.h"

namespace remuda::comm {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

/// For tests that need a second rank, to disagree with or to lose.
class CompanySuite : public TransportSuite {
 protected:
  void expect_leaver_named() const;
};
/// More ranks than cores.
class CrowdSuite : public CompanySuite {};
/// For a rank that fails, one that detects it and one that is notified.
class ThreeRanksSuite : public TransportSuite {};

// Each rank's error, by rank; a rank without one fails the test.
using Errors = std::map<int, Error>;

class Collected {
 public:
  void add(const Communicator& communicator, const Result<void>& result) {
    const std::lock_guard lock(mutex_);
    ASSERT_FALSE(result) << "rank " << communicator.rank();
    errors_[communicator.rank()] = result.error();
  }
  const Errors& errors() const { return errors_; }

 private:
  std::mutex mutex_;
  Errors errors_;
};

TEST_P(CompanySuite, RanksThatDivideDifferentlyDoNotTakeWhatIsForAnother) {
  Collected collected;
  run([&](Communicator& communicator) {
    const std::vector<std::byte> mine(size_t(ranks()) * 100);
    std::vector<double> weights(size_t(ranks()), 1);
    if (communicator.rank() == 1) weights[0] = 3;
    const Parts parts = parts_by(weights, mine.size(), kCacheLine);
    std::vector<std::byte> theirs(parts.of(communicator.rank()).size() * size_t(ranks()));
    collected.add(communicator, communicator.all_to_all(mine, parts, theirs, 6));
  });
  ASSERT_EQ(collected.errors().size(), static_cast<size_t>(ranks()));
  for (const auto& [rank, error] : collected.errors())
    EXPECT_THAT(error.message, HasSubstr("all_to_all #1 (label 6, ")) << "rank " << rank;
}

TEST_P(CompanySuite, RanksThatDisagreeOnTheLabelAreBothNamed) {
  Collected collected;
  run([&](Communicator& communicator) {
    const auto values = allocate<float>(communicator, 100000);
    const bool odd = communicator.rank() == 1;
    collected.add(communicator, communicator.all_reduce(values, odd ? 7 : 6));
  });
  ASSERT_EQ(collected.errors().size(), static_cast<size_t>(ranks()));
  if (ranks() == 2) {
    EXPECT_THAT(
        collected.errors().at(0).message,
        HasSubstr("rank 0 is at all_reduce #2 of float32 (label 6, 400000 bytes) while rank 1 is at all_reduce #2 of "
                  "float32 (label 7, 400000 bytes)"));
  }
  for (const auto& [rank, error] : collected.errors()) {
    EXPECT_EQ(error.kind, ErrorKind::failed);
    EXPECT_THAT(error.message, HasSubstr("rank 1 is at all_reduce #2 of float32 (label 7, 400000 bytes)"));
    EXPECT_THAT(error.message, HasSubstr("is at all_reduce #2 of float32 (label 6, 400000 bytes)"));
  }
}

TEST_P(CompanySuite, RanksThatDisagreeOnTheSizeAreBothNamed) {
  Collected collected;
  run([&](Communicator& communicator) {
    std::vector<std::byte> bytes(communicator.rank() == 0 ? 300000 : 300001);
    collected.add(communicator, communicator.broadcast(bytes, 0, 0));
  });
  for (const auto& [rank, error] : collected.errors()) {
    EXPECT_EQ(error.kind, ErrorKind::failed);
    EXPECT_THAT(error.message, HasSubstr("rank 0 is at broadcast #1 (label 0, 300000 bytes from rank 0)"));
    EXPECT_THAT(error.message, HasSubstr(", 300001 bytes"));
  }
}

TEST_P(CompanySuite, RanksThatDisagreeOnTheCallAreBothNamed) {
  Collected collected;
  run([&](Communicator& communicator) {
    const auto values = allocate<double>(communicator, 10);
    collected.add(communicator,
                  communicator.rank() == 0 ? communicator.barrier(3) : communicator.all_reduce(values, 3));
  });
  for (const auto& [rank, error] : collected.errors()) {
    EXPECT_THAT(error.message, HasSubstr("rank 0 is at barrier #2 (label 3, 0 bytes)"));
    EXPECT_THAT(error.message, HasSubstr("is at all_reduce #2 of float64 (label 3, 80 bytes)"));
  }
}

TEST_P(CompanySuite, RanksThatDisagreeOnThePartsAreBothNamed) {
  Collected collected;
  run([&](Communicator& communicator) {
    const auto values = allocate<float>(communicator, 1000);
    std::vector<double> weights(ranks(), 1.0);
    if (communicator.rank() == 1) weights[0] = 2;
    collected.add(communicator, communicator.reduce_scatter(values, parts_by(weights, values.size(), 4), 0));
  });
  ASSERT_EQ(collected.errors().size(), static_cast<size_t>(ranks()));
  for (const auto& [rank, error] : collected.errors()) {
    EXPECT_EQ(error.kind, ErrorKind::failed);
    EXPECT_THAT(error.message, HasSubstr("rank 1 "));
    EXPECT_THAT(error.message, HasSubstr(" are at reduce_scatter #2 of float32 (label 0, 4000 bytes), but divide the "
                                         "values among the ranks in unlike ways"));
  }
}

TEST_P(CompanySuite, RanksThatDisagreeOnTheTypeAreBothNamed) {
  Collected collected;
  run([&](Communicator& communicator) {
    const auto memory = communicator.allocate(80);
    ASSERT_TRUE(memory) << memory.error().message;
    const bool odd = communicator.rank() == 1;
    collected.add(communicator, communicator.all_reduce({odd ? Element::int64 : Element::float64, *memory}, 0));
  });
  ASSERT_EQ(collected.errors().size(), static_cast<size_t>(ranks()));
  for (const auto& [rank, error] : collected.errors()) {
    EXPECT_EQ(error.kind, ErrorKind::failed);
    EXPECT_THAT(error.message, HasSubstr("rank 1 is at all_reduce #2 of int64 (label 0, 80 bytes)"));
    EXPECT_THAT(error.message, HasSubstr("is at all_reduce #2 of float64 (label 0, 80 bytes)"));
  }
}

TEST_P(CompanySuite, RanksThatReduceDifferentPlacesAreBothNamed) {
  Collected collected;
  run([&](Communicator& communicator) {
    const auto values = allocate<float>(communicator, 200);
    collected.add(communicator, communicator.all_reduce(values.subspan(communicator.rank() == 0 ? 0 : 100, 100), 0));
  });
  for (const auto& [rank, error] : collected.errors()) EXPECT_THAT(error.message, HasSubstr("at offset 400"));
}

TEST_P(CompanySuite, RanksThatReduceDifferentAllocationsAreBothNamed) {
  Collected collected;
  run([&](Communicator& communicator) {
    const auto first = allocate<float>(communicator, 100), second = allocate<float>(communicator, 100);
    collected.add(communicator, communicator.all_reduce(communicator.rank() == 0 ? first : second, 0));
  });
  ASSERT_EQ(collected.errors().size(), static_cast<size_t>(ranks()));
  for (const auto& [rank, error] : collected.errors()) EXPECT_THAT(error.message, HasSubstr("400 bytes at offset"));
}

std::vector<int> last_first(int ranks) {
  std::vector<int> all;
  for (int rank = ranks - 1; rank >= 0; --rank) all.push_back(rank);
  return all;
}

TEST_P(CompanySuite, RanksThatSplitIntoOtherListsAreBothNamed) {
  Collected collected;
  run([&](Communicator& communicator) {
    std::vector<int> list = last_first(ranks());
    if (communicator.rank() == 1) list = {1};
    collected.add(communicator, communicator.split(list, 4).map([](const auto&) {}));
  });
  ASSERT_EQ(collected.errors().size(), static_cast<size_t>(ranks()));
  for (const auto& [rank, error] : collected.errors()) {
    EXPECT_EQ(error.kind, ErrorKind::failed);
    EXPECT_THAT(error.message, HasSubstr("rank 1 is at split #1 (label 4, 1 ranks from rank 1 on)"));
    EXPECT_THAT(error.message,
                HasSubstr(fmt::format("is at split #1 (label 4, {} ranks from rank {} on)", ranks(), ranks() - 1)));
  }
}

TEST_P(CompanySuite, AGroupNamesItsRanksAsTheJobDoes) {
  Collected collected;
  run([&](Communicator& communicator) {
    const auto group = communicator.split(last_first(ranks()), 0);
    ASSERT_TRUE(group) << group.error().message;
    int word = 0;
    collected.add(communicator, (*group)->broadcast(std::as_writable_bytes(std::span(&word, 1)), 0,
                                                    communicator.rank() == 1 ? 7 : 6));
  });
  ASSERT_EQ(collected.errors().size(), static_cast<size_t>(ranks()));
  for (const auto& [rank, error] : collected.errors())
    EXPECT_THAT(error.message,
                HasSubstr(fmt::format("rank 1 is at broadcast #1 (label 7, 4 bytes from rank {})", ranks() - 1)));
}

TEST_P(CompanySuite, ARankThatLeavesAGroupIsNamedAsInTheJob) {
  Collected collected;
  run([&](Communicator& communicator) {
    const auto group = communicator.split(last_first(ranks()), 0);
    ASSERT_TRUE(group) << group.error().message;
    if (communicator.rank() == 0) return;
    collected.add(communicator, (*group)->barrier(1));
  });
  ASSERT_EQ(collected.errors().size(), static_cast<size_t>(ranks() - 1));
  for (const auto& [rank, error] : collected.errors()) {
    EXPECT_EQ(error.kind, ErrorKind::lost_peer);
    EXPECT_EQ(error.peer, 0) << error.message;
    EXPECT_THAT(error.message, HasSubstr("rank 0 went away"));
  }
}

TEST_P(CompanySuite, ARankThatLeavesInsteadOfSplittingIsNamed) {
  Collected collected;
  run([&](Communicator& communicator) {
    if (communicator.rank() == 0) return;
    collected.add(communicator, communicator.split(last_first(ranks()), 0).map([](const auto&) {}));
  });
  ASSERT_EQ(collected.errors().size(), static_cast<size_t>(ranks() - 1));
  for (const auto& [rank, error] : collected.errors()) EXPECT_EQ(error.peer, 0) << error.message;
}

void CompanySuite::expect_leaver_named() const {
  Collected collected;
  const int leaver = ranks() - 1;
  run([&](Communicator& communicator) {
    const auto values = allocate<float>(communicator, 500000);
    expect_ok(communicator.all_reduce(values, 0));
    if (communicator.rank() == leaver) return;
    collected.add(communicator, communicator.all_reduce(values, 1));
    collected.add(communicator, communicator.barrier(2));
  });
  ASSERT_EQ(collected.errors().size(), static_cast<size_t>(leaver));
  for (const auto& [rank, error] : collected.errors()) {
    EXPECT_EQ(error.kind, ErrorKind::lost_peer);
    EXPECT_EQ(error.peer, leaver) << error.message;
    EXPECT_THAT(error.message, HasSubstr(fmt::format("rank {} went away", leaver)));
  }
}

TEST_P(CompanySuite, ARankThatLeavesIsNamedByAllOthers) { expect_leaver_named(); }
TEST_P(CrowdSuite, ARankThatLeavesIsNamedByAllOthers) { expect_leaver_named(); }

TEST_P(CompanySuite, ASilentRankIsNamedWhenTimeIsUp) {
  Collected collected;
  std::promise<void> over;
  std::shared_future<void> all_gave_up = over.get_future().share();
  std::atomic<int> gave_up = 0;
  run(
      [&](Communicator& communicator) {
        expect_ok(communicator.barrier(0));
        if (communicator.rank() == 0) return all_gave_up.wait();
        collected.add(communicator, communicator.barrier(1));
        if (++gave_up == ranks() - 1) over.set_value();
      },
      0.2);
  ASSERT_EQ(collected.errors().size(), static_cast<size_t>(ranks() - 1));
  for (const auto& [rank, error] : collected.errors()) {
    EXPECT_EQ(error.kind, ErrorKind::lost_peer);
    EXPECT_EQ(error.peer, 0);
    EXPECT_THAT(error.message, AnyOf(HasSubstr("rank 0 did not"), HasSubstr("rank 0 went away in call #2, as rank ")));
  }
}

/// Rank 0 has a shorter timeout than the others: it reports to them which rank is lost.
TEST_P(ThreeRanksSuite, TheRankThatGivesUpFirstReportsTheLostOneToAll) {
  Collected collected;
  const int silent = ranks() - 1;
  std::promise<void> over;
  std::shared_future<void> all_gave_up = over.get_future().share();
  std::atomic<int> gave_up = 0;
  const auto body = [&](Communicator& communicator) {
    expect_ok(communicator.barrier(0));
    if (communicator.rank() == silent) return all_gave_up.wait();
    collected.add(communicator, communicator.barrier(1));
    if (++gave_up == silent) over.set_value();
  };
  run_ranks(ranks(), GetParam().known.transport, body, 600, [](ConnectOptions& options) {
    GetParam().known.adjust(options);
    if (options.rank == 0) options.timeout_s = 5;
  });
  ASSERT_EQ(collected.errors().size(), static_cast<size_t>(silent));
  for (const auto& [rank, error] : collected.errors()) {
    EXPECT_EQ(error.kind, ErrorKind::lost_peer);
    EXPECT_EQ(error.peer, silent) << error.message;
    if (rank == 0) continue;
    EXPECT_THAT(error.message, HasSubstr(fmt::format("rank {} went away in call #2, as rank ", silent)));
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, CompanySuite, ::testing::ValuesIn(setups({2, 3, 4})), setup_name);
INSTANTIATE_TEST_SUITE_P(Transports, CrowdSuite, ::testing::ValuesIn(setups({8, 16})), setup_name);
INSTANTIATE_TEST_SUITE_P(Transports, ThreeRanksSuite, ::testing::ValuesIn(setups({3})), setup_name);

}  // namespace
}  // namespace remuda::comm
