// Which policy holds for a pool, and its file.
#pragma once

#include <string>

#include "base/result.h"
#include "policy/file.h"
#include "policy/policy.h"

namespace remuda::run {

/// The file of the policy of the pool in `folder`; empty where it has none. Of the pool for all users it is `of_all`,
/// if that is there, and nothing else; of any other, what REMUDA_POLICY names. A file that cannot be looked at is
/// there: what cannot be read permits nothing.
std::string policy_path(const std::string& folder, const std::string& of_all = policy::kPolicyFile);

/// The policy in that file, in this machine's time zone; without a path, the one that permits everything.
Result<policy::Policy> policy_at(const std::string& path);
/// The policy of that pool, in this machine's time zone; without a file, the one that permits everything.
Result<policy::Policy> policy_of(const std::string& folder);

}  // namespace remuda::run
