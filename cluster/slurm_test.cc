#include "cluster/slurm.h"

#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/manual_clock.h"
#include "base/testing/scratch_folder.h"
#include "process/stat.h"

namespace remuda::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(SlurmText, ListsTheFilesOfGpusInSlurmsOrder) {
  EXPECT_THAT(
      parse_gres_files("slurmd: Gres Name=gpu Type=a100 Count=2 Index=0 ID=7696487 File=/dev/nvidia[0-1] Links=(null)\n"
                       "slurmd: Gres Name=mps Type=(null) Count=100 File=/dev/nvidia7\n"
                       "slurmd: Gres Name=gpu Type=v100 Count=1 Index=3 File=/dev/nvidia3 Cores=0-3\n"
                       "slurmd: Gres Name=gpu Type=(null) Count=1 File=(null)\n"),
      ElementsAre("/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia3"));
  EXPECT_THAT(parse_gres_files("slurmd: error: no gres\n"), IsEmpty());
}

TEST(SlurmText, KnowsWhichGpusJobsHave) {
  EXPECT_THAT(parse_used_gpus("NodeName=box Arch=x86_64\n   Gres=gpu:a100:4(S:0-1)\n   GresDrain=N/A\n"
                              "   GresUsed=gpu:a100:2(IDX:0,2-3),mps:0(IDX:N/A)\n"),
              ElementsAre(0, 2, 3));
  EXPECT_THAT(parse_used_gpus("   GresUsed=gpu:0(IDX:N/A)\n"), IsEmpty());
  EXPECT_THAT(parse_used_gpus("GresUsed=gpu:1(IDX:0-99999999999)"), IsEmpty());
  EXPECT_EQ(parse_used_gpus("GresUsed=gpu:1(IDX:0-999999999)").size(), 1024U);
}

TEST(SlurmText, TakesAJobsPartOfThisNode) {
  const char* text =
      "JobId=123 JobName=train\n   UserId=ana(1000) GroupId=ana(1000) MCS_label=N/A\n   NodeList=box,cub[1-2]\n"
      "   JOB_GRES=gpu:3\n     Nodes=box CPU_IDs=0-1 Mem=0 GRES=gpu:a100:1(IDX:2)\n"
      "     Nodes=cub[1-2] CPU_IDs=0 Mem=0 GRES=gpu:a100:1(IDX:0)\n";
  EXPECT_EQ(parse_slurm_job(text, 123, "box"), (SlurmJob{"ana", {2}}));
  EXPECT_EQ(parse_slurm_job(text, 123, "cub2"), (SlurmJob{"ana", {0}}));
  EXPECT_EQ(parse_slurm_job(text, 123, "cub3"), (SlurmJob{"ana", {}}));
  EXPECT_EQ(parse_slurm_job(text, 124, "box"), SlurmJob{}) << "another one of its array";
}

TEST(SlurmText, ReadsListsOfNodes) {
  EXPECT_TRUE(has_node("a,box[01-03,7]", "box02"));
  EXPECT_TRUE(has_node("a,box[01-03,7]", "box7"));
  EXPECT_TRUE(has_node("a,box[01-03,7]", "a"));
  EXPECT_FALSE(has_node("a,box[01-03,7]", "box2")) << "it is written with two digits";
  EXPECT_FALSE(has_node("a,box[01-03,7]", "box"));
  EXPECT_FALSE(has_node("]a[", "a"));
}

TEST(SlurmText, FindsTheJobOfACgroup) {
  EXPECT_EQ(job_of_cgroup("0::/system.slice/slurmstepd.scope/job_123/step_0/user/task_0"), 123);
  EXPECT_EQ(job_of_cgroup("5:devices:/slurm_box/uid_1000/job_45/step_batch"), 45);
  EXPECT_EQ(job_of_cgroup("0::/user.slice/job_7"), std::nullopt);
  EXPECT_EQ(job_of_cgroup("0::/system.slice/slurmd.service"), std::nullopt);
}

