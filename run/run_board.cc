#include "run/run_board.h"

#include <filesystem>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/json.h"
#include "device/fields.h"

namespace remuda::run {
namespace {

constexpr size_t kMostRead = 64 << 10;

constexpr const char* kName = "remuda-run";

}  // namespace

RunBoard::RunBoard() : file_(::memfd_create(kName, MFD_CLOEXEC)) {}

/// Times of files are coarse: what was written twice in a moment differs by its text.
std::optional<pool::RunNotice> RunBoard::read() {
  struct stat info{};
  if (!file_ || ::fstat(file_.get(), &info) != 0) return std::nullopt;
  std::string text(kMostRead, '\0');
  const ssize_t got = ::pread(file_.get(), text.data(), text.size(), 0);
  if (got <= 0) return std::nullopt;
  text.resize(static_cast<size_t>(got));
  const int64_t written_ns = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  if (text == last_ && written_ns == last_written_ns_) return std::nullopt;
  last_ = text;
  last_written_ns_ = written_ns;
  const auto json = parse_json(text, "the run");
  pool::RunNotice notice;
  if (!json || !fields::read(*json, "the run", notice)) return std::nullopt;
  notice.bound();
  return notice;
}

/// A program between may have closed it, and opened another file under its number.
int run_board_fd() {
  const auto fd = env::get_int(env::run_fd, 3, 1 << 20);
  if (!env::get(env::run_fd) || !fd) return -1;
  std::error_code error;
  const auto file = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(*fd), error);
  return !error && file == std::string("/memfd:") + kName + " (deleted)" ? *fd : -1;
}

void write_notice(int fd, const pool::RunNotice& notice) {
  const std::string text = to_line(fields::write(notice));
  if (::pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()))
    (void)!::ftruncate(fd, static_cast<off_t>(text.size()));
}

}  // namespace remuda::run
