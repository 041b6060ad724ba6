// ExemptUnits: the cgroups of units of systemd that no guard keeps from devices, as these units come and go.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"

namespace remuda::agent {

/// The folder of an exemption (policy::is_exemption()), below that of the topmost cgroup, as systemd.slice(5) lays them
/// out: services and scopes in system.slice, a-b.slice in a.slice. A unit that is elsewhere is named by its path. Pure.
std::string exempt_folder(const std::string& exemption);

/// Whether a process with these memberships (cgroups(7)) is in the cgroup of one of them, or below it. Pure.
bool is_exempt(const std::vector<std::string>& exemptions, const std::string& memberships);

/// One thread.
class ExemptUnits {
 public:
  /// `root`: folder of the topmost cgroup of version 2.
  explicit ExemptUnits(std::string root);

  struct Found {
    std::set<uint64_t> cgroups;
    std::vector<std::string> absent;  ///< exemptions that have none
  };
  /// The cgroups that there are now of these; from then on fd() tells when others may have come.
  Found look(const std::vector<std::string>& exemptions);
  /// Takes the news, so that fd() is not readable, without a look.
  void drain();
  /// Readable when look() may find another one: a unit that starts has a new cgroup, for some milliseconds before it
  /// has a process.
  int fd() const { return events_.get(); }
  bool has_news() const;

 private:
  std::string root_;
  Fd events_;
};

}  // namespace remuda::agent
