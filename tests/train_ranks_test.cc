// Ranks started by hand, as between machines: what must be the same on all, and the error when it is not.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "base/env.h"
#include "base/file.h"
#include "base/listener.h"
#include "base/version.h"
#include "tests/train_job_files.h"

namespace remuda::tests {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

/// Two ranks of a job; each may have a folder (job and data) and more variables of its own.
class TwoRanks {
 public:
  void start(int rank, const ScratchFolder& folder, const process::Environment& more = {}) {
    process::Environment environment = HandStarted{.rank = rank, .size = 2, .port = port_}.environment();
    environment.insert(environment.end(), more.begin(), more.end());
    std::vector<std::string> command = worker_command(folder);
    if (!program_.empty()) command[0] = program_;
    ranks_.emplace_back(command, environment);
  }
  /// The ranks that are started from now on run this program.
  void use(std::string program) { program_ = std::move(program); }
  /// The result of each, in the order of the starts.
  std::vector<Finished> finish() {
    std::vector<Finished> all;
    for (auto& rank : ranks_) all.push_back(rank.finish());
    return all;
  }

 private:
  int port_ = free_port().value();
  std::string program_;
  std::vector<RunningProgram> ranks_;
};

constexpr const char* kMustBeTheSame = "must have the same run, job and data: ";

/// Both ranks end with the status of wrong input, and each names both ranks and what differs.
void expect_both_refuse(TwoRanks& ranks, const std::string& difference_regex) {
  for (const Finished& finished : ranks.finish()) {
    EXPECT_EQ(finished.exit.status, 2) << finished;
    EXPECT_THAT(finished.err, HasSubstr(kMustBeTheSame));
    EXPECT_THAT(finished.err, ContainsRegex(difference_regex));
  }
}

TEST(TrainRanks, RanksWithOtherSeedsNameBoth) {
  JobText job;
  job.train += "seed = 7\n";
  const ScratchFolder first = job_folder(job);
  job.train = JobText{}.train + "seed = 8\n";
  const ScratchFolder second = job_folder(job);
  TwoRanks ranks;
  ranks.start(0, first);
  ranks.start(1, second);
  expect_both_refuse(ranks, "train.seed is (7 for rank 0 and 8 for rank 1|8 for rank 1 and 7 for rank 0)");
}

TEST(TrainRanks, RanksWithOtherDataNameTheFile) {
  const ScratchFolder first = job_folder(), second = job_folder();
  std::string labels = second.read("train.labels");
  labels.back() ^= 1;
  second.write("train.labels", labels);
  TwoRanks ranks;
  ranks.start(0, first);
  ranks.start(1, second);
  expect_both_refuse(ranks, "the content of data.train.labels is 258 bytes, hash .* for rank . and 258 bytes, hash ");
}

TEST(TrainRanks, RanksOfOtherVersionsNameBoth) {
  const ScratchFolder folder = job_folder();
  std::string newer = *read_text(REMUDA_TRAIN_PROGRAM);
  const std::string own = version();
  std::string other = own;
  other.back() = other.back() == '9' ? '8' : '9';
  for (size_t at = newer.find(own); at != std::string::npos; at = newer.find(own, at + 1))
    newer.replace(at, own.size(), other);
  const std::string program = folder.write("remuda-train", newer);
  ::chmod(program.c_str(), 0755);
  TwoRanks ranks;
  ranks.start(0, folder);
  ranks.use(program);
  ranks.start(1, folder);
  expect_both_refuse(
      ranks, fmt::format("the version of remuda is ({0} for rank 0 and {1}|{1} for rank 1 and {0})", own, other));
}

TEST(TrainRanks, RanksOfOtherRunsNameBoth) {
  const ScratchFolder folder = job_folder();
  TwoRanks ranks;
  ranks.start(0, folder, {{env::run_id.name, "monday"}});
  ranks.start(1, folder, {{env::run_id.name, "tuesday"}});
  expect_both_refuse(ranks, "TORCHELASTIC_RUN_ID is (monday for rank 0 and tuesday|tuesday for rank 1 and monday)");
}

TEST(TrainRanks, FilesMayLieElsewhereOnEachMachine) {
  const ScratchFolder first = job_folder(), second = job_folder();
  TwoRanks ranks;
  ranks.start(0, first);
  ranks.start(1, second);
  for (const Finished& finished : ranks.finish()) EXPECT_TRUE(finished.exit.ok()) << finished;
}

bool has_more_than_default_kernels() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0;
#else
  return false;
#endif
}

/// Kernels for other instruction sets round differently; a parameter has one owner, so the ranks stay equal all the
/// same.
TEST(TrainRanks, RanksWithOtherKernelsHaveTheSameParametersAfter200Steps) {
  if (!has_more_than_default_kernels())
    GTEST_SKIP() << "needs a CPU for which libtorch has more than one kind of kernel";
  JobText job;
  job.train = "epochs = 40\nmax_steps = 200\nglobal_batch = 48\noptimizer = 'adamw'\ncheck_every = 1\n";
  const ScratchFolder folder = job_folder(job);
  TwoRanks ranks;
  ranks.start(0, folder);
  ranks.start(1, folder, {{env::aten_cpu_capability.name, "default"}});
  for (const Finished& finished : ranks.finish()) EXPECT_TRUE(finished.exit.ok()) << finished;
}

}  // namespace
}  // namespace remuda::tests
