// `remuda train` under a lease: it asks, waits and gives back as any job does, on the CPU devices of a recorded
// machine.
#include <csignal>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/file.h"
#include "tests/job_fixture.h"
#include "tests/train_job_files.h"

namespace remuda::tests {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::SizeIs;
using testing::UnorderedElementsAre;

/// A machine of three CPU devices, which are no cores of this one.
class TrainLease : public JobTest {
 protected:
  TrainLease() : files_(job_folder(job())) {
    Json machine{{"version", 1}, {"host", "lab"}, {"devices", Json::array()}};
    for (int i = 0; i < 3; ++i)
      machine["devices"].push_back(
          {{"id", fmt::format("cpu:{}", i)}, {"kind", "cpu"}, {"index", i}, {"model", fmt::format("Model {}", i)}});
    folder_.write("lab.json", machine.dump());
  }
  std::vector<std::string> machine() const override { return {"--machine", folder_.path("lab.json")}; }

  static JobText job() {
    JobText job;
    job.devices = "";
    return job;
  }
  std::string job_file() const { return files_.path("job.toml"); }
  /// A run that does not end by itself.
  std::vector<std::string> endless(std::vector<std::string> more) const {
    std::vector<std::string> words{"train", job_file(), "--set", "train.epochs=1000000"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::vector<std::string> unlike(int count) const { return {"-n", std::to_string(count), "--any-model", "--cpu"}; }
  std::vector<std::string> train(std::vector<std::string> more) const {
    std::vector<std::string> words{"train", job_file()};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  /// The one child of a process: the keeper of a front, the job's command of a keeper.
  static pid_t child_of(pid_t parent) {
    const std::vector<pid_t> children = children_of(parent);
    EXPECT_THAT(children, SizeIs(1));
    return children.empty() ? 0 : children[0];
  }
  /// Two devices train; then `kill` is called with the front, the keeper, and the processes of the job: the command,
  /// and a rank for each device.
  template <typename Kill>
  void kill_while_training(const Kill& kill) const;

  const ScratchFolder files_;
};

template <typename Kill>
void TrainLease::kill_while_training(const Kill& kill) const {
  const auto front = begin(endless(unlike(2)));
  ASSERT_TRUE(eventually([&] { return front->err().find("epoch 1/") != std::string::npos; }, kPatience_s))
      << front->err();
  EXPECT_THAT(leases(), SizeIs(2));
  const pid_t keeper = child_of(front->pid()), command = child_of(keeper);
  std::vector<pid_t> processes = children_of(command);
  processes.insert(processes.begin(), command);
  ASSERT_THAT(processes, SizeIs(3));
  kill(*front, keeper, processes);
  EXPECT_FALSE(front->finish(kPatience_s).exit.ok());
  EXPECT_TRUE(comes_free());
  EXPECT_TRUE(eventually([&] { return all_gone(processes); }, kPatience_s));
}

TEST_F(TrainLease, TrainsOnWhatItAskedForAndGivesItBack) {
  std::vector<std::string> request = unlike(2);
  request.insert(request.end(), {"--json", files_.path("report.json")});
  const Finished finished = ask(train(request));
  EXPECT_EQ(finished.exit.status, 0) << finished;
  const Json report = parse_json(files_.read("report.json"), "report").value();
  EXPECT_EQ(report["host"], "lab");
  ASSERT_EQ(report["devices"].size(), 2);
  EXPECT_EQ(report["devices"][1]["model"], "Model 1");
  EXPECT_THAT(leases(), SizeIs(0));
}

TEST_F(TrainLease, IsTheSameAsRunWithTheTrainingAsItsCommand) {
  std::vector<std::string> words{"run", "-n", "2", "--cpu", "--any-model", "--", REMUDA_PROGRAM};
  for (const std::string& word : train({"--json", files_.path("report.json")})) words.push_back(word);
  words.insert(words.end(), {"--machine", folder_.path("lab.json")});
  EXPECT_EQ(ask(words).exit.status, 0);
  EXPECT_EQ(parse_json(files_.read("report.json"), "report").value()["devices"].size(), 2);
}

TEST_F(TrainLease, OfTwoJobsNeverSharesADevice) {
  const auto first = begin(endless(unlike(2)));
  ASSERT_TRUE(eventually([&] { return leases().size() == 2; }, kPatience_s));
  std::vector<std::string> report = unlike(2);
  report.insert(report.end(), {"--json", files_.path("report.json")});
  const auto second = begin(train(report));
  ASSERT_TRUE(comes_to_wait(1));
  EXPECT_THAT(leases(), SizeIs(2));
  EXPECT_EQ(ask(train({"-n", "2", "--any-model", "--cpu", "--no-wait"})).exit.status, 4);
  const auto third = begin(endless({"--cpu", "--priority", "1"}));
  ASSERT_TRUE(eventually([&] { return leases().size() == 3; }, kPatience_s));
  std::vector<std::string> held;
  for (const Json& lease : leases()) held.push_back(lease["device"]);
  EXPECT_THAT(held, UnorderedElementsAre("cpu:0", "cpu:1", "cpu:2"));
  first->signal(SIGINT);
  EXPECT_EQ(first->finish(kPatience_s).exit.status, 130);
  EXPECT_EQ(second->finish(kPatience_s).exit.status, 0);
  EXPECT_EQ(ask({"cancel", "3"}).exit.status, 0);
  EXPECT_FALSE(third->finish(kPatience_s).exit.ok());
}

TEST_F(TrainLease, GivesAllBackWhenTheFrontIsKilled) {
  kill_while_training([](RunningProgram& front, pid_t, const auto&) { front.signal(SIGKILL); });
}

TEST_F(TrainLease, GivesAllBackWhenTheKeeperIsKilled) {
  kill_while_training([](RunningProgram&, pid_t keeper, const auto&) { ::kill(keeper, SIGKILL); });
}

TEST_F(TrainLease, GivesAllBackWhenTheLauncherIsKilled) {
  kill_while_training([](RunningProgram&, pid_t, const auto& processes) { ::kill(processes[0], SIGKILL); });
}

TEST_F(TrainLease, GivesAllBackWhenARankIsKilled) {
  kill_while_training([](RunningProgram&, pid_t, const auto& processes) { ::kill(processes[2], SIGKILL); });
}

TEST_F(TrainLease, StopsAtTheEndOfAStepWhenItIsCancelled) {
  std::vector<std::string> request = unlike(2);
  request.insert(request.end(), {"--json", files_.path("report.json")});
  const auto front = begin(endless(request));
  ASSERT_TRUE(eventually([&] { return front->err().find("epoch 1/") != std::string::npos; }, kPatience_s));
  EXPECT_EQ(ask({"cancel", "1"}).exit.status, 0);
  front->finish(kPatience_s);
  EXPECT_EQ(parse_json(files_.read("report.json"), "report").value()["stopped"], true);
}

TEST_F(TrainLease, ThatCanNeverBeSaysSoInOneSentence) {
  for (const std::vector<std::string>& how : {std::vector<std::string>{}, {"--dry-run"}}) {
    std::vector<std::string> words = train(unlike(4));
    words.insert(words.end(), how.begin(), how.end());
    const Finished refused = ask(words);
    EXPECT_EQ(refused.exit.status, 3) << refused;
    EXPECT_EQ(refused.err, "remuda: there are 3 devices on lab; 4 are wanted\n");
    EXPECT_EQ(refused.out, "");
  }
}

TEST_F(TrainLease, RefusesWrongInputBeforeItWaits) {
  const auto holder = begin({"run", "-n", "3", "--any-model", "--cpu", "--", "sleep", "1000"});
  ASSERT_TRUE(eventually([&] { return leases().size() == 3; }, kPatience_s));
  files_.write("train.labels", "no labels");
  const Finished refused = ask(train(unlike(2)));
  EXPECT_EQ(refused.exit.status, 2) << refused;
  EXPECT_THAT(refused.err, HasSubstr("train.labels"));
  const Finished few = ask(train({"-n", "3", "--any-model", "--cpu", "--set", "train.global_batch=2"}));
  EXPECT_EQ(few.exit.status, 2) << few;
  EXPECT_THAT(few.err, HasSubstr("train.global_batch is 2, but each of the 3 devices needs at least one sample"));
  EXPECT_EQ(waiting(), 0);
  holder->signal(SIGTERM);
  holder->finish(kPatience_s);
}

TEST_F(TrainLease, MayBeAskedForInTheFile) {
  JobText asking = job();
  asking.devices = "[placement]\ngpus = 2\nany_model = true\ncpu = true\n";
  const ScratchFolder files = job_folder(asking);
  const Finished finished = ask({"train", files.path("job.toml"), "--json", files.path("report.json")});
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_EQ(parse_json(files.read("report.json"), "report").value()["devices"].size(), 2);
  EXPECT_EQ(ask({"train", files.path("job.toml"), "-n", "4"}).exit.status, 3) << "the command line wins";
  EXPECT_THAT(ask({"ps", "--json"}).out, HasSubstr("\"leases\": []"));
}

TEST_F(TrainLease, WithinAJobAsksForNoOthers) {
  const auto within = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"run", "--cpu", "--", REMUDA_PROGRAM};
    for (const std::string& word : train(std::move(more))) words.push_back(word);
    words.insert(words.end(), {"--machine", folder_.path("lab.json")});
    return ask(words);
  };
  const Finished asking = within({"-n", "2"});
  EXPECT_EQ(asking.exit.status, 2) << asking;
  EXPECT_EQ(asking.err,
            "remuda: --gpus=2 asks for devices, but this runs within job 1, which holds cpu:0: leave it out, "
            "and the run uses those\n");
  const Finished naming = within({"--devices", "cpu:0,cpu:1"});
  EXPECT_EQ(naming.exit.status, 2) << naming;
  EXPECT_THAT(naming.err, HasSubstr("device cpu:1 is not held by job 2"));
}

TEST_F(TrainLease, DryRunGivesTheReasonOfEachFigure) {
  const auto rehearse = [&] { return ask(train({"-n", "2", "--cpu", "--any-model", "--dry-run"})).out; };
  EXPECT_THAT(rehearse(),
              AllOf(ContainsRegex("mlp would train on lab:\n"), ContainsRegex("1  cpu:1 +Model 1 +50.0 % +24"),
                    HasSubstr("step not known: no run has measured this job on cpu:0, cpu:1 yet"),
                    HasSubstr("shares: equal, as their speeds are not known"), HasSubstr("precision: "),
                    HasSubstr("memory: what the devices have"), HasSubstr("chosen      cpu:0, cpu:1")));
  ASSERT_EQ(ask(train({"-n", "2", "--cpu", "--any-model", "--json", files_.path("first.json")})).exit.status, 0);
  EXPECT_THAT(rehearse(),
              AllOf(ContainsRegex("step [0-9.e-]+ s, [0-9]+ samples/s: [0-9.e-]+ s for the longest part"),
                    ContainsRegex("memory cpu:0 [0-9.]+ [KM]iB, cpu:1 [0-9.]+ [KM]iB: what a step takes at most")));
  ASSERT_EQ(ask(train({"-n", "2", "--cpu", "--any-model", "--json", files_.path("second.json")})).exit.status, 0);
  const auto compared =
      run({REMUDA_PROGRAM, "report", files_.path("first.json"), files_.path("second.json")}, environment());
  EXPECT_THAT(compared.out, ContainsRegex("predicted/s +- +[0-9]+")) << compared;
  EXPECT_THAT(compared.out, ContainsRegex("difference +- +[-+][0-9.]+ %")) << compared;
}

TEST_F(TrainLease, RefusesAGpuThatItsLibtorchCannotUse) {
  const std::string machine = REMUDA_MACHINES "/nv-2x3090-nvlink-bridge.json";
  const Finished refused = run({REMUDA_PROGRAM, "train", job_file(), "-n", "2", "--machine", machine}, environment());
  EXPECT_EQ(refused.exit.status, 2) << refused;
  EXPECT_THAT(refused.err, EndsWith("such as --torch=python\n"));
}

/// From the steps of its ranks over the keeper's board and the pool to those who look.
TEST_F(TrainLease, TellsForHowMuchOfTheTimeItsDevicesWait) {
  JobText unbalanced;
  unbalanced.balance = "policy = 'even'\n";
  unbalanced.devices += "slowdown = 4.0\n";
  const ScratchFolder files = job_folder(unbalanced);
  const std::string watched = folder_.path("watched"), metrics = folder_.path("remuda.prom");
  const auto watch = begin({"watch", "--folder", watched, "--text-file", metrics});
  const auto front =
      begin({"run", "-n", "2", "--cpu", "--any-model", "--", REMUDA_PROGRAM, "train", files.path("job.toml"), "--set",
             "train.epochs=1000000", "--set", "checkpoint.folder=" + files.path("kept"), "--set",
             "checkpoint.every_minutes=30", "--machine", folder_.path("lab.json")});
  const auto has_told = [&] {
    return folder_.read("remuda.prom").find("remuda_run_waiting_ratio{") != std::string::npos;
  };
  ASSERT_TRUE(eventually(has_told, kPatience_s)) << front->err();
  const Json run = parse_json(ask({"show", "1", "--json"}).out, "show").value()["jobs"][0]["run"];
  ASSERT_EQ(run["parts"].size(), 2) << run;
  EXPECT_GT(run["parts"][0]["waiting"], 0.1) << run;
  EXPECT_GT(run["parts"][0]["waiting"], run["parts"][1].value("waiting", 0.0)) << "the other one is slow";
  for (const Json& part : run["parts"]) EXPECT_EQ(part["share"], 0.5) << run;
  EXPECT_GT(run["step"], 0);
  EXPECT_EQ(run["checkpoint_every_s"], 1800) << run;
  EXPECT_THAT(ask({"show", "1"}).out, ContainsRegex("run +step [0-9]+ of [0-9]+, .*; cpu:0 waits for others "));
  EXPECT_THAT(ask({"show", "1"}).out, ContainsRegex("; no checkpoint for .* s, wanted every 30 min\n"));
  front->signal(SIGINT);
  front->finish(kPatience_s);
  watch->signal(SIGTERM);
  EXPECT_EQ(watch->finish(kPatience_s).exit.status, 0);
  const Finished usage = ask({"usage", "--waste", "--by", "job", "--json", "--folder", watched});
  const Json waste = parse_json(usage.out, "usage").value()["waste"];
  ASSERT_EQ(waste.size(), 1) << usage;
  EXPECT_GT(waste[0]["waiting_known_s"], 0) << usage;
  EXPECT_GT(waste[0]["waiting_s"], 0) << usage;
  EXPECT_LT(waste[0]["waiting_s"], waste[0]["waiting_known_s"]) << usage;
}

/// The CPU devices of this very machine: each rank has the cores of its lease.
class TrainLeaseHere : public TrainLease {
 protected:
  std::vector<std::string> machine() const override { return {"--cpu-devices", "2"}; }
};

TEST_F(TrainLeaseHere, HasTheCoresThatItHolds) {
  REMUDA_NEEDS_TWO_CORES();
  std::vector<std::string> words{"run", "--device",    "cpu:1", "--cpu",
                                 "--",  "/bin/sh",     "-c",    "echo $REMUDA_DEVICE_CPUS >\"$OUT/cpus\"; exec \"$@\"",
                                 "sh",  REMUDA_PROGRAM};
  for (const std::string& word : endless({})) words.push_back(word);
  const auto front = begin(words);
  ASSERT_TRUE(eventually([&] { return front->err().find("epoch 1/") != std::string::npos; }, kPatience_s))
      << front->err();
  EXPECT_THAT(front->err(), HasSubstr("training on cpu:1\n"));
  const pid_t rank = child_of(child_of(child_of(front->pid())));
  std::string cpus = folder_.read("cpus");
  cpus.pop_back();
  EXPECT_THAT(read_text(fmt::format("/proc/{}/status", rank)).value(), HasSubstr("Cpus_allowed_list:\t" + cpus + "\n"));
  front->signal(SIGINT);
  EXPECT_EQ(front->finish(kPatience_s).exit.status, 130);
}

}  // namespace
}  // namespace remuda::tests
