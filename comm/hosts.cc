#include "comm/hosts.h"

#include <algorithm>
#include <fmt/format.h>
#include <span>
#include <unistd.h>

#include "base/file.h"

namespace remuda::comm {
namespace {

struct HostName {
  char text[96] = {};
};

// Every rank gives the leader a T; the leader gives all of them to every rank.
template <typename T>
Result<std::vector<T>> gather(const Mesh& mesh, const T& mine, double deadline_s) {
  std::vector<T> all(mesh.ranks.size());
  all.front() = mine;
  const auto named = [](int peer, Result<void> result) {
    if (!result) {
      result.error().peer = peer;
      result.error().message += " while the ranks were finding their hosts";
    }
    return result;
  };
  const auto send = [&](int peer, std::span<const std::byte> bytes) {
    return named(peer,
                 mesh.control[static_cast<size_t>(peer)].send_all(bytes, deadline_s, fmt::format("rank {}", peer)));
  };
  const auto receive = [&](int peer, std::span<std::byte> bytes) {
    return named(peer,
                 mesh.control[static_cast<size_t>(peer)].recv_all(bytes, deadline_s, fmt::format("rank {}", peer)));
  };
  if (!mesh.leads()) {
    REMUDA_TRY(send(mesh.leader(), std::as_bytes(std::span(&mine, 1))));
    REMUDA_TRY(receive(mesh.leader(), std::as_writable_bytes(std::span(all))));
    return all;
  }
  for (size_t number = 1; number < all.size(); ++number)
    REMUDA_TRY(receive(mesh.ranks[number], std::as_writable_bytes(std::span(&all[number], 1))));
  for (const int peer : mesh.followers()) REMUDA_TRY(send(peer, std::as_bytes(std::span(all))));
  return all;
}

}  // namespace

std::string this_host() {
  const auto boot = read_text("/proc/sys/kernel/random/boot_id");
  char processes[32] = "";
  if (!boot || ::readlink("/proc/self/ns/pid", processes, sizeof processes - 1) <= 0) return "";
  return fmt::format("{} {}", boot->substr(0, boot->find('\n')), processes);
}

Hosts hosts_of(const std::vector<std::string>& names) {
  Hosts hosts;
  for (int rank = 0; rank < static_cast<int>(names.size()); ++rank) {
    const std::string& name = names[static_cast<size_t>(rank)];
    const auto same = std::ranges::find_if(
        hosts, [&](const auto& ranks) { return !name.empty() && names[static_cast<size_t>(ranks.front())] == name; });
    if (same != hosts.end())
      same->push_back(rank);
    else
      hosts.push_back({rank});
  }
  return hosts;
}

Result<Hosts> find_hosts(const Mesh& mesh, const std::string& name, double deadline_s) {
  HostName mine;
  name.copy(mine.text, sizeof mine.text - 1);
  REMUDA_ASSIGN(std::vector<HostName> all, gather(mesh, mine, deadline_s));
  std::vector<std::string> names;
  for (HostName& each : all) {
    each.text[sizeof each.text - 1] = '\0';
    names.emplace_back(each.text);
  }
  return hosts_of(names);
}

Result<bool> all_say(const Mesh& mesh, bool mine, double deadline_s) {
  REMUDA_ASSIGN(const std::vector<char> all, gather<char>(mesh, mine ? 1 : 0, deadline_s));
  return std::ranges::all_of(all, [](char said) { return said == 1; });
}

}  // namespace remuda::comm
