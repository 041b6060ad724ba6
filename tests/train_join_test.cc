// Ranks that join a run: it learns what it would have learned without them, whatever becomes of them.
#include <chrono>
#include <csignal>
#include <deque>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <thread>

#include "base/env.h"
#include "base/file.h"
#include "base/listener.h"
#include "comm/wire.h"
#include "tests/elastic_job.h"
#include "tests/several_hosts.h"

namespace remuda::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Two ranks of a run that lasts for some seconds, most of which they sleep: as much longer as they are slowed down.
JobText two_ranks(int slowdown = 20) {
  JobText job;
  job.train = "epochs = 32\nglobal_batch = 48\noptimizer = 'adamw'\nlearning_rate = 0.01\n";
  job.balance = "policy = 'even'\n";
  job.devices = fmt::format(
      "[[device]]\nuse = 'cpu:0'\nslowdown = {0}\n"
      "[[device]]\nuse = 'cpu:1'\nshared = true\nslowdown = {0}\n"
      "[output]\nweights = 'out.safetensors'\n",
      slowdown);
  return job;
}

const Json& whole_report() {
  static const Json report = [] {
    const ScratchFolder folder = job_folder(two_ranks());
    Json made = train_report(folder);
    made["weights"] = folder.read("out.safetensors");
    return made;
  }();
  return report;
}

/// The report is of all steps, and what was learned is what is learned without the ranks that have come and gone.
void expect_the_same(const Json& report, const ScratchFolder& folder) {
  ASSERT_FALSE(report.is_null());
  EXPECT_EQ(report["steps"], whole_report()["steps"]);
  ASSERT_EQ(report["loss_per_epoch"].size(), whole_report()["loss_per_epoch"].size());
  for (size_t epoch = 0; epoch < report["loss_per_epoch"].size(); ++epoch)
    EXPECT_NEAR(report["loss_per_epoch"][epoch], whole_report()["loss_per_epoch"][epoch], 1e-6) << epoch;
  const ScratchFolder whole;
  whole.write("out.safetensors", whole_report()["weights"].get<std::string>());
  EXPECT_LT(file_difference(folder.path("out.safetensors"), whole.path("out.safetensors")), 1e-6);
}

/// A run with a door, and those that join it.
class JoinedRun {
 public:
  /// `own`: settings that those that join do not have.
  explicit JoinedRun(const std::vector<std::string>& settings = {}, const std::vector<std::string>& own = {},
                     const JobText& job = two_ranks())
      : port_(free_port().value()), settings_(settings), folder_(job_folder(job)), run_(command(own), environment()) {}

