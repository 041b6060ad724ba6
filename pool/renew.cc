#include "pool/renew.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pool/files.h"
#include "sqlite/database.h"

namespace remuda::pool {
namespace {

constexpr const char *kPool = "pool.db", *kCopy = "pool.db.private";
constexpr mode_t kOthers = 077;

tl::unexpected<Error> no_way_to(const char* what, const std::string& path) {
  return failed(fmt::format("cannot {} {}: {}", what, path, errno_text(errno)));
}

/// What stands in its log is written to the file first, so that a copy of the file alone is the whole pool.
Result<void> copy_pool(const Folder& folder) {
  const std::string copy = folder.path_of(kCopy);
  if (::unlinkat(folder.fd.get(), kCopy, 0) != 0 && errno != ENOENT) return no_way_to("remove", copy);
  {
    REMUDA_ASSIGN(const auto database, sqlite::Database::open(folder.path_of(kPool)));
    REMUDA_TRY(database->execute(fmt::format("VACUUM INTO '{}'", copy).c_str()));
  }
  if (::chmod(copy.c_str(), 0600) != 0) return no_way_to("change", copy);
  REMUDA_ASSIGN(const auto database, sqlite::Database::open(copy));
  return database->execute("PRAGMA journal_mode = WAL");
}

}  // namespace

Result<bool> make_private(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return errno == ENOENT ? Result<bool>(false) : no_way_to("read", path);
  if (info.st_uid != ::geteuid()) return usage_error(fmt::format("{} belongs to another user", path));
  if (path.find('\'') != std::string::npos)
    return usage_error(fmt::format("{} has a quotation mark in its name", path));
  if ((info.st_mode & (kOthers | S_ISGID)) != 0 && ::chmod(path.c_str(), 0700) != 0) return no_way_to("change", path);
  REMUDA_ASSIGN(const Folder folder, open_pool_folder(path));
  REMUDA_ASSIGN(const bool is_there, has_plain_file(folder, kPool));
  if (!is_there || ::fstatat(folder.fd.get(), kPool, &info, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if ((info.st_mode & kOthers) == 0 && info.st_uid == ::geteuid()) return false;
  REMUDA_TRY(copy_pool(folder));
  for (const char* beside : {"pool.db-wal", "pool.db-shm"}) ::unlinkat(folder.fd.get(), beside, 0);
  if (::renameat(folder.fd.get(), kCopy, folder.fd.get(), kPool) != 0)
    return no_way_to("replace", folder.path_of(kPool));
  return true;
}

}  // namespace remuda::pool
