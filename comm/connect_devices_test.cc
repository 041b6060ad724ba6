// The library of a maker, played by a stand-in whose devices are threads and whose memory is the host's.
#include "comm/connect_devices.h"

#include <condition_variable>
#include <deque>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mutex>
#include <numeric>
#include <thread>

#include "comm/testing/run_ranks.h"
#include "comm/testing/standin_library.h"

namespace remuda::comm {
namespace {

using ::testing::HasSubstr;
constexpr auto kOnOneHost = ConnectOptions::Transport::shared_memory;

/// A thread that does tasks in order.
class Stream {
 public:
  Stream() : thread_([this] { run(); }) {}
  ~Stream() {
    enqueue([this] { ended_ = true; });
    thread_.join();
  }
  void enqueue(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
      ++given_;
    }
    changed_.notify_all();
  }
  bool is_idle() {
    const std::lock_guard lock(mutex_);
    return done_ == given_;
  }
  void finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_ == given_; });
  }

 private:
  void run() {
    for (std::unique_lock lock(mutex_); !ended_;) {
      changed_.wait(lock, [this] { return !tasks_.empty(); });
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  int given_ = 0, done_ = 0;
  bool ended_ = false;
  std::thread thread_;
};

const StandinDevice kThreads{
    [](void* stream, std::function<void()> task) { static_cast<Stream*>(stream)->enqueue(std::move(task)); },
    [](void* pointer) { return pointer; }};

DeviceCollectivesOptions options_of(int rank) {
  return {.place = {.kind = "cuda", .maker = "cuda", .address = "0000:0" + std::to_string(rank) + ":00.0"},
          .connect_timeout_s = 20};
}

class DeviceCollectivesTest : public ::testing::Test {
 protected:
  DeviceCollectivesTest() { configure_standin_library(kThreads); }
  ~DeviceCollectivesTest() override { EXPECT_EQ(standin_library_members(), 0) << "all were ended"; }

  /// Why these ranks go without; all of them must say the same.
  static std::string why_not(int ranks, const std::function<void(int rank, DeviceCollectivesOptions&)>& change) {
    std::vector<std::string> reasons(static_cast<size_t>(ranks));
    run_ranks(ranks, kOnOneHost, [&](Communicator& communicator) {
      DeviceCollectivesOptions options = options_of(communicator.rank());
      change(communicator.rank(), options);
      const auto opened = open_device_collectives(communicator, options).value();
      EXPECT_EQ(opened.collectives == nullptr, !opened.why_not.empty());
      reasons[static_cast<size_t>(communicator.rank())] = opened.why_not;
    });
    for (const std::string& reason : reasons) EXPECT_EQ(reason, reasons[0]);
    return reasons[0];
  }
};

void with_collectives(int ranks, const std::function<void(DeviceCollectives&, Stream&)>& body) {
  run_ranks(ranks, kOnOneHost, [&](Communicator& communicator) {
    Stream stream;
    const auto opened = open_device_collectives(communicator, options_of(communicator.rank())).value();
    ASSERT_EQ(opened.why_not, "");
    body(*opened.collectives, stream);
    opened.collectives->abort();
    stream.finish();
    EXPECT_TRUE(communicator.barrier(1));
  });
}

template <typename T>
void expect_sums_and_parts(int ranks, const Parts& parts) {
  with_collectives(ranks, [&](DeviceCollectives& collectives, Stream& stream) {
    const auto scale = T(collectives.rank() + 1);
    std::vector<T> values(parts.count());
    // Values are written in the stream: a call that does not wait for its turn there reads zeros.
    stream.enqueue([&] {
      for (size_t i = 0; i < values.size(); ++i) values[i] = T(i % 97) * scale;
    });
    ASSERT_TRUE(collectives.reduce_scatter(std::span(values), parts, &stream));
    const Chunk own = parts.of(collectives.rank());
    stream.finish();
    const int ranks_added = collectives.size() * (collectives.size() + 1) / 2;
    const T all = T(ranks_added);
    for (size_t i = own.begin; i < own.end; ++i) ASSERT_EQ(values[i], T(i % 97) * all) << i;
    ASSERT_TRUE(
        collectives.gather_parts(std::as_writable_bytes(std::span(values)), parts.in_bytes(sizeof(T)), &stream));
    stream.finish();
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], T(i % 97) * all) << i;
    EXPECT_TRUE(collectives.check());
  });
}

TEST_F(DeviceCollectivesTest, AddUpPartsOfAnySizeAndGiveThemToAll) {
  expect_sums_and_parts<float>(2, Parts({1, 1000}));
  expect_sums_and_parts<double>(2, Parts({700, 1000}));
  expect_sums_and_parts<float>(3, Parts({16, 16, 500}));
  expect_sums_and_parts<double>(3, Parts({0, 0, 5}));
}

TEST_F(DeviceCollectivesTest, SayTheirVersionAndWhatTheyDoNotPromise) {
  with_collectives(2, [](DeviceCollectives& collectives, Stream&) {
    EXPECT_EQ(collectives.name(), "NCCL 2.21.5");
    EXPECT_FALSE(collectives.promises().same_bits);
  });
}

TEST_F(DeviceCollectivesTest, NeedDevicesOfOneMaker) {
  const auto on_cpu = [](DeviceCollectivesOptions& options) { options.place = {.kind = "cpu"}; };
  EXPECT_EQ(why_not(2,
                    [&](int rank, auto& options) {
                      if (rank == 1) on_cpu(options);
                    }),
            "rank 0 is on a cuda device, rank 1 is on a cpu device");
  EXPECT_EQ(why_not(3,
                    [](int rank, auto& options) {
                      if (rank == 2) options.place.maker = "hip";
                    }),
            "rank 0 is on a cuda device, rank 2 is on a hip device");
  EXPECT_EQ(why_not(2, [&](int, auto& options) { on_cpu(options); }),
            "rank 0 is on a cpu device, for which there is no library of collectives");
}