  int port() const { return port_; }
  std::string door() const { return fmt::format("127.0.0.1:{}", port_); }
  RunningProgram& join(const std::vector<std::string>& more = {}, process::Environment variables = {}) {
    std::vector<std::string> arguments{"--join", door(), "--devices", "cpu:1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    for (auto& variable : environment()) variables.push_back(variable);
    return newcomers_.emplace_back(command_of(arguments), variables);
  }
  bool says(const std::string& text) { return says(run_, text); }
  static bool says(const RunningProgram& program, const std::string& text) {
    return eventually([&] { return program.err().find(text) != std::string::npos; }, 60);
  }
  RunningProgram& run() { return run_; }
  Json report(int status = 0) {
    const Finished finished = run_.finish(120);
    EXPECT_EQ(finished.exit.status, status) << finished;
    printed_ = finished.err + finished.out;
    const auto report = parse_json(folder_.read("report.json"), "report.json");
    return report ? *report : Json();
  }
  const ScratchFolder& folder() const { return folder_; }
  const std::string& printed() const { return printed_; }

 private:
  process::Environment environment() const { return {{env::state_home.name, home_.path()}}; }
  std::vector<std::string> command_of(std::vector<std::string> arguments) const {
    for (const std::string& setting : settings_) arguments.insert(arguments.end(), {"--set", setting});
    return train_command(folder_, arguments);
  }
  std::vector<std::string> command(const std::vector<std::string>& own) const {
    std::vector<std::string> arguments{"--json", folder_.path("report.json"), "--set",
                                       fmt::format("elastic.join=:{}", port_)};
    for (const std::string& setting : own) arguments.insert(arguments.end(), {"--set", setting});
    return command_of(std::move(arguments));
  }

  const int port_;
  const std::vector<std::string> settings_;
  const ScratchFolder folder_, home_;
  RunningProgram run_;
  std::deque<RunningProgram> newcomers_;
  std::string printed_;
};

/// Its process that trains; none yet while it looks at the machine, for which it has a child, too.
std::vector<pid_t> workers_of(const RunningProgram& launcher) {
  std::vector<pid_t> workers = children_of(launcher.pid());
  std::erase_if(
      workers, [](pid_t pid) { return read_text(fmt::format("/proc/{}/comm", pid)).value_or("") != "remuda-train\n"; });
  return workers;
}

void kill_worker(const RunningProgram& launcher) {
  for (const pid_t worker : workers_of(launcher)) ::kill(worker, SIGKILL);
}

TEST(TrainJoin, WithOneMoreRankTheOthersLearnTheSame) {
  REMUDA_NEEDS_TWO_CORES();
  JoinedRun run;
  ASSERT_TRUE(run.says("other devices can join at " + run.door())) << run.run().err();
  ASSERT_TRUE(run.says("epoch 2/"));
  RunningProgram& newcomer = run.join();
  const Json report = run.report();
  const Finished joined = newcomer.finish();
  EXPECT_TRUE(joined.exit.ok()) << joined;
  EXPECT_THAT(joined.err,
              AllOf(HasSubstr("has joined as rank 2 after step"), HasSubstr("the run is done; its report")));
  EXPECT_EQ(joined.out, "");
  expect_the_same(report, run.folder());
  ASSERT_EQ(report["joined_ranks"].size(), 1U) << run.printed();
  const Json& join = report["joined_ranks"][0];
  EXPECT_EQ(join["rank"], 2);
  EXPECT_EQ(join["device"], "cpu:1");
  EXPECT_GT(join["seconds"], 0);
  ASSERT_EQ(report["devices"].size(), 3U);
  EXPECT_GT(report["devices"][2]["samples"], 0);
  EXPECT_THAT(run.printed(), HasSubstr("cpu:1 #2 has joined as rank 2 after step"));
}

TEST(TrainJoin, ARankThatIsLostIsReplacedAndItsSuccessorIsLostToo) {
  REMUDA_NEEDS_TWO_CORES();
  JoinedRun run({"elastic.ranks_lost=2", "elastic.buddy=true"});
  ASSERT_TRUE(run.says("epoch 2/")) << run.run().err();
  ::kill(children_of(run.run().pid()).at(1), SIGKILL);
  ASSERT_TRUE(run.says("goes on after step")) << run.run().err();
  RunningProgram& newcomer = run.join();
  ASSERT_TRUE(run.says("has joined as rank 2")) << run.run().err();
  kill_worker(newcomer);
  const Json report = run.report();
  EXPECT_EQ(newcomer.finish().exit.status, 1);
  expect_the_same(report, run.folder());
  ASSERT_EQ(report["lost_ranks"].size(), 2U) << run.printed();
  EXPECT_EQ(report["lost_ranks"][0]["rank"], 1);
  EXPECT_EQ(report["lost_ranks"][1]["rank"], 2);
  EXPECT_EQ(report["joined_ranks"].size(), 1U);
  EXPECT_EQ(report["devices"].size(), 1U);
}

TEST(TrainJoin, WhereTheFirstRankIsLostTheOthersAndTheNewcomerGoOn) {
  REMUDA_NEEDS_TWO_CORES();
  JoinedRun run({"elastic.ranks_lost=1", "elastic.buddy=true"});
  ASSERT_TRUE(run.says("epoch 2/")) << run.run().err();
  RunningProgram& newcomer = run.join();
  ASSERT_TRUE(run.says("has joined as rank 2")) << run.run().err();
  ::kill(children_of(run.run().pid()).at(0), SIGKILL);
  const Json report = run.report();
  const Finished joined = newcomer.finish();
  EXPECT_TRUE(joined.exit.ok()) << joined;
  expect_the_same(report, run.folder());
  ASSERT_EQ(report["lost_ranks"].size(), 1U) << run.printed();
  EXPECT_EQ(report["lost_ranks"][0]["state"], "memory");
  EXPECT_EQ(report["devices"].size(), 2U);
}

/// Rank 0 cannot begin with the newcomer, as the folder for the weights is gone; the others can.
TEST(TrainJoin, WhereOneCannotGoOnWithTheNewcomerNobodyDoes) {
  REMUDA_NEEDS_TWO_CORES();
  const ScratchFolder outputs;
  const std::string gone = outputs.make_folder("gone");
  JoinedRun run({"elastic.ranks_lost=1", "elastic.buddy=true"}, {"output.weights=" + gone + "/out.safetensors"});
  ASSERT_TRUE(run.says("epoch 2/")) << run.run().err();
  std::filesystem::remove_all(gone);
  const Finished refused = run.join().finish();
  EXPECT_EQ(refused.exit.status, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("the run does not take in this device: "), HasSubstr(gone)));
  run.report(2);
  EXPECT_THAT(run.printed(), AllOf(HasSubstr("was not taken in: "), HasSubstr(gone), Not(HasSubstr("has joined"))));
}

