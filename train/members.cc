#include "train/members.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/env.h"
#include "base/json.h"

namespace remuda::train {
namespace {

constexpr int kMostMembers = 1 << 16;
constexpr size_t kLongestLine = 1 << 20;

/// An integer of the object in 0..most, or -1.
int whole_number(const Json& object, const char* key, int most) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return -1;
  const auto value = found->get<int64_t>();
  return value >= 0 && value <= most ? static_cast<int>(value) : -1;
}

std::string text(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

Result<Members> parse_members(std::string_view line) {
  constexpr const char* kWhat = "what the launcher says of the ranks that are left";
  REMUDA_ASSIGN(const Json json, parse_json(line, kWhat));
  const auto refuse = [&] { return failed(fmt::format("{} is not complete", kWhat)); };
  if (!json.is_object() || !json.contains("ranks") || !json["ranks"].is_array()) return refuse();
  Members members{.generation = whole_number(json, "generation", kMostMembers),
                  .port = whole_number(json, "port", 65535),
                  .listen_fd = whole_number(json, "listen_fd", 1 << 20)};
  for (const Json& rank : json["ranks"]) {
    const bool fits = rank.is_number_integer() && rank.get<int64_t>() >= 0 && rank.get<int64_t>() < kMostMembers;
    if (!fits || (!members.ranks.empty() && rank.get<int64_t>() <= members.ranks.back())) return refuse();
    members.ranks.push_back(rank.get<int>());
  }
  if (members.generation < 1 || members.port < 1 || members.listen_fd < 0 || members.ranks.empty()) return refuse();
  for (const Json& one : json.value("lost", Json::array()))
    if (one.is_object())
      members.lost.push_back({.rank = whole_number(one, "rank", kMostMembers),
                              .device = text(one, "device"),
                              .cause = text(one, "cause")});
  return members;
}

Result<MembersFeed> MembersFeed::open() {
  if (!env::get(env::members_fd)) return MembersFeed(Fd());
  REMUDA_ASSIGN(const int fd, env::get_int(env::members_fd, 0, 1 << 20));
  if (::fcntl(fd, F_GETFD) < 0)
    return usage_error(fmt::format("{}={} is no open descriptor", env::members_fd.name, fd));
  return MembersFeed(Fd(fd));
}

Result<Members> MembersFeed::next() {
  std::string line;
  while (!line.ends_with('\n')) {
    if (line.size() > kLongestLine) return failed("the launcher says more than which ranks are left");
    char next = 0;
    const ssize_t got = ::read(fd_.get(), &next, 1);
    if (got == 0 || (got < 0 && errno != EINTR)) return failed("the launcher says of no ranks that they go on");
    if (got == 1) line += next;
  }
  return parse_members(line);
}

}  // namespace remuda::train
