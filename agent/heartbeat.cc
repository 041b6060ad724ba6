#include "agent/heartbeat.h"

#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/file.h"

namespace remuda::agent {
namespace {

constexpr double kEvery_s = 60;

}  // namespace

/// What an agent writes last is most often the pool.
Heartbeat::Heartbeat(const std::string& pool) : path_(pool + "/agent.seen") {
  for (const std::string& path : {path_, pool + "/pool.db", pool + "/pool.db-wal"})
    if (struct stat info{}; ::stat(path.c_str(), &info) == 0)
      seen_s_ = std::max(seen_s_, static_cast<double>(info.st_mtim.tv_sec));
}

/// Where the time cannot be written, the pool's own are older, and a keeper is believed more than it need be.
void Heartbeat::step(bool jobs_run, double now_s) {
  if (!jobs_run) next_s_ = kNever_s;
  if (jobs_run && next_s_ == kNever_s) next_s_ = now_s;
  if (now_s < next_s_) return;
  next_s_ = now_s + kEvery_s;
  const Fd file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file) ::futimens(file.get(), nullptr);
}

}  // namespace remuda::agent
