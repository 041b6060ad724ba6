#include "cli/jobs/log_reader.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/check.h"
#include "base/text.h"

namespace remuda::cli {
namespace {

constexpr int64_t kBlock = 1 << 16;

/// Root with no more rights than a user has, as long as this lives. For a process with one thread.
class ActingAs {
 public:
  explicit ActingAs(int uid) : groups_(static_cast<size_t>(std::max(0, ::getgroups(0, nullptr)))), gid_(::getegid()) {
    groups_.resize(static_cast<size_t>(std::max(0, ::getgroups(static_cast<int>(groups_.size()), groups_.data()))));
    const passwd* user = ::getpwuid(static_cast<uid_t>(uid));
    const gid_t gid = user ? user->pw_gid : static_cast<gid_t>(uid);
    const bool has_groups = user ? ::initgroups(user->pw_name, gid) == 0 : ::setgroups(1, &gid) == 0;
    acts_ = has_groups && ::setegid(gid) == 0 && ::seteuid(static_cast<uid_t>(uid)) == 0;
  }
  ActingAs(const ActingAs&) = delete;
  ~ActingAs() {
    const bool is_back = ::seteuid(0) == 0 && ::setegid(gid_) == 0 && ::setgroups(groups_.size(), groups_.data()) == 0;
    REMUDA_CHECK(is_back || !acts_, "root becomes root again");
  }
  bool acts() const { return acts_; }

 private:
  std::vector<gid_t> groups_;
  const gid_t gid_;
  bool acts_ = false;
};

}  // namespace

Result<LogReader> LogReader::open(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd) return usage_error(fmt::format("cannot read {}: {}", printable(path), errno_text(errno)));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return usage_error(fmt::format("cannot read {}: it is not a regular file", printable(path)));
  return LogReader(printable(path), std::move(fd));
}

Result<LogReader> LogReader::open_as(int uid, const std::string& path) {
  const ActingAs user(uid);
  if (!user.acts()) return failed(fmt::format("cannot read {} as its user: {}", printable(path), errno_text(errno)));
  return open(path);
}

Result<int64_t> LogReader::size() const {
  struct stat info{};
  if (::fstat(fd_.get(), &info) != 0) return failed(fmt::format("cannot read {}: {}", path_, errno_text(errno)));
  return info.st_size;
}

Result<size_t> LogReader::read_at(int64_t offset, char* bytes, size_t size) const {
  ssize_t got;
  do got = ::pread(fd_.get(), bytes, size, offset);
  while (got < 0 && errno == EINTR);
  if (got < 0) return failed(fmt::format("cannot read {}: {}", path_, errno_text(errno)));
  return static_cast<size_t>(got);
}

Result<void> LogReader::go_to_last(int64_t lines) {
  REMUDA_ASSIGN(const int64_t end, size());
  std::vector<char> block(kBlock);
  offset_ = end;
  if (lines <= 0) return {};
  for (int64_t begin = end; begin > 0;) {
    const int64_t before = std::max<int64_t>(0, begin - kBlock);
    REMUDA_ASSIGN(const size_t got, read_at(before, block.data(), static_cast<size_t>(begin - before)));
    for (size_t i = got; i-- > 0;) {
      const int64_t after = before + static_cast<int64_t>(i) + 1;
      if (block[i] != '\n' || after == end) continue;  // no line begins after the end of the last one
      offset_ = after;
      if (--lines == 0) return {};
    }
    begin = before;
  }
  offset_ = 0;
  return {};
}

Result<void> LogReader::read(const Sink& sink) {
  REMUDA_ASSIGN(const int64_t end, size());
  if (end < offset_) offset_ = 0;
  std::vector<char> block(kBlock);
  for (;;) {
    REMUDA_ASSIGN(const size_t got, read_at(offset_, block.data(), block.size()));
    if (got == 0) return {};
    REMUDA_TRY(sink({block.data(), got}));
    offset_ += static_cast<int64_t>(got);
  }
}

}  // namespace remuda::cli
