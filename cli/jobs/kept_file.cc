#include "cli/jobs/kept_file.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "base/read_all.h"
#include "base/state_folder.h"

namespace remuda::cli {
namespace {

constexpr size_t kLargest = 16 << 20;

}  // namespace

Result<void> write_kept_file(const std::string& path, std::string_view text, bool survives) {
  const size_t slash = path.rfind('/');
  const std::string folder = path.substr(0, slash), name = path.substr(slash + 1);
  REMUDA_TRY(make_folder(folder));
  const auto cannot = [&] { return failed(fmt::format("cannot write {}: {}", path, errno_text(errno))); };
  const Fd in(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!in) return cannot();
  NewFile file = NewFile::in(in.get(), 0600);
  if (!file) return cannot();
  REMUDA_TRY(write_all(file.fd(), text, path));
  if (survives && ::fsync(file.fd()) != 0) return cannot();
  if (!file.rename_to(name)) return cannot();
  if (survives && ::fsync(in.get()) != 0) return cannot();
  return {};
}

Result<std::string> read_kept_file(const std::string& path, const std::string& what) {
  const auto file = open_for_reading(path);
  if (!file && errno == ENOENT) return usage_error(what + " was not kept");
  if (!file) return tl::unexpected(file.error());
  return read_all(file->get(), path, kLargest, kForever_s);  // a regular file has an end
}

}  // namespace remuda::cli
