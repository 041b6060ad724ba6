#include "pool/fifo.h"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <filesystem>

#include "base/file.h"

namespace remuda::pool {

bool has_reader(const std::string& path) {
  const Fd end(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  return end || (errno != ENXIO && errno != ENOENT);
}

bool is_new(const std::string& path) {
  constexpr auto kNew = std::chrono::minutes(1);
  std::error_code error;
  const auto made = std::filesystem::last_write_time(path, error);
  return !error && std::filesystem::file_time_type::clock::now() - made < kNew;
}

}  // namespace remuda::pool