TEST(TrainJoin, OneThatWasThereFromTheBeginningStopsAllWhenItIsInterrupted) {
  REMUDA_NEEDS_TWO_CORES();
  JoinedRun run({"elastic.ranks_lost=1", "elastic.buddy=true"});
  ASSERT_TRUE(run.says("epoch 2/")) << run.run().err();
  ::kill(children_of(run.run().pid()).at(1), SIGTERM);
  const Json report = run.report(128 + SIGTERM);
  EXPECT_EQ(report.value("stopped", false), true);
  EXPECT_FALSE(report.contains("lost_ranks"));
}

// It may have been taken in just before it is killed: then it is a rank that is lost.
TEST(TrainJoin, ANewcomerThatIsKilledMeanwhileCostsNoMoreThanTime) {
  REMUDA_NEEDS_TWO_CORES();
  for (const char* moment : {"waits", "is taken in"}) {
    SCOPED_TRACE(moment);
    JoinedRun run({"elastic.ranks_lost=1", "elastic.buddy=true"});
    ASSERT_TRUE(run.says("epoch 2/")) << run.run().err();
    RunningProgram& newcomer = run.join();
    const bool waits = moment == std::string("waits");
    EXPECT_TRUE(eventually([&] { return !workers_of(newcomer).empty(); }, 60));
    EXPECT_TRUE(waits || JoinedRun::says(newcomer, " alone: ")) << newcomer.err();
    kill_worker(newcomer);
    const Json report = run.report();
    expect_the_same(report, run.folder());
    EXPECT_EQ(report["devices"].size(), 2U) << run.printed() << newcomer.err();
    for (const Json& join : report.value("joined_ranks", Json::array()))
      EXPECT_NE(join.contains("failed"), report.contains("lost_ranks")) << run.printed() << newcomer.err();
  }
}

