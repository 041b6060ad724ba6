#include "confine/cgroup_place.h"

#include <algorithm>
#include <optional>

#include "base/file.h"
#include "base/text.h"

namespace remuda::confine {
namespace {

bool has_word(const std::string& list, const std::string& word) {
  const auto words = split(list, ',');
  return std::ranges::find(words, word) != words.end();
}

/// Decodes "\040" and the like in a path of mountinfo: white space and the backslash, as three octal digits.
std::string unescaped(const std::string& text) {
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && std::all_of(&text[i + 1], &text[i + 4], is_octal)) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

struct Mount {
  int version = 0;
  std::string root, folder;
};

/// "32 31 0:29 / /sys/fs/cgroup/devices rw,relatime shared:9 - cgroup cgroup rw,devices".
std::optional<Mount> parse_mount(const std::string& line, const std::string& controller) {
  constexpr size_t kRoot = 3, kFolder = 4, kType = 1, kOptions = 3;
  const auto fields = split(line, ' ');
  const auto dash = std::ranges::find(fields, "-");
  if (fields.size() <= kFolder || fields.end() - dash <= static_cast<std::ptrdiff_t>(kOptions)) return std::nullopt;
  Mount mount{dash[kType] == "cgroup2" ? 2 : 1, unescaped(fields[kRoot]), unescaped(fields[kFolder])};
  if (mount.version == 2 || (dash[kType] == "cgroup" && has_word(dash[kOptions], controller))) return mount;
  return std::nullopt;
}

/// "5:devices:/a/b" -> "/a/b"; that of version 2 is "0::/a/b".
std::optional<std::string> membership(std::string_view memberships, int version, const std::string& controller) {
  for (const std::string& line : split(memberships, '\n')) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool fits = version == 2 ? line.starts_with("0::") : has_word(controllers, controller);
    if (fits) return line.substr(second + 1);
  }
  return std::nullopt;
}

std::optional<std::string> below(const std::string& root, const std::string& path) {
  if (!path.starts_with('/')) return std::nullopt;
  if (root == "/") return path == "/" ? "" : path;
  if (path == root) return "";
  if (path.starts_with(root + "/")) return path.substr(root.size());
  return std::nullopt;
}

}  // namespace

std::vector<CgroupPlace> cgroup_places(std::string_view mountinfo, std::string_view memberships,
                                       const std::string& controller) {
  std::vector<CgroupPlace> places;
  for (const std::string& line : split(mountinfo, '\n')) {
    const auto mount = parse_mount(line, controller);
    if (!mount || std::ranges::find(places, mount->version, &CgroupPlace::version) != places.end()) continue;
    const auto path = membership(memberships, mount->version, controller);
    const auto rest = path ? below(mount->root, *path) : std::nullopt;
    if (rest) places.push_back({mount->version, mount->folder, mount->folder + *rest});
  }
  std::ranges::sort(places, std::ranges::greater(), &CgroupPlace::version);  // each version is there once
  return places;
}

std::vector<CgroupPlace> own_cgroup_places(const std::string& controller) {
  return cgroup_places(read_text("/proc/self/mountinfo").value_or(""), read_text("/proc/self/cgroup").value_or(""),
                       controller);
}

}  // namespace remuda::confine
