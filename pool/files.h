// Folders and files of a pool: private, or shared with the group that the pool's folder is open to. Internal to pool.
#pragma once

#include <string>

#include "base/result.h"

namespace remuda::pool {

/// Makes a folder in one that is there, with its group and the group's permissions.
Result<void> make_like_parent(const std::string& path);

/// Gives a file or folder the group of `folder`, and to the group the permissions that the folder gives it. What
/// belongs to somebody else stays as it is: they have done so.
Result<void> share_with_group(const std::string& path, const std::string& folder);

/// Puts a file with this content in place, whole, unless one is there: that one stays. It is shared with the group of
/// its folder before anybody can see it.
Result<void> create_file(const std::string& path, const std::string& content);

}  // namespace remuda::pool
