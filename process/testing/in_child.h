// Tests only: work in a forked child.
#pragma once

#include <functional>
#include <string>

namespace remuda::process {

struct ChildEnd {
  int status = 0;    ///< as waitpid() gives it
  std::string said;  ///< what `work` returned or passed to `say`
};

/// Runs `work` in a forked child, which ends with what it returns. `say` sends text to the parent at once. No Pool may
/// be open here.
using Say = std::function<void(const std::string&)>;
ChildEnd in_child(const std::function<std::string(const Say& say)>& work);

/// The same in a child whose mounts are its own; "skip: why" where this process may not have such.
ChildEnd with_own_mounts(const std::function<std::string()>& work);

}  // namespace remuda::process
