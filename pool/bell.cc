#include "pool/bell.h"

#include <atomic>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/number.h"
#include "base/text.h"
#include "pool/fifo.h"
#include "process/process_id.h"

namespace remuda::pool {
namespace {

constexpr const char* kBells = "bells";

/// Whether the process that made a bell of this name, namespace.pid.start_ticks.number, is gone.
bool is_left(const Folder& folder, const std::string& name) {
  const auto parts = split(name, '.');
  process::ProcessId owner = process::own_process_id();  // for the boot id
  if (parts.size() != 4) return false;
  const auto pid_namespace = parse_number<decltype(owner.pid_namespace)>(parts[0]);
  const auto pid = parse_number<int>(parts[1]);
  const auto start_ticks = parse_number<int64_t>(parts[2]);
  if (!pid_namespace || !pid || !start_ticks) return false;
  owner.pid_namespace = *pid_namespace;
  owner.pid = *pid;
  owner.start_ticks = *start_ticks;
  return is_visible(owner) ? !is_alive(owner) : !is_new(folder, name) && !has_reader(folder, name);
}

void sweep(const Folder& folder) {
  for (const std::string& name : names_in(folder))
    if (is_left(folder, name)) ::unlinkat(folder.fd.get(), name.c_str(), 0);
}

/// A pipe opened for both directions needs no reader, and a write into it raises no signal.
Fd open_bell(const Folder& folder, const std::string& name) {
  Fd fd(::openat(folder.fd.get(), name.c_str(), O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat info{};
  if (fd && (::fstat(fd.get(), &info) != 0 || !S_ISFIFO(info.st_mode))) fd.reset();
  return fd;
}

}  // namespace

Result<Folder> make_bell_folder(const std::string& pool) {
  REMUDA_ASSIGN(const Folder above, open_pool_folder(pool));
  return make_folder_in(above, kBells);
}

Result<Bell> Bell::create(const std::string& pool) {
  static std::atomic<int> number = 0;
  REMUDA_ASSIGN(Folder folder, make_bell_folder(pool));
  sweep(folder);
  const process::ProcessId self = process::own_process_id();
  std::string name = fmt::format("{}.{}.{}.{}", self.pid_namespace, self.pid, self.start_ticks, ++number);
  REMUDA_ASSIGN(Fd fd, make_pipe(folder, name, O_RDWR));
  return Bell(std::move(folder), std::move(name), std::move(fd));
}

void Bell::ring(const std::string& pool) {
  const auto above = open_pool_folder(pool);
  const auto folder = above ? open_folder(*above, kBells) : Result<Folder>(tl::unexpected(above.error()));
  if (!folder) return;
  for (const std::string& name : names_in(*folder)) {
    const Fd fd = open_bell(*folder, name);
    if (fd) (void)!::write(fd.get(), "!", 1);  // a full pipe is readable already
  }
}

Bell::~Bell() {
  if (fd_ && owner_ == ::getpid()) ::unlinkat(folder_.fd.get(), name_.c_str(), 0);
}

void Bell::clear() {
  char rings[512];
  while (::read(fd_.get(), rings, sizeof rings) > 0) {
  }
}

}  // namespace remuda::pool