/// Two GPUs whose device files are two that every machine has, of which Slurm has the first.
class SlurmTest : public testing::Test {
 protected:
  SlurmTest() {
    for (int index = 0; index < 2; ++index) {
      Device gpu{.id = "GPU-" + std::to_string(index), .kind = DeviceKind::gpu, .index = index, .vendor = "AMD"};
      gpu.pci = "0000:0" + std::to_string(index) + ":00.0";
      box_.devices.push_back(gpu);
    }
    folder_.write("sys/bus/pci/devices/0000:00:00.0/drm/renderD128/dev", "1:7\n");  // /dev/full
    folder_.write("sys/bus/pci/devices/0000:01:00.0/drm/renderD129/dev", "1:5\n");  // /dev/zero
    folder_.write("proc/7/cgroup", "0::/system.slice/slurmstepd.scope/job_123/step_0\n");
    says_["slurmd -G"] = "slurmd: Gres Name=gpu Count=1 File=/dev/full\n";
    says_["scontrol show node --details box"] = "NodeName=box\n  GresUsed=gpu:1(IDX:0)\n";
    says_["scontrol show job --details 123"] = "JobId=123\n UserId=ana(1000)\n  Nodes=box GRES=gpu:1(IDX:0)\n";
  }
  Slurm::Options options() {
    return {.run = [this](const std::vector<std::string>& argv) -> Result<std::string> {
              std::string line = argv[0];
              for (size_t i = 1; i < argv.size(); ++i) line += " " + argv[i];
              asked_.push_back(argv[0]);
              const auto said = says_.find(line);
              return said == says_.end() ? failed("it does not answer") : Result<std::string>(said->second);
            },
            .is_here = [this] { return is_here_; },
            .node = "box",
            .proc = folder_.path("proc"),
            .sysfs = folder_.path("sys")};
  }
  std::vector<pool::Allocation> look() {
    clock_.sleep_s(10);
    return slurm_.allocations(box_);
  }

  const ScratchFolder folder_;
  Inventory box_;
  std::map<std::string, std::string> says_;
  std::vector<std::string> asked_;
  bool is_here_ = true;
  ManualClock clock_;
  Slurm slurm_ = Slurm(options(), clock_);
};

TEST_F(SlurmTest, ItsDevicesAreItsJobs) {
  EXPECT_THAT(look(), ElementsAre(pool::Allocation{"GPU-0", "Slurm", "slurm job 123 (ana)", "srun or sbatch"}));
  says_["scontrol show node --details box"] = "GresUsed=gpu:1\n";
  EXPECT_EQ(look()[0].holder, "slurm job 123 (ana)") << "without a type";
  says_["scontrol show node --details box"] = "GresUsed=gpu:0\n";
  folder_.remove("proc/7/cgroup");
  EXPECT_THAT(look(), ElementsAre(pool::Allocation{"GPU-0", "Slurm", "", "srun or sbatch"}));
}

TEST_F(SlurmTest, AJobWithoutAProcessIsNamedByItsQueue) {
  folder_.remove("proc/7/cgroup");
  EXPECT_THAT(look(), ElementsAre(pool::Allocation{"GPU-0", "Slurm", "a slurm job", "srun or sbatch"}));
  says_["squeue --noheader --nodelist=box --states=RUNNING,SUSPENDED,COMPLETING,CONFIGURING,STOPPED --format=%A"] =
      "123\n";
  EXPECT_EQ(look()[0].holder, "slurm job 123 (ana)");
}

TEST_F(SlurmTest, WhatItSaidLastHoldsWhileItDoesNotAnswer) {
  look();
  says_.clear();
  EXPECT_EQ(look()[0].holder, "slurm job 123 (ana)");
}

TEST_F(SlurmTest, AllGpusAreItsWhereItDoesNotSayWhich) {
  says_.clear();
  EXPECT_EQ(look().size(), 2U);
}

TEST_F(SlurmTest, IsNotAskedWhereItIsNotOrHasNone) {
  is_here_ = false;
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_THAT(asked_, IsEmpty());
  is_here_ = true;
  says_["slurmd -G"] = "";
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_THAT(asked_, ElementsAre("slurmd"));
}

TEST_F(SlurmTest, IsAskedEveryFewSecondsAtTheMost) {
  look();
  const size_t asked = asked_.size();
  slurm_.allocations(box_);
  EXPECT_EQ(asked_.size(), asked);
}

/// A process of that name and user, until the test ends.
class NamedProcess {
 public:
  NamedProcess(const char* name, uid_t user) : pid_(::fork()) {
    if (pid_ != 0) return;
    const bool is_made = ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::setresuid(user, user, user) == 0 &&
                         ::prctl(PR_SET_NAME, name) == 0;
    while (is_made) ::pause();
    ::_exit(1);
  }
  NamedProcess(const NamedProcess&) = delete;
  ~NamedProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  bool is_ready(std::string_view name) const {
    for (int tries = 0; tries < 1000; ++tries, ::usleep(5000))
      if (const auto stat = process::process_stat(pid_); stat && stat->name == name) return true;
    return false;
  }

 private:
  pid_t pid_;
};

TEST(SlurmHere, ADaemonOfSlurmIsOneOfRoot) {
  const auto is_here = slurm_here().is_here;
  if (is_here()) GTEST_SKIP() << "there is one here";
  constexpr uid_t kNobody = 65534;
  const NamedProcess other("slurmd", ::geteuid() == 0 ? kNobody : ::geteuid());
  ASSERT_TRUE(other.is_ready("slurmd"));
  EXPECT_FALSE(is_here()) << "what any user can start takes no device from others";
  if (::geteuid() != 0) return;
  const NamedProcess own("slurmd", 0);
  ASSERT_TRUE(own.is_ready("slurmd"));
  EXPECT_TRUE(is_here());
}

}  // namespace
}  // namespace remuda::cluster
