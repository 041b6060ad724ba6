// Runs whose hosts pack what they send each other, ended and gone on with.
#include <filesystem>
#include <functional>
#include <gmock/gmock.h>

#include "job/compression.h"
#include "train/testing/kept_runs.h"

namespace remuda::train {
namespace {

using ::testing::HasSubstr;
using testing::kKeptSteps;

class CompressedRuns : public testing::KeptRuns {
 protected:
  /// A run of three hosts that begins to compress after four steps; and again, so many steps of it, the rest by other
  /// numbers of hosts. What is owed goes on as one sum: not the same bits, but the same way down. `then` is called
  /// after each of these.
  void expect_any_number_of_hosts_goes_on(job::Compression kind, const std::function<void()>& then = [] {}) {
    transport_ = comm::ConnectOptions::Transport::tcp;  // each rank is a host
    job_.train.compression = kind;
    job_.train.compression_after = 4;
    split({1, 1, 1});
    const Finished whole = run_without();
    EXPECT_EQ(to_json(whole.report)["compression"], (Json{{"kind", job::name_of(kind)}, {"after_steps", 4}}));
    EXPECT_LT(whole.report.loss_per_epoch[2], 0.9 * whole.report.loss_per_epoch[0]);
    for (const std::vector<double>& shares : {std::vector<double>{1, 1, 1}, {1, 2}, {1}}) {
      SCOPED_TRACE(shares.size());
      job_.train.compression = kind;
      std::filesystem::remove_all(job_.checkpoint.folder);
      job_.checkpoint.resume = job::Switch::off;
      split({1, 1, 1});
      const Finished rest = run_in_two(kKeptSteps + 2, shares);
      EXPECT_EQ(rest.report.compression->after, kKeptSteps + 2);
      EXPECT_NEAR(rest.report.test->loss, whole.report.test->loss, 0.05 * whole.report.test->loss);
      then();
    }
  }
};

TEST_F(CompressedRuns, OfOneBitAreGoneOnFromByAnyNumberOfHosts) {
  expect_any_number_of_hosts_goes_on(job::Compression::one_bit);
  job_.train.compression = job::Compression::none;
  EXPECT_THAT(run().error,
              HasSubstr("is of a run whose variance was frozen; give train.compression = \"1-bit\" as there"));
}

TEST_F(CompressedRuns, OfPowerSgdAreGoneOnFromByAnyNumberOfHosts) {
  job_.train.compression_rank = 1;
  job_.train.clip_norm = 1;
  job_.train.average = 0.5;
  expect_any_number_of_hosts_goes_on(job::Compression::powersgd, [this] {
    job_.train.compression = job::Compression::automatic;
    EXPECT_EQ(to_json(run().report)["compression"]["kind"], "powersgd") << "as in the run that this one goes on from";
  });
  job_.train.compression = job::Compression::one_bit;
  job_.train.clip_norm = job_.train.average = 0;
  EXPECT_THAT(run().error, HasSubstr("is of a run whose hosts owe each other a part of the gradients; give "
                                     "train.compression = \"powersgd\" as there"));
}

/// Whatever it is on this machine at this time: all ranks do the same.
TEST_F(CompressedRuns, AutomaticCompressionSaysByWhichNumbersItWasChosen) {
  transport_ = comm::ConnectOptions::Transport::tcp;
  job_.train.compression = job::Compression::automatic;
  job_.train.compression_after = 2;
  job_.checkpoint = {};
  const Finished whole = run();
  ASSERT_EQ(whole.error, "");
  const CompressionReport& report = whole.report.compression.value();
  EXPECT_THAT(report.chosen, HasSubstr(" MB/s, and a step computes "));
  EXPECT_NE(report.kind, job::Compression::automatic);
  EXPECT_EQ(report.after, report.kind == job::Compression::none ? 0 : 2);
  EXPECT_EQ(report.kind == job::Compression::none, !report.why_not.empty());
  transport_ = comm::ConnectOptions::Transport::automatic;
  EXPECT_EQ(to_json(run().report)["compression"],
            (Json{{"kind", "auto"}, {"why_not", "all devices are on one host, whose memory needs no compression"}}));
}

TEST_F(CompressedRuns, ARunOnOneHostCompressesNothing) {
  job_.train.compression = job::Compression::one_bit;
  job_.checkpoint = {};
  const Finished whole = run();
  EXPECT_EQ(to_json(whole.report)["compression"],
            (Json{{"kind", "1-bit"}, {"why_not", "all devices are on one host, whose memory needs no compression"}}));
  job_.train.compression = job::Compression::none;
  EXPECT_TRUE(run().parameters.equal(whole.parameters));
}

}  // namespace
}  // namespace remuda::train
