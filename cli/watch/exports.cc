#include "cli/watch/exports.h"

#include <unistd.h>
#include <utility>

#include "base/file.h"
#include "monitor/dcgm.h"

namespace remuda::cli {
namespace {

Result<void> put(const std::string& path, const std::string& text) {
  REMUDA_ASSIGN(PendingFile file, PendingFile::create(path));
  return file.commit(text);
}

}  // namespace

Exports::~Exports() {
  for (const auto& [path, _] : jobs_) ::unlink(path.c_str());
}

/// A device that is gone leaves no file: its number may be another's.
Result<void> Exports::write_jobs(const monitor::Moment& moment) {
  Result<void> outcome;
  std::map<std::string, std::string> before = std::exchange(jobs_, {});
  for (auto& [name, jobs] : monitor::job_mapping(moment)) {
    const std::string path = job_folder_ + "/" + name;
    const auto old = before.extract(path);
    if (old.empty() || old.mapped() != jobs || ::access(path.c_str(), F_OK) != 0)
      if (auto written = put(path, jobs); !written) {
        if (outcome) outcome = std::move(written);
        continue;
      }
    jobs_[path] = std::move(jobs);
  }
  for (const auto& [path, _] : before) ::unlink(path.c_str());
  return outcome;
}

Result<void> Exports::write(const monitor::Moment& moment) {
  Result<void> outcome;
  if (!text_file_.empty()) outcome = put(text_file_, monitor::metrics_text(moment));
  if (job_folder_.empty() || !moment.knows_pool()) return outcome;
  auto jobs = write_jobs(moment);
  return outcome ? std::move(jobs) : std::move(outcome);
}

}  // namespace remuda::cli
