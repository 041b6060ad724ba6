// The page's files, as web/page builds them. They travel inside the program.
#pragma once

#include <span>
#include <string_view>

namespace remuda::web {

struct Asset {
  std::string_view path, type, text;
};

/// What is served at its path to anybody; nothing in it is secret.
std::span<const Asset> assets();

}  // namespace remuda::web
