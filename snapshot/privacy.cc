#include "snapshot/privacy.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace remuda::snapshot {
namespace {

constexpr std::array kOfAnybody{// of leases
                                "job", "device", "share", "since_s", "until_s", "ended_s", "label", "busy",
                                "memory_used_bytes", "sharing", "limits", "user", "name", "array", "array_index",
                                "devices_enforced", "cores", "host_memory_bytes", "holder", "barred", "use",
                                // of jobs
                                "id", "priority", "preemptible", "submitted_s", "started_s", "time_limit_s", "begin_s",
                                "paused", "state", "devices", "failed", "request", "why", "starts_s", "starts_on",
                                "starts_after", "starts_unknown", "would_start"};

/// Nobody's: processes without a lease are shown by the name of their user alone.
bool is_of(const Json& entry, const std::string& user) {
  const auto found = entry.find("user");
  return found != entry.end() && found->is_string() && found->get_ref<const std::string&>() == user;
}

void hide_entries(const std::string& user, Json& list) {
  if (!list.is_array()) return;
  for (Json& entry : list) {
    if (!entry.is_object() || is_of(entry, user)) continue;
    Json kept = Json::object();
    for (auto& [key, value] : entry.items())
      if (std::ranges::find(kOfAnybody, std::string_view(key)) != kOfAnybody.end()) kept[key] = std::move(value);
    entry = std::move(kept);
  }
}

/// Why a job ended may name its program and its folder; why it waits does not.
void hide_ends(const std::string& user, Json& past) {
  if (!past.is_array()) return;
  for (Json& lease : past)
    if (lease.is_object() && !is_of(lease, user)) lease.erase("why");
}

void hide_commands(const std::string& user, Json& status) {
  const auto processes = status.find("processes");
  if (processes == status.end() || !processes->is_array()) return;
  for (Json& process : *processes)
    if (process.is_object() && process.contains("command") && !is_of(process, user))
      process["command"] = {{"missing", "denied"}, {"detail", "another user's process"}};
}

}  // namespace

void hide_from(const std::string& user, Json& snapshot) {
  for (const char* list : {"leases", "waiting"})
    if (snapshot.contains("jobs") && snapshot["jobs"].contains(list)) hide_entries(user, snapshot["jobs"][list]);
  if (const auto past = snapshot.find("past"); past != snapshot.end()) {
    hide_entries(user, *past);
    hide_ends(user, *past);
  }
  if (!snapshot.contains("inventory") || !snapshot["inventory"].contains("devices")) return;
  for (Json& device : snapshot["inventory"]["devices"])
    if (device.contains("status")) hide_commands(user, device["status"]);
}

}  // namespace remuda::snapshot
