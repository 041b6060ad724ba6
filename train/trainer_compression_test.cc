// Runs whose hosts pack what they send each other, ended and gone on with.
#include <filesystem>
#include <functional>
#include <gmock/gmock.h>

#include "checkpoint/testing/files.h"
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
    const CompressionReport& report = *whole.report.compression;
    EXPECT_EQ(report.kind, kind);
    EXPECT_EQ(report.after, 4);
    ASSERT_TRUE(report.before && report.since);
    EXPECT_EQ(report.before->steps, 4);
    EXPECT_EQ(report.since->steps, whole.report.steps - 4);
    EXPECT_LT(report.since->sent_bytes, report.before->sent_bytes);
    EXPECT_TRUE(report.expected.empty()) << "the job says what to do";
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

// What was made ready for the damaged one is no use then.
TEST_F(CompressedRuns, WhereTheNewestIsDamagedARunGoesOnFromBeforeItCompressed) {
  transport_ = comm::ConnectOptions::Transport::tcp;
  job_.train.compression = job::Compression::one_bit;
  job_.train.compression_after = 4;
  const Finished whole = run_without();
  run_in_two(2, {1, 2});
  checkpoint::flip_bit(
      checkpoint::place_of(job_.checkpoint.folder, 3 * kKeptSteps).folder + "/" + checkpoint::file_of_rank(1), -1);
  const Finished rest = run();
  EXPECT_EQ(rest.error, "");
  EXPECT_EQ(rest.report.checkpoints.resumed_from, 2);
  EXPECT_EQ(rest.report.compression->after, 4);
  EXPECT_TRUE(rest.parameters.equal(whole.parameters));
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
  EXPECT_THAT(report.chosen, HasSubstr(" of it waiting for the exchange of "));
  EXPECT_NE(report.kind, job::Compression::automatic);
  EXPECT_EQ(report.after, report.kind == job::Compression::none ? 0 : 3) << "two steps with times, at least";
  EXPECT_EQ(report.kind == job::Compression::none, !report.why_not.empty());
  ASSERT_TRUE(report.before && report.since);
  EXPECT_EQ(report.before->steps, 3);
  EXPECT_EQ(report.since->steps, whole.report.steps - 3);
  ASSERT_EQ(report.expected.size(), 4u);
  EXPECT_EQ(report.expected[0].step_s, report.before->step_s);
  EXPECT_EQ(whole.report.gradients_sent_as,
            report.packing == compress::Packing::bf16 ? torch::kBFloat16 : torch::kFloat);
  EXPECT_EQ(to_json(whole.report)["compression"]["sends"], compress::to_string(report.packing));
}

TEST_F(CompressedRuns, AutomaticCompressionChoosesNothingWhereThereIsNothingToChoose) {
  job_.checkpoint = {};
  job_.train.compression = job::Compression::automatic;
  EXPECT_EQ(to_json(run().report)["compression"],
            (Json{{"kind", "auto"}, {"why_not", "all devices are on one host, whose memory needs no compression"}}));
  transport_ = comm::ConnectOptions::Transport::tcp;
  job_.train.max_steps = 2;
  const CompressionReport report = run().report.compression.value();
  EXPECT_EQ(report.kind, job::Compression::automatic);
  EXPECT_EQ(report.why_not, "the run was over before steps had shown what is best");
  EXPECT_EQ(report.before->steps, 2);
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
