// Tar archives: where in the file each member lies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace remuda::data {

struct TarMember {
  std::string name;  ///< as it stands there, folders and all
  bool is_link = false;
  uint64_t offset = 0, bytes = 0;  ///< its content; a link has none
};

/// The files and links of an open archive, in its order: POSIX (ustar, pax) and GNU tar's own format. Foreign input:
/// each header is checked by its sum, and each member lies in the file. The error names `name`.
Result<std::vector<TarMember>> list_tar(int fd, const std::string& name);

}  // namespace remuda::data
