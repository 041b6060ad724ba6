// `remuda run --cpus --host-mem`: cores and memory of this machine as a part of a lease. Cores of CPU devices, as every
// machine has those; what a cgroup keeps is skipped where this user may make none.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "process/affinity.h"
#include "tests/job_fixture.h"

namespace remuda::tests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

/// A line of shell that takes so much memory.
std::string takes(int mib) { return fmt::format("x=$(head -c {}M /dev/zero | tr '\\0' x)", mib); }

class HostShare : public JobTest {
 protected:
  void SetUp() override {
    if (process::allowed_cores().size() < 2) GTEST_SKIP() << "this machine has one core";
  }
  std::vector<std::string> machine() const override { return {"--cpu-devices", "2"}; }

  std::vector<std::string> job(const std::string& device, const std::string& cores, const std::string& script) const {
    return {"run", "-q", "--device", device, "--cpus", cores, "--", "/bin/sh", "-c", script};
  }
  Json job_of(const std::string& id) const {
    return parse_json(ask({"show", "--json", id}).out, "show").value_or(Json{})["jobs"][0];
  }
};

TEST_F(HostShare, AJobRunsOnItsCores) {
  EXPECT_EQ(ask(job("cpu:0", "1", "nproc")).out, "1\n");
  EXPECT_EQ(job_of("1")["cores"].size(), 1U);
  EXPECT_EQ(job_of("1")["request"]["cores"], 1);
}

TEST_F(HostShare, NoTwoJobsHaveOneCore) {
  const std::string waits = "nproc > \"$OUT/$0\"; exec sleep 1000";
  const auto first = begin({"run", "-q", "--device", "cpu:0", "--cpus", "1", "--", "sh", "-c", waits, "a"}),
             second = begin({"run", "-q", "--device", "cpu:1", "--cpus", "1", "--", "sh", "-c", waits, "b"});
  ASSERT_TRUE(comes("a") && comes("b"));
  const Json all = leases();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_NE(all[0]["cores"], all[1]["cores"]);
  EXPECT_THAT(ask({"ps"}).out, HasSubstr("1 core"));
  const std::string cores = std::to_string(process::allowed_cores().size() - 1);
  const Finished refused =
      ask({"run", "--no-wait", "--device", "cpu:1", "--share", "50%", "--cpus", cores, "--", "true"});
  EXPECT_EQ(refused.exit.status, 4) << refused;
  EXPECT_EQ(ask({"cancel", "1", "2"}).exit.status, 0);
}

TEST_F(HostShare, MoreThanTheHostHasIsNeverGranted) {
  const Finished cores = ask(job("cpu:0", "60000", "true"));
  EXPECT_EQ(cores.exit.status, 3) << cores;
  EXPECT_THAT(cores.err, HasSubstr("cores; 60000 are wanted"));
  const Finished memory = ask({"run", "--device", "cpu:0", "--host-mem", "900TiB", "--", "true"});
  EXPECT_EQ(memory.exit.status, 3) << memory;
  EXPECT_THAT(memory.err, HasSubstr("of memory; 900 TiB are wanted"));
}

TEST_F(HostShare, AJobThatTakesMoreMemoryIsEndedAndToldWhy) {
  const std::string script = takes(8) + "; echo little; " + takes(400) + "; echo much";
  const Finished ran = ask({"run", "--device", "cpu:0", "--host-mem", "64MiB", "--", "/bin/sh", "-c", script});
  const Json job = job_of("1");
  if (!job["host"].value("memory", false)) {
    EXPECT_FALSE(job["host"]["why"].get<std::string>().empty()) << job;
    GTEST_SKIP() << job["host"]["why"];
  }
  EXPECT_THAT(ran.out, StartsWith("little\n"));
  EXPECT_THAT(job["why"].get<std::string>(), HasSubstr("as more was wanted than its 64 MiB of the host")) << ran;
}

TEST_F(HostShare, ShowTellsHowMuchMemoryAJobHad) {
  ASSERT_EQ(::mkfifo(folder_.path("go").c_str(), 0600), 0);
  const auto run = begin(job("cpu:0", "1", takes(64) + "; echo >\"$OUT/taken\"; x=; read go <\"$OUT/go\""));
  ASSERT_TRUE(comes("taken"));
  const Json now = job_of("1")["memory_peak_bytes"];
  folder_.write("go", "\n");
  run->finish();
  const Json after = job_of("1")["memory_peak_bytes"];
  if (!after.is_number()) {
    EXPECT_THAT(ask({"show", "1"}).out, HasSubstr("memory      not known: " + after["detail"].get<std::string>()));
    GTEST_SKIP() << after["detail"];
  }
  EXPECT_GT(now.get<int64_t>(), int64_t{64} << 20) << "while it runs";
  EXPECT_GE(after.get<int64_t>(), now.get<int64_t>());
}

TEST_F(HostShare, WhoAsksForNoCoresStartsOnThoseThatNobodyHas) {
  const auto first = begin(job("cpu:0", "1", "echo $$ > \"$OUT/first\"; exec sleep 1000"));
  ASSERT_TRUE(comes("first"));
  const std::vector<int> own = leases()[0]["cores"].get<std::vector<int>>();
  const Finished other = ask({"run", "-q", "--device", "cpu:1", "--", "nproc"});
  EXPECT_LE(std::stoul("0" + other.out), process::allowed_cores().size() - own.size()) << other;
  EXPECT_EQ(ask({"cancel", "1"}).exit.status, 0);
}

TEST_F(HostShare, RanksShareTheCoresOfTheirJob) {
  const Finished ran = ask({"run", "-q", "--cpu", "-n", "2", "--device", "cpu:0,cpu:1", "--cpus", "2", "--each", "--",
                            "/bin/sh", "-c", "echo $(env -u OMP_NUM_THREADS nproc) $OMP_NUM_THREADS"});
  EXPECT_EQ(ran.out, "2 1\n2 1\n") << ran;
}

}  // namespace
}  // namespace remuda::tests
