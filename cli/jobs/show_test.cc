#include "cli/jobs/show.h"

#include <gmock/gmock.h>

#include "base/local_time.h"

namespace remuda::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr double kShown_s = 1'000'000;

Inventory one_gpu() {
  Inventory inventory;
  inventory.devices.push_back({.id = "GPU-0", .kind = DeviceKind::gpu, .index = 0});
  return inventory;
}

pool::Job ended() {
  pool::Job job;
  job.id = 7;
  job.user = "ada";
  job.name = "sweep";
  job.state = pool::JobState::ended;
  job.submitted_s = kShown_s - 400;
  job.started_s = kShown_s - 300;
  job.ended_s = kShown_s - 180;
  job.signal = 9;
  job.why = "killed by signal 9 (Killed)";
  job.devices = {"GPU-0", "GPU-gone"};
  job.earlier = {{kShown_s - 390, kShown_s - 380, {"GPU-0"}}};
  job.command = {"python", "train\x1b.py"};
  return job;
}

TEST(Show, SaysHowAJobEndedWhenAndOnWhat) {
  const std::string text = job_text(ended(), one_gpu(), kShown_s);
  EXPECT_THAT(text, AllOf(HasSubstr("job         7 (sweep)\n"), HasSubstr("state       failed\n"),
                          HasSubstr("exit        137 (signal 9)\n"), HasSubstr("ran for     2 min\n"),
                          HasSubstr("had         gpu:0, GPU-gone\n"), HasSubstr("before      gpu:0 for 10 s, ")));
  EXPECT_THAT(text, HasSubstr("ended       " + local_time_text(kShown_s - 180) + ", 3 min ago\n"));
  EXPECT_THAT(text, AllOf(HasSubstr("command     python train?.py\n"), Not(HasSubstr("begins"))));
}

TEST(Show, SaysWhenAWaitingJobBegins) {
  pool::Job job;
  job.id = 8;
  job.paused = true;
  job.begin_s = kShown_s + 7200;
  const std::string text = job_text(job, one_gpu(), kShown_s);
  EXPECT_THAT(text, AllOf(HasSubstr("state       paused\n"), HasSubstr(", in 2 h\n"), Not(HasSubstr("exit"))));
}

TEST(Show, SaysAllThatAJobAsksFor) {
  pool::Job job;
  job.request.devices = {"gpu:3"};
  EXPECT_THAT(job_text(job, one_gpu(), kShown_s), HasSubstr("asks for    1 device of gpu:3\n"));
  job.request = {
      .count = 2, .model = "*A100*", .link = place::LinkNeed::nvlink, .any_model = true, .devices = {"0", "1", "2"}};
  EXPECT_THAT(job_text(job, one_gpu(), kShown_s),
              HasSubstr("asks for    2 devices of 0, 1, 2 that are called '*A100*', joined by nvlink, of any model\n"));
}

TEST(Show, SaysWhatAJobHasOfTheHostAndWhatKeepsItToThat) {
  pool::Job job = ended();
  job.cores = {0, 1, 2, 5};
  job.request.cores = 4;
  job.request.host_memory_bytes = int64_t{16} << 30;
  EXPECT_THAT(
      job_text(job, one_gpu(), kShown_s),
      AllOf(HasSubstr("asks for    1 device, 4 cores and 16 GiB of the host\n"),
            HasSubstr("had         gpu:0, GPU-gone, cores 0-2,5 and 16 GiB of the host\n"), Not(HasSubstr("kept"))));
  job.state = pool::JobState::running;
  job.host = {.cores = "cpuset", .memory = true, .why = ""};
  EXPECT_THAT(job_text(job, one_gpu(), kShown_s),
              HasSubstr("kept        it runs on no other cores; it cannot take more memory\n"));
  job.host = {.cores = "", .memory = false, .why = "no cgroups here"};
  EXPECT_THAT(
      job_text(job, one_gpu(), kShown_s),
      HasSubstr("kept        it starts on its cores, and may leave them; nothing keeps it from taking more memory "
                "(no cgroups here)\n"));
}

TEST(Show, SaysHowMuchMemoryAJobHadOrWhyThatIsNotKnown) {
  pool::Job job = ended();
  EXPECT_THAT(job_text(job, one_gpu(), kShown_s), Not(HasSubstr("memory"))) << "of an older program";
  job.memory_peak_bytes = int64_t{3} << 30;
  EXPECT_THAT(job_text(job, one_gpu(), kShown_s), HasSubstr("memory      3 GiB of the host at once, at most\n"));
  EXPECT_EQ(job_json(job, one_gpu(), kShown_s)["memory_peak_bytes"], int64_t{3} << 30);
  job.memory_peak_bytes = Missing{MissingReason::unsupported, "no cgroup holds the job"};
  EXPECT_THAT(job_text(job, one_gpu(), kShown_s), HasSubstr("memory      not known: no cgroup holds the job\n"));
  EXPECT_EQ(job_json(job, one_gpu(), kShown_s)["memory_peak_bytes"]["detail"], "no cgroup holds the job");
}

TEST(Show, HasTheWholeRecordAsJson) {
  const Json json = job_json(ended(), one_gpu(), kShown_s);
  EXPECT_EQ(json["job"], "7");
  EXPECT_EQ(json["stage"], "failed");
  EXPECT_EQ(json["exit"], 137);
  EXPECT_EQ(json["ran_s"], 120);
  EXPECT_EQ(json["labels"], (Json{"gpu:0", "GPU-gone"}));
  EXPECT_EQ(json["earlier"][0]["devices"][0], "GPU-0");
}

TEST(Show, SaysHowTheRunOfAJobGoesWhileItTells) {
  pool::Job job;
  job.id = 7;
  job.state = pool::JobState::running;
  job.run = {.at_s = kShown_s - 20,
             .step = 120,
             .steps = 1000,
             .step_s = 2,
             .parts = {{.device = "GPU-0", .waiting = 0.5}, {.device = "cpu:0", .waiting = 0.02}}};
  EXPECT_THAT(job_text(job, one_gpu(), kShown_s),
              HasSubstr("run         step 120 of 1000, 2.0 s each, 29 min left; gpu:0 waits for others 50 %, cpu:0 "
                        "waits for others 2 % of "
                        "the time\n"));
  job.run.at_s = kShown_s - 200;
  EXPECT_THAT(job_text(job, one_gpu(), kShown_s), Not(HasSubstr("step 120")));
}

}  // namespace
}  // namespace remuda::cli
