#include "pool/testing/faulty_vfs.h"

#include <sqlite3.h>

namespace remuda::pool {
namespace {

OnFileCall& on_call() {
  static OnFileCall function;
  return function;
}

int happens(FileCall call) { return on_call() ? on_call()(call) : SQLITE_OK; }

/// SQLite allocates szOsFile bytes: ours, then those of the real file.
struct File {
  sqlite3_file base;
  sqlite3_file* real;
};

sqlite3_file* real(sqlite3_file* file) { return reinterpret_cast<File*>(file)->real; }

template <auto Method, typename... Arguments>
int pass(sqlite3_file* file, Arguments... arguments) {
  return (real(file)->pMethods->*Method)(real(file), arguments...);
}

template <FileCall Call, auto Method, typename... Arguments>
int fault(sqlite3_file* file, Arguments... arguments) {
  const int code = happens(Call);
  return code != SQLITE_OK ? code : pass<Method>(file, arguments...);
}

void barrier(sqlite3_file* file) {
  happens(FileCall::share);
  real(file)->pMethods->xShmBarrier(real(file));
}

using M = sqlite3_io_methods;
const M kMethods = {
    .iVersion = 2,
    .xClose = pass<&M::xClose>,
    .xRead = pass<&M::xRead, void*, int, sqlite3_int64>,
    .xWrite = fault<FileCall::write, &M::xWrite, const void*, int, sqlite3_int64>,
    .xTruncate = fault<FileCall::truncate, &M::xTruncate, sqlite3_int64>,
    .xSync = fault<FileCall::sync, &M::xSync, int>,
    .xFileSize = pass<&M::xFileSize, sqlite3_int64*>,
    .xLock = fault<FileCall::lock, &M::xLock, int>,
    .xUnlock = pass<&M::xUnlock, int>,
    .xCheckReservedLock = pass<&M::xCheckReservedLock, int*>,
    .xFileControl = pass<&M::xFileControl, int, void*>,
    .xSectorSize = pass<&M::xSectorSize>,
    .xDeviceCharacteristics = pass<&M::xDeviceCharacteristics>,
    .xShmMap = fault<FileCall::share, &M::xShmMap, int, int, int, void volatile**>,
    .xShmLock = fault<FileCall::lock, &M::xShmLock, int, int, int>,
    .xShmBarrier = barrier,
    .xShmUnmap = pass<&M::xShmUnmap, int>,
};

sqlite3_vfs* below = nullptr;

int open(sqlite3_vfs*, sqlite3_filename name, sqlite3_file* file, int flags, int* opened_flags) {
  auto* ours = reinterpret_cast<File*>(file);
  ours->base.pMethods = nullptr;
  ours->real = reinterpret_cast<sqlite3_file*>(ours + 1);
  if (const int code = happens(FileCall::open); code != SQLITE_OK) return code;
  const int code = below->xOpen(below, name, ours->real, flags, opened_flags);
  if (ours->real->pMethods) ours->base.pMethods = &kMethods;
  return code;
}

}  // namespace

void install_faulty_vfs() {
  static sqlite3_vfs vfs;
  if (below) return;
  below = sqlite3_vfs_find(nullptr);
  vfs = *below;
  vfs.zName = "faulty";
  vfs.szOsFile = static_cast<int>(sizeof(File)) + below->szOsFile;
  vfs.xOpen = open;
  sqlite3_vfs_register(&vfs, 1);
}

void set_on_file_call(OnFileCall function) { on_call() = std::move(function); }

}  // namespace remuda::pool
