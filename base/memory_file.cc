#include "base/memory_file.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

namespace remuda {
namespace {

constexpr char kName[] = "remuda";

bool names_memory(const std::string& path) {
  char target[64] = "";
  const ssize_t length = ::readlink(path.c_str(), target, sizeof target - 1);
  return length > 0 && std::string_view(target, size_t(length)).starts_with(std::string("/memfd:") + kName);
}

bool begins_with(int fd, const std::array<std::byte, 16>& token) {
  std::array<std::byte, 16> found{};
  return ::pread(fd, found.data(), found.size(), 0) == static_cast<ssize_t>(found.size()) && found == token;
}

}  // namespace

Result<MemoryFile> MemoryFile::create() {
  Fd fd(::memfd_create(kName, MFD_CLOEXEC));
  if (!fd) return failed(fmt::format("cannot create shared memory: {}", errno_text(errno)));
  Offer offer{::getpid(), fd.get(), {}};
  if (::getrandom(offer.token.data(), offer.token.size(), 0) != static_cast<ssize_t>(offer.token.size()) ||
      ::pwrite(fd.get(), offer.token.data(), offer.token.size(), 0) != static_cast<ssize_t>(offer.token.size()))
    return failed(fmt::format("cannot write shared memory: {}", errno_text(errno)));
  return MemoryFile(std::move(fd), offer);
}

Result<MemoryFile> MemoryFile::open(const Offer& offer, const std::string& whose) {
  const std::string path = fmt::format("/proc/{}/fd/{}", offer.pid, offer.fd);
  if (!names_memory(path)) return failed(fmt::format("{} is not {}: not the same host or user", path, whose));
  Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return failed(fmt::format("cannot open {}: {}", path, errno_text(errno)));
  if (!begins_with(fd.get(), offer.token)) return failed(fmt::format("{} is another job's memory", path));
  return MemoryFile(std::move(fd), offer);
}

}  // namespace remuda
