#include "run/job_output.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>

#include "base/text.h"
#include "pool/logs.h"

namespace remuda::run {

Result<Fd> open_log(const RunSpec& spec, int64_t job) {
  const std::string& path = spec.job.log;
  if (path.empty()) return spec.log_only ? pool::open_pool_log(spec.pool, job) : Result<Fd>();
  Fd log(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0666));
  if (!log && errno == ENXIO) return usage_error(fmt::format("{} is a pipe that nobody reads", printable(path)));
  if (!log) return usage_error(fmt::format("cannot write {}: {}", printable(path), errno_text(errno)));
  ::fcntl(log.get(), F_SETFL, O_WRONLY | O_APPEND);
  return log;
}

Result<JobOutput> JobOutput::open(const RunSpec& spec, int64_t job) {
  JobOutput output;
  REMUDA_ASSIGN(output.log_, open_log(spec, job));
  if (!output.log_ || spec.log_only) return output;
  REMUDA_ASSIGN(Tee tee, Tee::open(std::move(output.log_)));
  output.tee_.emplace(std::move(tee));
  return output;
}

}  // namespace remuda::run
