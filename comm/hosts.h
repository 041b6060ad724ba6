// Which ranks are on one host: those that can share memory.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "comm/rendezvous.h"

namespace remuda::comm {

/// The ranks that take part, by host and by their numbers in Mesh::ranks: hosts in the order of their lowest numbers,
/// those of each in ascending order.
using Hosts = std::vector<std::vector<int>>;

/// A name that processes have in common if they run on one kernel and see each other's numbers; empty: it is not known.
std::string this_host();

/// Pure. Ranks with the same name are on one host; a rank without one is alone.
Hosts hosts_of(const std::vector<std::string>& names);

/// Collective, over the control connections: every rank says its host's name, of which the first 95 bytes count.
Result<Hosts> find_hosts(const Mesh& mesh, const std::string& name, double deadline_s);

/// Collective: whether all ranks say so.
Result<bool> all_say(const Mesh& mesh, bool mine, double deadline_s);

}  // namespace remuda::comm
