#include "comm/shm/memory.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <map>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace remuda::comm::shm {
namespace {

constexpr char kName[] = "remuda";

// The memories of this process by token, so that ranks that are threads find the one that is there.
struct Registry {
  std::mutex mutex;
  std::map<std::array<std::byte, 16>, std::weak_ptr<Memory>> memories;
};

Registry& registry() {
  static Registry instance;
  return instance;
}

std::shared_ptr<Memory> find_here(const Offer& offer) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().memories.find(offer.token);
  return found == registry().memories.end() || offer.pid != ::getpid() ? nullptr : found->second.lock();
}

bool names_memory(const std::string& path) {
  char target[64] = "";
  const ssize_t length = ::readlink(path.c_str(), target, sizeof target - 1);
  return length > 0 && std::string_view(target, length).starts_with(std::string("/memfd:") + kName);
}

bool begins_with(int fd, const std::array<std::byte, 16>& token) {
  std::array<std::byte, 16> found{};
  return ::pread(fd, found.data(), found.size(), 0) == static_cast<ssize_t>(found.size()) && found == token;
}

}  // namespace

Result<std::shared_ptr<Memory>> Memory::create() {
  Fd fd(::memfd_create(kName, MFD_CLOEXEC));
  if (!fd) return failed(fmt::format("cannot create shared memory: {}", errno_text(errno)));
  Offer offer{::getpid(), fd.get()};
  if (::getrandom(offer.token.data(), offer.token.size(), 0) != static_cast<ssize_t>(offer.token.size()) ||
      ::pwrite(fd.get(), offer.token.data(), offer.token.size(), 0) != static_cast<ssize_t>(offer.token.size()))
    return failed(fmt::format("cannot write shared memory: {}", errno_text(errno)));
  std::shared_ptr<Memory> memory(new Memory(std::move(fd), offer));
  const std::lock_guard lock(registry().mutex);
  registry().memories[offer.token] = memory;
  return memory;
}

Result<std::shared_ptr<Memory>> Memory::open(const Offer& offer) {
  if (auto here = find_here(offer)) return here;
  const std::string path = fmt::format("/proc/{}/fd/{}", offer.pid, offer.fd);
  if (!names_memory(path)) return failed(fmt::format("{} is not rank 0's memory: not the same host or user", path));
  Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return failed(fmt::format("cannot open {}: {}", path, errno_text(errno)));
  if (!begins_with(fd.get(), offer.token)) return failed(fmt::format("{} is another job's memory", path));
  return std::shared_ptr<Memory>(new Memory(std::move(fd), offer));
}

Memory::~Memory() {
  for (const auto& region : regions_) ::munmap(region.bytes.data(), region.bytes.size());
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().memories.find(offer_.token);
  if (found != registry().memories.end() && found->second.expired()) registry().memories.erase(found);
}

// Ranks may race here: all ask for the same size, and none asks for more before all have this one.
Result<void> Memory::grow(size_t bytes) {
  struct stat info{};
  if (::fstat(fd_.get(), &info) == 0 && static_cast<size_t>(info.st_size) >= bytes) return {};
  if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0)
    return failed(fmt::format("cannot make shared memory {} bytes large: {}", bytes, errno_text(errno)));
  return {};
}

Result<std::byte*> Memory::map(size_t offset, size_t bytes) {
  const std::lock_guard lock(mutex_);
  for (const auto& region : regions_)
    if (region.offset == offset) return region.bytes.data();
  REMUDA_TRY(grow(offset + bytes));
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), static_cast<off_t>(offset));
  if (at == MAP_FAILED)
    return failed(fmt::format("cannot map {} bytes of shared memory: {}", bytes, errno_text(errno)));
  ::madvise(at, bytes, MADV_HUGEPAGE);
  regions_.push_back({offset, {static_cast<std::byte*>(at), bytes}});
  return static_cast<std::byte*>(at);
}

}  // namespace remuda::comm::shm
