#include "agent/device_files.h"

#include <sys/inotify.h>
#include <unistd.h>
#include <utility>

namespace remuda::agent {

DeviceFiles::DeviceFiles(std::string folder)
    : folder_(std::move(folder)), events_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  watch();
}

/// Again where it is watched already: "dri" comes and goes with the drivers.
void DeviceFiles::watch() {
  for (const char* name : {"", "/dri"})
    ::inotify_add_watch(events_.get(), (folder_ + name).c_str(), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
}

bool DeviceFiles::take_news() {
  char events[4096];
  bool has_news = false;
  while (::read(events_.get(), events, sizeof events) > 0) has_news = true;
  if (has_news) watch();
  return has_news;
}

}  // namespace remuda::agent