// Before the run is over, also on a machine that takes seconds to start two programs.
TEST(TrainJoin, TwoComeAtOnce) {
  REMUDA_NEEDS_TWO_CORES();
  JoinedRun run({"elastic.ranks_lost=1", "elastic.buddy=true"}, {}, two_ranks(100));
  ASSERT_TRUE(run.says("epoch 2/")) << run.run().err();
  RunningProgram &first = run.join(), &second = run.join();
  const Json report = run.report();
  for (RunningProgram* newcomer : {&first, &second}) {
    const Finished finished = newcomer->finish();
    EXPECT_TRUE(finished.exit.ok()) << finished;
  }
  expect_the_same(report, run.folder());
  const Json joined = report.value("joined_ranks", Json::array());
  ASSERT_EQ(joined.size(), 2U) << run.printed();
  EXPECT_EQ(joined[1]["rank"], 3);
  EXPECT_EQ(report["devices"].size(), 4U);
}

TEST(TrainJoin, WhoIsNotOfTheRunIsRefusedAndDisturbsNobody) {
  REMUDA_NEEDS_TWO_CORES();
  JoinedRun run;
  ASSERT_TRUE(run.says("other devices can join")) << run.run().err();
  const auto silent = comm::dial({"127.0.0.1", run.port()}, comm::deadline_after(10));
  const auto foreign = comm::dial({"127.0.0.1", run.port()}, comm::deadline_after(10));
  ASSERT_TRUE(silent && foreign);
  const std::string garbage = "GET / HTTP/1.0\r\n\r\n";
  EXPECT_TRUE(comm::send_all(foreign->get(), std::as_bytes(std::span(garbage)), comm::deadline_after(10), "the door"));
  RunningProgram& other_job = run.join({"--set", "train.learning_rate=0.02"});
  RunningProgram& other_secret = run.join({}, {{env::secret.name, std::string(32, 'x')}});
  RunningProgram& none = run.join({"--devices", "cpu:0"});
  const Finished job = other_job.finish(), secret = other_secret.finish(), two = none.finish();
  EXPECT_EQ(job.exit.status, 2) << job;
  EXPECT_THAT(job.err, HasSubstr("train.learning_rate is 0.02 for rank 1 and 0.01 for rank 0"));
  EXPECT_EQ(secret.exit.status, 2) << secret;
  EXPECT_THAT(secret.err, HasSubstr("do not share one secret"));
  EXPECT_EQ(two.exit.status, 2) << two;
  EXPECT_THAT(two.err, HasSubstr("a rank that joins a run has one device, and here are cpu:1, cpu:0"));
  const Json report = run.report();
  expect_the_same(report, run.folder());
  EXPECT_FALSE(report.contains("joined_ranks"));
}

TEST(TrainJoin, ARunWithoutADoorIsNotFound) {
  const ScratchFolder folder = job_folder(two_ranks()), home;
  const int port = free_port().value();
  const Finished refused =
      run(train_command(folder, {"--join", std::to_string(port), "--devices", "cpu:0"}),  // of this host
          {{env::state_home.name, home.path()}, {env::connect_timeout.name, "1"}});
  EXPECT_EQ(refused.exit.status, 2) << refused;
  EXPECT_THAT(refused.err, AllOf(HasSubstr(fmt::format("no run lets others join at 127.0.0.1:{} yet", port)),
                                 HasSubstr(fmt::format("no run lets others join at 127.0.0.1:{}: ", port))));
}

TEST(TrainJoin, ANewcomerThatIsInterruptedLeavesTheOthersAlone) {
  REMUDA_NEEDS_TWO_CORES();
  JoinedRun run({"elastic.ranks_lost=1", "elastic.buddy=true"});
  ASSERT_TRUE(run.says("epoch 2/")) << run.run().err();
  RunningProgram& newcomer = run.join();
  ASSERT_TRUE(JoinedRun::says(newcomer, "has joined as rank 2")) << run.run().err();  // so it knows that it may leave
  newcomer.signal(SIGINT);
  EXPECT_EQ(newcomer.finish().exit.status, 128 + SIGINT);
  const Json report = run.report();
  expect_the_same(report, run.folder());
  const Json lost = report.value("lost_ranks", Json::array());
  ASSERT_EQ(lost.size(), 1U) << run.printed();
  EXPECT_EQ(lost[0]["rank"], 2);
  EXPECT_EQ(report.value("stopped", false), false);
}

