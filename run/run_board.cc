#include "run/run_board.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sys/mman.h>
#include <unistd.h>

#include "base/env.h"
#include "base/json.h"
#include "device/fields.h"

namespace remuda::run {
namespace {

constexpr size_t kMostRead = 64 << 10;

double part(double value) { return std::isfinite(value) ? std::clamp(value, 0.0, 1.0) : 0; }

constexpr const char* kName = "remuda-run";

}  // namespace

RunBoard::RunBoard() : file_(::memfd_create(kName, MFD_CLOEXEC)) {}

std::optional<pool::RunNotice> RunBoard::read() {
  std::string text(kMostRead, '\0');
  const ssize_t got = file_ ? ::pread(file_.get(), text.data(), text.size(), 0) : 0;
  if (got <= 0) return std::nullopt;
  text.resize(static_cast<size_t>(got));
  if (text == last_) return std::nullopt;
  last_ = text;
  const auto json = parse_json(text, "the run");
  pool::RunNotice notice;
  if (!json || !fields::read(*json, "the run", notice)) return std::nullopt;
  if (notice.parts.size() > pool::RunNotice::kMostParts) notice.parts.resize(pool::RunNotice::kMostParts);
  for (pool::RunPart& one : notice.parts) one.share = part(one.share), one.waiting = part(one.waiting);
  notice.step_s = std::isfinite(notice.step_s) ? std::max(0.0, notice.step_s) : 0;
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