TEST_F(DeviceCollectivesTest, NeedMoreThanOneRankAndADeviceForEach) {
  EXPECT_EQ(why_not(1, [](int, auto&) {}), "there is only one rank");
  EXPECT_EQ(why_not(3,
                    [](int rank, auto& options) {
                      if (rank == 2) options.place.address = "0000:01:00.0";
                    }),
            "ranks 1 and 2 share the device 0000:01:00.0");
  EXPECT_EQ(why_not(2,
                    [](int rank, auto& options) {
                      options.place.address = "0000:01:00.0";
                      options.place.host = rank == 0 ? "a" : "b";
                    }),
            "");
}

TEST_F(DeviceCollectivesTest, NeedOneVersionThatIsNewEnough) {
  EXPECT_EQ(why_not(2, [](int rank, auto&) { set_standin_version(rank == 0 ? 22105 : 21803); }),
            "rank 0 has NCCL 2.21.5, rank 1 has NCCL 2.18.3; they must be the same");
  EXPECT_EQ(why_not(2, [](int rank, auto&) { set_standin_version(rank == 0 ? 22105 : 21304); }),
            "rank 1: libnccl.so.2 is version 2.13.4; 2.14.0 or newer can be used");
  EXPECT_EQ(why_not(2, [](int, auto&) { set_standin_version(2804); }),
            "rank 0: libnccl.so.2 is version 2.8.4; 2.14.0 or newer can be used");
}

TEST_F(DeviceCollectivesTest, AreDoneWithoutWhereOneRankCannotJoin) {
  configure_standin_library(kThreads, {.fault = LibraryFault::init_fails, .rank = 0});
  const auto briefly = [](int, auto& options) { options.connect_timeout_s = 0.05; };
  EXPECT_EQ(why_not(2, briefly),
            "rank 0: NCCL 2.21.5: ncclCommInitRankConfig: unhandled system error (as the test wants it)");
  configure_standin_library(kThreads, {.fault = LibraryFault::init_hangs, .rank = 1});
  EXPECT_EQ(why_not(3, briefly), "rank 0: NCCL 2.21.5 did not take ncclCommInitRankConfig within 0 s");
}

TEST_F(DeviceCollectivesTest, GiveUpACallThatTheLibraryDoesNotTake) {
  configure_standin_library(kThreads, {.fault = LibraryFault::call_hangs, .rank = 1, .after_calls = 1});
  with_collectives(2, [](DeviceCollectives& collectives, Stream& stream) {
    const Parts parts({5, 9});
    std::vector<float> values(9, 1.0F);
    ASSERT_TRUE(collectives.reduce_scatter(std::span(values), parts, &stream));
    stream.finish();
    if (collectives.rank() == 1) collectives.set_timeout(0.01);
    const auto second = collectives.reduce_scatter(std::span(values), parts, &stream);
    EXPECT_EQ(bool(second), collectives.rank() == 0);
    if (!second) {
      EXPECT_EQ(second.error().message, "NCCL 2.21.5 did not take ncclGroupEnd within 0 s");
    }
    collectives.abort();
    stream.finish();  // rank 0's work, too, which waits for rank 1's
    EXPECT_FALSE(collectives.check());
    EXPECT_FALSE(collectives.reduce_scatter(std::span(values), parts, &stream));
  });
}

TEST_F(DeviceCollectivesTest, AbortEndsWorkThatHangs) {
  configure_standin_library(kThreads, {.fault = LibraryFault::work_hangs, .rank = 0});
  with_collectives(2, [](DeviceCollectives& collectives, Stream& stream) {
    std::vector<float> values(9, 1.0F);
    ASSERT_TRUE(collectives.reduce_scatter(std::span(values), Parts({5, 9}), &stream));
    EXPECT_TRUE(collectives.check());
    EXPECT_FALSE(stream.is_idle());
    collectives.abort();
    stream.finish();
  });
}

TEST_F(DeviceCollectivesTest, CheckFindsAnErrorOfTheWorkUnderWay) {
  configure_standin_library(kThreads, {.fault = LibraryFault::work_fails, .rank = 0});
  with_collectives(2, [](DeviceCollectives& collectives, Stream& stream) {
    std::vector<float> values(9, 1.0F);
    ASSERT_TRUE(collectives.reduce_scatter(std::span(values), Parts({5, 9}), &stream));
    if (collectives.rank() == 1) return;
    Result<void> state;
    while ((state = collectives.check())) std::this_thread::yield();
    EXPECT_THAT(state.error().message, HasSubstr("in work under way: remote process exited"));
  });
}

TEST_F(DeviceCollectivesTest, ACallThatIsRefusedIsAnError) {
  configure_standin_library(kThreads, {.fault = LibraryFault::call_fails, .rank = 1});
  with_collectives(2, [](DeviceCollectives& collectives, Stream& stream) {
    std::vector<float> values(9, 1.0F);
    const auto outcome = collectives.gather_parts(std::as_writable_bytes(std::span(values)), Parts({5, 9}), &stream);
    EXPECT_EQ(bool(outcome), collectives.rank() == 0);
    if (!outcome) {
      EXPECT_THAT(outcome.error().message, HasSubstr("NCCL 2.21.5: ncclGroupEnd: unhandled system error"));
    }
  });
}

}  // namespace
}  // namespace remuda::comm
