#include "measure/shared_memory.h"

#include <cerrno>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace remuda::measure {
namespace {

tl::unexpected<Error> refused(size_t bytes) {
  return failed(fmt::format("cannot share {} bytes of memory: {}", bytes, errno_text(errno)));
}

}  // namespace

Result<SharedMemory> SharedMemory::create(size_t bytes) {
  Fd fd(::memfd_create("remuda-measure", MFD_CLOEXEC));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return refused(bytes);
  return open(std::move(fd), bytes);
}

Result<SharedMemory> SharedMemory::open(Fd fd, size_t bytes) {
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return refused(bytes);
  if (static_cast<size_t>(info.st_size) < bytes)  // beyond its end is no memory
    return failed(fmt::format("descriptor {} holds {} bytes, not {}", fd.get(), info.st_size, bytes));
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return refused(bytes);
  return SharedMemory(std::move(fd), {static_cast<std::byte*>(memory), bytes});
}

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace remuda::measure
