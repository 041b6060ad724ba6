// Two hosts: a rank in each of two network namespaces, joined by a virtual cable. Needs root.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/env.h"
#include "tests/train_job_files.h"
#include "tests/two_hosts.h"

namespace remuda::tests {
namespace {

using ::testing::HasSubstr;

const std::string kSecret(32, 'a');

TEST(TrainHosts, RankOnEachOfTwoHostsLearnsTheSame) {
  const TwoHosts hosts;
  if (!hosts.works()) GTEST_SKIP() << "needs root and network namespaces";
  const ScratchFolder folder = job_folder();
  const Json expected = train_report(folder, {"--devices", "cpu:0"});
  RunningProgram first = hosts.start(0, folder, kSecret), second = hosts.start(1, folder, kSecret);
  const Finished ended = first.finish();
  ASSERT_TRUE(ended.exit.ok()) << ended;
  EXPECT_TRUE(second.finish().exit.ok()) << second.err();
  const auto report = parse_json(ended.out, "rank 0's output");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ((*report)["transport"], "tcp, encrypted");
  for (size_t epoch = 0; epoch < 3; ++epoch)
    EXPECT_NEAR((*report)["loss_per_epoch"][epoch], expected["loss_per_epoch"][epoch], 1e-4);
}

TEST(TrainHosts, RanksOfSeveralHostsNeedOnlyTheVariablesOfTheirLauncher) {
  const TwoHosts hosts;
  if (!hosts.works()) GTEST_SKIP() << "needs root and network namespaces";
  const ScratchFolder folder = job_folder(), home;
  RunningProgram first = hosts.launch(0, folder, home), second = hosts.launch(1, folder, home);
  const Finished ended = first.finish(), other = second.finish();
  ASSERT_TRUE(ended.exit.ok()) << ended << other;
  EXPECT_TRUE(other.exit.ok()) << other;
  const auto report = parse_json(folder.read("report-0.json"), "the report");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ((*report)["transport"], "tcp, encrypted");
  EXPECT_EQ((*report)["devices"][1]["id"], "rank:1");
}

/// A host's ranks see each other's processes, and nobody else's.
TEST(TrainHosts, TwoRanksOnEachOfTwoHostsShareMemoryAndSpeakTcpBetweenThem) {
  const TwoHosts hosts;
  if (!hosts.works() || !run({"unshare", "--pid", "--fork", "true"}).exit.ok())
    GTEST_SKIP() << "needs root and namespaces of networks and processes";
  JobText job;
  job.devices = "";
  for (int rank = 0; rank < 4; ++rank) job.devices += "[[device]]\nuse = 'cpu:0'\nshared = true\n";
  const ScratchFolder folder = job_folder(job);
  const Json expected = train_report(folder, {"--devices", "cpu:0"});
  const auto start = [&](int host) {
    const auto environment = HandStarted{.rank = 0,
                                         .size = 4,
                                         .port = 29500,
                                         .master = hosts.address(0),
                                         .bind = hosts.address(host),
                                         .secret = kSecret}
                                 .environment();
    const std::string both =
        "RANK=$1 \"$3\" \"$4\" & first=$!; RANK=$2 \"$3\" \"$4\"; last=$?; wait $first && exit $last";
    std::vector<std::string> command{
        "unshare", "--pid", "--fork", "--mount-proc",           "sh",
        "-c",      both,    "sh",     std::to_string(2 * host), std::to_string(2 * host + 1)};
    const auto worker = worker_command(folder);
    command.insert(command.end(), worker.begin(), worker.end());
    return hosts.start(host, command, environment);
  };
  RunningProgram first = start(0), second = start(1);
  const Finished ended = first.finish(), other = second.finish();
  ASSERT_TRUE(ended.exit.ok()) << ended << other;
  EXPECT_TRUE(other.exit.ok()) << other;
  const auto report = parse_json(ended.out, "rank 0's output");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ((*report)["transport"], "shared memory, encrypted tcp between hosts");
  for (size_t epoch = 0; epoch < 3; ++epoch)
    EXPECT_NEAR((*report)["loss_per_epoch"][epoch], expected["loss_per_epoch"][epoch], 1e-4);
}

TEST(TrainHosts, AnotherSecretEndsBoth) {
  const TwoHosts hosts;
  if (!hosts.works()) GTEST_SKIP() << "needs root and network namespaces";
  const ScratchFolder folder = job_folder();
  RunningProgram first = hosts.start(0, folder, kSecret, 3), second = hosts.start(1, folder, std::string(32, 'b'), 3);
  const Finished refused = second.finish(), waited = first.finish();
  EXPECT_EQ(refused.exit.status, 2) << refused;
  EXPECT_THAT(refused.err, HasSubstr("secret"));
  EXPECT_EQ(waited.exit.status, 1) << waited;
  EXPECT_THAT(waited.err, HasSubstr("rank 1 of 2 did not come within 3 s"));
  EXPECT_THAT(waited.err, HasSubstr(hosts.address(1)));
  EXPECT_THAT(waited.err, HasSubstr("secret"));
}

TEST(TrainHosts, ASecretThatIsShortIsRefusedByBoth) {
  const TwoHosts hosts;
  if (!hosts.works()) GTEST_SKIP() << "needs root and network namespaces";
  const ScratchFolder folder = job_folder();
  RunningProgram first = hosts.start(0, folder, "short", 30), second = hosts.start(1, folder, "short", 30);
  for (const Finished& ended : {first.finish(), second.finish()}) {
    EXPECT_EQ(ended.exit.status, 2) << ended;
    EXPECT_THAT(ended.err, HasSubstr("REMUDA_SECRET must be random text of at least 128"));
  }
}

TEST(TrainHosts, EncryptionCanBeTurnedOffByAllRanks) {
  const TwoHosts hosts;
  if (!hosts.works()) GTEST_SKIP() << "needs root and network namespaces";
  JobText job;
  job.train += "encrypt = 'off'\n";
  const ScratchFolder folder = job_folder(job);
  RunningProgram first = hosts.start(0, folder, kSecret), second = hosts.start(1, folder, kSecret);
  const Finished ended = first.finish();
  ASSERT_TRUE(ended.exit.ok()) << ended;
  EXPECT_TRUE(second.finish().exit.ok()) << second.err();
  const auto report = parse_json(ended.out, "rank 0's output");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ((*report)["transport"], "tcp");
}

}  // namespace
}  // namespace remuda::tests
