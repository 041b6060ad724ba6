// The policy's file: TOML, read with errors that name the line.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "policy/policy.h"

namespace remuda::policy {

/// Where the policy of the pool for all users stands.
inline constexpr const char* kPolicyFile = "/etc/remuda/policy.toml";
inline constexpr size_t kMostBytes = 1 << 20;

/// `name` is for errors and for Rule::where. Any text is a policy or a usage error of one line.
Result<Policy> parse_policy(std::string_view text, const std::string& name);

/// Reads the file. A usage error also where it cannot be read, and where others than root and this user could write it.
Result<Policy> read_policy(const std::string& path);

}  // namespace remuda::policy
