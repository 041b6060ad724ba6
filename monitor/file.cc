#include "monitor/file.h"

#include <cerrno>
#include <cstdint>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

namespace remuda::monitor {
namespace {

constexpr const char* kFile = "history.db";
constexpr int64_t kApplication = 0x52656d48;  // "RemH"
constexpr int64_t kFormat = 1;
// Values of a chunk: of its first slot in the order of Measure, of the second, ... A program that knows more measures
// finds fewer values in each slot of an older chunk, and the other way round.
constexpr const char* kSchema = R"(
  CREATE TABLE device (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE) STRICT;
  CREATE TABLE chunk (
    device INTEGER NOT NULL,
    level INTEGER NOT NULL,
    start INTEGER NOT NULL,
    slots BLOB NOT NULL,
    UNIQUE (device, level, start)
  ) STRICT;
  CREATE TABLE use (
    job INTEGER NOT NULL,
    device TEXT NOT NULL,
    since_s REAL NOT NULL,
    last_s REAL NOT NULL,
    record TEXT NOT NULL,
    UNIQUE (job, device, since_s)
  ) STRICT;
  CREATE INDEX use_last ON use (last_s);
)";

/// Nobody else reads who did what; the files that SQLite puts beside it get its mode.
Result<void> keep_private(const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || (info.st_mode & 077) == 0) return {};
  if (info.st_uid != ::geteuid() || ::chmod(path.c_str(), 0600) == 0) return {};
  return failed(fmt::format("cannot keep others from {}: {}", path, errno_text(errno)));
}

Result<void> create_if_absent(const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) == 0) return {};
  const std::string schema =
      fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}; {}", kApplication, kFormat, kSchema);
  REMUDA_ASSIGN(const std::string image, sqlite::Database::image(schema.c_str()));
  REMUDA_ASSIGN(PendingFile file, PendingFile::create(path));
  return file.commit(image);
}

Result<void> check_format(const sqlite::Database& database, const std::string& path) {
  REMUDA_ASSIGN(const int64_t application, database.integer("PRAGMA application_id"));
  if (application != kApplication) return failed(fmt::format("{} is no history: move it away to begin anew", path));
  REMUDA_ASSIGN(const int64_t format, database.integer("PRAGMA user_version"));
  if (format == kFormat) return {};
  return failed(fmt::format("{} has format {}, and this program knows {}: use the newer one", path, format, kFormat));
}

}  // namespace

Result<std::unique_ptr<sqlite::Database>> open_file(const std::string& folder) {
  const std::string path = folder + "/" + kFile;
  REMUDA_TRY(create_if_absent(path));
  REMUDA_TRY(keep_private(path));
  REMUDA_ASSIGN(auto database, sqlite::Database::open(path));
  REMUDA_TRY(check_format(*database, path));
  return database;
}

}  // namespace remuda::monitor
