// Any bytes are a job or a usage error, and a job's text reads back as the same job. What follows the first zero byte
// is taken as a --set.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "job/train_job.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  const size_t zero = input.find('\0');
  remuda::job::JobOverrides overrides;
  if (zero != std::string::npos) overrides.settings.push_back(input.substr(zero + 1));
  const auto job = remuda::job::parse_job(input.substr(0, zero), "/jobs/job.toml", overrides);
  if (!job) {
    REMUDA_CHECK(job.error().kind == remuda::ErrorKind::usage, "a wrong job is the user's error");
    REMUDA_CHECK(job.error().message.find('\n') == std::string::npos, "an error is one line");
    return 0;
  }
  const auto again = remuda::job::parse_job(job->text, "/elsewhere/job.toml");
  REMUDA_CHECK(again, "a job's text is a job");
  REMUDA_CHECK(again->job == job->job, "a job's text is the same job");
  return 0;
}
