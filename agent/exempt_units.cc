#include "agent/exempt_units.h"

#include <algorithm>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>
#include <utility>

#include "base/text.h"
#include "confine/device_guard.h"

namespace remuda::agent {
namespace {

/// "a-b.slice" -> "a.slice/a-b.slice".
std::string slice_folder(const std::string& slice) {
  std::string folder;
  for (size_t dash = slice.find('-'); dash != std::string::npos; dash = slice.find('-', dash + 1))
    folder += slice.substr(0, dash) + ".slice/";
  return folder + slice;
}

}  // namespace

std::string exempt_folder(const std::string& exemption) {
  if (exemption.starts_with('/')) {
    std::string folder;
    for (const std::string& name : split(exemption, '/'))
      if (!name.empty()) folder += (folder.empty() ? "" : "/") + name;
    return folder;
  }
  return exemption.ends_with(".slice") ? slice_folder(exemption) : "system.slice/" + exemption;
}

bool is_exempt(const std::vector<std::string>& exemptions, const std::string& memberships) {
  for (const std::string& line : split(memberships, '\n')) {
    if (!line.starts_with("0::/")) continue;
    const std::string within = line.substr(4) + "/";
    return std::ranges::any_of(exemptions,
                               [&](const std::string& one) { return within.starts_with(exempt_folder(one) + "/"); });
  }
  return false;
}

ExemptUnits::ExemptUnits(std::string root)
    : root_(std::move(root)), events_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

bool ExemptUnits::has_news() const {
  pollfd polled{events_.get(), POLLIN, 0};
  return ::poll(&polled, 1, 0) > 0;
}

void ExemptUnits::drain() {
  char events[4096];
  while (::read(events_.get(), events, sizeof events) > 0) {
  }
}

ExemptUnits::Found ExemptUnits::look(const std::vector<std::string>& exemptions) {
  drain();
  Found found;
  for (const std::string& exemption : exemptions) {
    std::string folder = root_;
    for (const std::string& name : split(exempt_folder(exemption), '/')) {
      if (::inotify_add_watch(events_.get(), folder.c_str(), IN_CREATE | IN_ONLYDIR) < 0) break;  // before the look
      folder += "/" + name;
    }
    if (const uint64_t id = confine::cgroup_id(root_ + "/" + exempt_folder(exemption)); id != 0)
      found.cgroups.insert(id);
    else
      found.absent.push_back(exemption);
  }
  return found;
}

}  // namespace remuda::agent