// One of the others is halted, so that they cannot agree to go on with the newcomer before it is interrupted.
TEST(TrainJoin, ANewcomerThatIsInterruptedBeforeItIsTakenInStopsNobody) {
  REMUDA_NEEDS_TWO_CORES();
  JoinedRun run({"elastic.ranks_lost=1", "elastic.buddy=true"});
  ASSERT_TRUE(run.says("epoch 2/")) << run.run().err();
  const pid_t second = children_of(run.run().pid()).at(1);
  RunningProgram& newcomer = run.join();
  ASSERT_TRUE(JoinedRun::says(newcomer, " alone: ")) << newcomer.err();
  ::kill(second, SIGSTOP);
  newcomer.signal(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  ::kill(second, SIGCONT);
  EXPECT_EQ(newcomer.finish().exit.status, 128 + SIGINT);
  const Json report = run.report();
  expect_the_same(report, run.folder());
  EXPECT_EQ(report.value("stopped", false), false);
  EXPECT_EQ(report["devices"].size(), 2U) << run.printed();
}

TEST(TrainJoin, ANewcomerThatIsInterruptedStopsThoseThatMayLoseNobody) {
  REMUDA_NEEDS_TWO_CORES();
  JoinedRun run;
  ASSERT_TRUE(run.says("epoch 2/")) << run.run().err();
  RunningProgram& newcomer = run.join();
  ASSERT_TRUE(run.says("has joined as rank 2")) << run.run().err();
  newcomer.signal(SIGINT);
  const Finished interrupted = newcomer.finish();
  EXPECT_EQ(interrupted.exit.status, 128 + SIGINT);
  EXPECT_THAT(interrupted.err, Not(HasSubstr("the run is done")));
  EXPECT_EQ(run.report(128 + SIGTERM).value("stopped", false), true);
  EXPECT_THAT(run.printed(), HasSubstr("stopped before its end, as another rank of the run was told to stop"));
}

/// Two ranks by torchrun's variables, each on a host, and a third host from which another one joins.
TEST(TrainJoin, FromAnotherHostToRanksOnTwo) {
  REMUDA_NEEDS_TWO_CORES();
  const SeveralHosts hosts(3);
  if (!hosts.works()) GTEST_SKIP() << "needs root and network namespaces";
  const ScratchFolder folder = job_folder(two_ranks()), home;
  // These hosts have one kernel, so that the device of the third must not have cores of the others'.
  const std::vector<std::string> settings{"--set", "elastic.join=:29600", "--cpu-devices", "2"};
  RunningProgram first = hosts.launch(0, folder, home, settings, 2),
                 second = hosts.launch(1, folder, home, settings, 2);
  ASSERT_TRUE(JoinedRun::says(first, "other devices can join at 10.98.0.1:29600")) << first.err();
  ASSERT_TRUE(JoinedRun::says(first, "epoch 2/")) << first.err();
  RunningProgram third =
      hosts.start(2, train_command(folder, {"--transport", "tcp", "--devices", "cpu:1", "--join", "10.98.0.1:29600"}),
                  {{env::state_home.name, home.path()}});
  const Finished one = first.finish(120), two = second.finish(), joined = third.finish();
  EXPECT_TRUE(one.exit.ok()) << one;
  EXPECT_TRUE(two.exit.ok()) << two;
  EXPECT_TRUE(joined.exit.ok()) << joined;
  const auto report = parse_json(folder.read("report-0.json"), "the report");
  ASSERT_TRUE(report) << one;
  expect_the_same(*report, folder);
  EXPECT_EQ((*report)["joined_ranks"].size(), 1U) << one;
  EXPECT_EQ((*report)["devices"].size(), 3U);
}

}  // namespace
}  // namespace remuda::tests
