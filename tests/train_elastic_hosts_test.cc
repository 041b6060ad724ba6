// A run over several hosts that loses a rank, a launcher or a cable: the others agree, go on, and learn the same.
#include <csignal>
#include <deque>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/elastic_job.h"
#include "tests/several_hosts.h"

namespace remuda::tests {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kWithBuddy{"elastic.ranks_lost=1", "elastic.buddy=true", "elastic.timeout_s=3"};

/// One rank on each host.
class RunOfHosts {
 public:
  RunOfHosts(const SeveralHosts& hosts, const std::vector<std::string>& settings, const JobText& job = three_ranks())
      : hosts_(hosts), folder_(job_folder(job)) {
    std::vector<std::string> arguments;
    for (const std::string& setting : settings) {
      arguments.emplace_back("--set");
      arguments.push_back(setting == "checkpoint.folder" ? setting + "=" + folder_.path("kept") : setting);
    }
    for (int host = 0; host < hosts.count(); ++host) ranks_.push_back(hosts.launch(host, folder_, home_, arguments));
  }

  /// Once rank 0 says so.
  bool waits_for(const std::string& text) {
    return eventually([&] { return ranks_.front().err().find(text) != std::string::npos; }, 60);
  }
  RunningProgram& rank(int number) { return ranks_.at(static_cast<size_t>(number)); }
  void kill_worker(int number) {
    for (const pid_t worker : children_of(rank(number).pid())) ::kill(worker, SIGKILL);
  }
  Json report(int number) const {
    const auto report = parse_json(folder_.read(fmt::format("report-{}.json", number)), "the report");
    return report ? *report : Json();
  }
  const ScratchFolder& folder() const { return folder_; }

