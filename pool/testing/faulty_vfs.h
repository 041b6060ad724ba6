// Tests only: SQLite's file system with a hook at each of its calls: to let the process die there, or the disk be full
// from there on.
#pragma once

#include <functional>

namespace remuda::pool {

enum class FileCall { open, write, truncate, sync, lock, share };

/// Called before each call; the call fails with the code it returns, unless that is 0 (SQLITE_OK). An empty function:
/// no call fails.
using OnFileCall = std::function<int(FileCall)>;

/// Applies to all databases that this process opens from now on.
void install_faulty_vfs();
void set_on_file_call(OnFileCall on_call);

}  // namespace remuda::pool
