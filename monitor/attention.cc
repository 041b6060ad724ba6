#include "monitor/attention.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "device/fields.h"

namespace remuda::monitor {
namespace {

constexpr size_t kMostBytes = 1 << 20;

std::string attention_path(const std::string& folder) { return folder + "/attention.json"; }
std::string alerts_path(const std::string& folder) { return folder + "/alerts.json"; }

/// Null where there is no such file.
Result<Json> read_if_there(const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return Json();
  REMUDA_ASSIGN(const std::string text, read_text(path, kMostBytes));
  return parse_json(text, path);
}

/// A process that was stopped holds its locks.
Result<Fd> lock_file(const std::string& path, double patience_s) {
  constexpr double kPause_s = 0.02;
  Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock) return failed(fmt::format("cannot open {}: {}", path, errno_text(errno)));
  const double end_s = monotonic_s() + patience_s;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return failed(fmt::format("cannot lock {}: {}", path, errno_text(errno)));
    if (monotonic_s() >= end_s) return failed(fmt::format("another process has held {} for too long", path));
    steady_clock().sleep_s(kPause_s);
  }
  return lock;
}

Result<void> write_json(const std::string& path, const Json& json) {
  REMUDA_ASSIGN(PendingFile file, PendingFile::create(path));
  return file.commit(to_pretty(json));
}

}  // namespace

std::vector<Alert> marked(std::vector<Alert> alerts, const Attention& attention, double wall_s) {
  for (Alert& alert : alerts) {
    const auto known = std::ranges::find(attention.acknowledged, alert.id, &Acknowledged::alert);
    if (known != attention.acknowledged.end()) alert.acknowledged_by = known->by;
    for (const Silence& silence : attention.silences) {
      const bool is_meant = silence.rule == alert.rule &&
                            (silence.device.empty() || silence.device == alert.device || silence.device == alert.label);
      if (is_meant && silence.until_s > wall_s)
        alert.silenced_until_s = std::max(alert.silenced_until_s, silence.until_s);
    }
  }
  return alerts;
}

Result<Attention> read_attention(const std::string& folder) {
  Attention attention;
  REMUDA_ASSIGN(const Json json, read_if_there(attention_path(folder)));
  if (!json.is_null()) REMUDA_TRY(fields::read(json, attention_path(folder), attention));
  return attention;
}

Result<void> change_attention(const std::string& folder, const std::function<void(Attention&)>& change,
                              double patience_s) {
  REMUDA_ASSIGN(const Fd lock, lock_file(folder + "/attention.lock", patience_s));
  REMUDA_ASSIGN(Attention attention, read_attention(folder));
  const Attention before = attention;
  change(attention);
  return attention == before ? Result<void>{} : write_json(attention_path(folder), fields::write(attention));
}

Result<void> write_alerts(const std::string& folder, const std::vector<Alert>& alerts, double wall_s) {
  return write_json(alerts_path(folder), {{"time_s", wall_s}, {"alerts", fields::write(alerts)}});
}

Result<WrittenAlerts> read_alerts(const std::string& folder) {
  WrittenAlerts written;
  const std::string path = alerts_path(folder);
  REMUDA_ASSIGN(const Json json, read_if_there(path));
  if (json.is_null()) return written;
  if (!json.is_object() || !json.contains("time_s") || !json["time_s"].is_number() || !json.contains("alerts"))
    return failed(path + " has no alerts");
  written.time_s = json["time_s"];
  REMUDA_TRY(fields::read(json["alerts"], path, written.alerts));
  return written;
}

}  // namespace remuda::monitor
