// Tests only: SQLite's file system with something happening at each of its calls: the process dies there, the disk is
// full from there on.
#pragma once

#include <functional>

namespace remuda::pool {

enum class FileCall { open, write, truncate, sync, lock, share };

/// Asked before each call; what it returns in place of 0 (SQLITE_OK) the call fails with. Nothing: all is well.
using OnFileCall = std::function<int(FileCall)>;

/// From now on for all databases that this process opens.
void install_faulty_vfs();
void set_on_file_call(OnFileCall on_call);

}  // namespace remuda::pool
