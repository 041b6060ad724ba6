// Folders and files of a pool: private, or shared with the group that the pool's folder is open to. Internal to pool.
//
// In a pool for all users, each of them can replace our file by a link, or by a file of another kind, at any moment. So
// every file in a pool's folder is opened without following links, checked, and changed through its descriptor. The
// pool's folder itself may be reached through links: only the owners of the folders above it can make them.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace remuda::pool {

/// An open folder: operations act on this folder, even if its path leads elsewhere by now.
struct Folder {
  std::string path;  ///< for messages
  Fd fd;             ///< for the ...at() calls

  std::string path_of(const std::string& name) const { return path + "/" + name; }
};

/// The folder of a pool.
Result<Folder> open_pool_folder(const std::string& path);

/// A folder in another one; an error where there is none, or a link.
Result<Folder> open_folder(const Folder& above, const std::string& name);

/// The same, but makes the folder where there is none, with the group of the folder above it and, where that one is
/// shared, its permissions for the group.
Result<Folder> make_folder_in(const Folder& above, const std::string& name);

/// The names of its entries; empty where it cannot be read.
std::vector<std::string> names_in(const Folder& folder);

/// Makes a named pipe of this user, opens it with `flags`, and shares it with the group of its folder. Replaces an
/// existing entry of that name.
Result<Fd> make_pipe(const Folder& folder, const std::string& name, int flags);

/// True where it is a plain file with one hard link that this user may read and write; false where nothing has that
/// name; an error otherwise.
Result<bool> has_plain_file(const Folder& folder, const std::string& name);

/// Gives a plain file of this user the group of its folder and, where that is shared, its permissions for the group.
/// Does nothing for files of other users, or where there is no such file.
Result<void> share_with_group(const Folder& folder, const std::string& name);

/// Makes a file with this content, in one step, unless something has that name already: that stays. It is shared with
/// the group of its folder before it becomes visible.
Result<void> create_file(const Folder& folder, const std::string& name, const std::string& content);

}  // namespace remuda::pool
