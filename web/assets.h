// The page's files, as web/page builds them, and a recording to show it with. They travel inside the program.
#pragma once

#include <span>
#include <string_view>

namespace remuda::web {

struct Asset {
  std::string_view path, type, text;
};

/// What is served at its path to anybody; nothing in it is secret.
std::span<const Asset> assets();

/// A recording for ReplaySource: eight unlike devices, an hour of three users' jobs.
std::string_view demo_recording();

}  // namespace remuda::web