 private:
  const SeveralHosts& hosts_;
  ScratchFolder folder_, home_;
  std::deque<RunningProgram> ranks_;
};

class TrainElasticHosts : public ::testing::Test {
 protected:
  /// `first` is the lowest rank that is left, of those that have lost `lost`.
  static void expect_whole(RunOfHosts& run, int first, int lost, const std::string& state) {
    const Json report = run.report(first);
    ASSERT_FALSE(report.is_null());
    EXPECT_EQ(report["steps"], kElasticSteps);
    EXPECT_EQ(report["devices"].size(), 2U);
    ASSERT_EQ(report["lost_ranks"].size(), 1U);
    EXPECT_EQ(report["lost_ranks"][0]["rank"], lost);
    EXPECT_EQ(report["lost_ranks"][0]["state"], state);
    EXPECT_NE(report["lost_ranks"][0]["cause"], "");
    EXPECT_LT(file_difference(run.folder().path("out.safetensors"), whole_run().path("out.safetensors")), 1e-6);
  }
};

#define REMUDA_NEEDS_HOSTS(hosts) \
  if (!hosts.works()) GTEST_SKIP() << "needs root and network namespaces"

TEST_F(TrainElasticHosts, WhereTheFirstRankIsKilledTheNextOneLeads) {
  REMUDA_NEEDS_TWO_CORES();
  const SeveralHosts hosts(3);
  REMUDA_NEEDS_HOSTS(hosts);
  RunOfHosts run(hosts, kWithBuddy);
  ASSERT_TRUE(run.waits_for("epoch 4/")) << run.rank(0).err();
  run.kill_worker(0);
  const Finished first = run.rank(0).finish(), second = run.rank(1).finish(120), third = run.rank(2).finish(120);
  EXPECT_EQ(first.exit.status, 1) << first;
  EXPECT_TRUE(second.exit.ok()) << second;
  EXPECT_TRUE(third.exit.ok()) << third;
  EXPECT_THAT(second.err, HasSubstr("rank 0 (cpu:0) was lost: "));
  EXPECT_THAT(second.err, HasSubstr("goes on after step"));
  EXPECT_THAT(second.out, HasSubstr("loss per epoch"));
  EXPECT_EQ(third.out, "");
  expect_whole(run, 1, 0, "memory");
}

TEST_F(TrainElasticHosts, WhereALauncherIsKilledWithItsRankTheOthersGoOnFromTheCheckpoint) {
  REMUDA_NEEDS_TWO_CORES();
  const SeveralHosts hosts(3);
  REMUDA_NEEDS_HOSTS(hosts);
  RunOfHosts run(hosts, {"elastic.ranks_lost=1", "checkpoint.folder", "checkpoint.every_steps=5"});
  ASSERT_TRUE(run.waits_for("checkpoint in")) << run.rank(0).err();
  run.rank(2).signal(SIGKILL);
  const Finished first = run.rank(0).finish(120), second = run.rank(1).finish(120);
  EXPECT_TRUE(first.exit.ok()) << first;
  EXPECT_TRUE(second.exit.ok()) << second;
  expect_whole(run, 0, 2, "checkpoint");
}

TEST_F(TrainElasticHosts, WhereACableIsCutTheLargerSideGoesOnAndTheOtherEnds) {
  REMUDA_NEEDS_TWO_CORES();
  const SeveralHosts hosts(3);
  REMUDA_NEEDS_HOSTS(hosts);
  RunOfHosts run(hosts, kWithBuddy);
  ASSERT_TRUE(run.waits_for("epoch 4/")) << run.rank(0).err();
  hosts.cut(0);
  const Finished first = run.rank(0).finish(120), second = run.rank(1).finish(120), third = run.rank(2).finish(120);
  EXPECT_EQ(first.exit.status, 1) << first;
  EXPECT_THAT(first.err, HasSubstr("rank 0 of 3 is left here, and may not go on, because the others may"));
  EXPECT_TRUE(second.exit.ok()) << second;
  EXPECT_TRUE(third.exit.ok()) << third;
  EXPECT_TRUE(run.report(0).is_null());
  expect_whole(run, 1, 0, "memory");
}

TEST_F(TrainElasticHosts, OfTwoHostsTheOneWithTheFirstRankGoesOnWhenTheCableIsCut) {
  REMUDA_NEEDS_TWO_CORES();
  const SeveralHosts hosts(2);
  REMUDA_NEEDS_HOSTS(hosts);
  JobText job = three_ranks();
  job.balance = "policy = 'fixed'\nshares = [2, 1]\n";
  job.devices =
      "[[device]]\nuse = 'cpu:0'\nslowdown = 20\n[[device]]\nuse = 'cpu:1'\nslowdown = 20\n"
      "[output]\nweights = 'out.safetensors'\n";
  RunOfHosts run(hosts, kWithBuddy, job);
  ASSERT_TRUE(run.waits_for("epoch 4/")) << run.rank(0).err();
  hosts.cut(1);
  const Finished first = run.rank(0).finish(120), second = run.rank(1).finish(120);
  EXPECT_TRUE(first.exit.ok()) << first;
  EXPECT_EQ(second.exit.status, 1) << second;
  EXPECT_THAT(second.err, HasSubstr("rank 1 of 2 is left here, and may not go on, because the others may"));
  EXPECT_EQ(run.report(0)["lost_ranks"][0]["rank"], 1);
  EXPECT_LT(file_difference(run.folder().path("out.safetensors"), whole_run().path("out.safetensors")), 1e-6);
}

TEST_F(TrainElasticHosts, AllEndWellWhereNobodyIsLost) {
  REMUDA_NEEDS_TWO_CORES();
  const SeveralHosts hosts(3);
  REMUDA_NEEDS_HOSTS(hosts);
  RunOfHosts run(hosts, kWithBuddy);
  for (int host = 0; host < 3; ++host) {
    const Finished ended = run.rank(host).finish(120);
    EXPECT_TRUE(ended.exit.ok()) << ended;
  }
  EXPECT_FALSE(run.report(0).contains("lost_ranks"));
  EXPECT_LT(file_difference(run.folder().path("out.safetensors"), whole_run().path("out.safetensors")), 1e-6);
}

}  // namespace
}  // namespace remuda::tests
