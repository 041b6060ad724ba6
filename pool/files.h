// Folders and files of a pool: private, or shared with the group that the pool's folder is open to. Internal to pool.
//
// In a pool for all users each of them can put a link, or a file of another kind, in the place of ours, at any moment.
// So whatever stands in a pool's folder is opened without following links, checked, and changed by its descriptor. The
// pool's folder itself may be reached by links: only those who own the folders above it can make them.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace remuda::pool {

/// An open folder: what is done in it is done there, whatever its path leads to by now.
struct Folder {
  std::string path;  ///< for messages
  Fd fd;             ///< for the ...at() calls

  std::string path_of(const std::string& name) const { return path + "/" + name; }
};

/// The folder of a pool.
Result<Folder> open_pool_folder(const std::string& path);

/// A folder in another one; an error where there is none, or a link.
Result<Folder> open_folder(const Folder& above, const std::string& name);

/// The same, and makes it where there is none, with the group of the one above and, where that is shared, its
/// permissions for the group.
Result<Folder> make_folder_in(const Folder& above, const std::string& name);

/// What stands in it; nothing where it cannot be read.
std::vector<std::string> names_in(const Folder& folder);

/// Makes a named pipe of this user, opens it with `flags`, and shares it with the group of its folder. What stands
/// under that name is replaced.
Result<Fd> make_pipe(const Folder& folder, const std::string& name, int flags);

/// Whether a plain file without a second name stands there, to be read and written by this user: true; nothing stands
/// there: false; an error otherwise.
Result<bool> has_plain_file(const Folder& folder, const std::string& name);

/// Gives a plain file of this user the group of its folder and, where that is shared, its permissions for the group.
/// Files of others, and one that is not there, stay as they are.
Result<void> share_with_group(const Folder& folder, const std::string& name);

/// Puts a file with this content in place, whole, unless something stands there: that stays. It is shared with the
/// group of its folder before anybody can see it.
Result<void> create_file(const Folder& folder, const std::string& name, const std::string& content);

}  // namespace remuda::pool
