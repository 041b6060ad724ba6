// What a device is in a run for.
#pragma once

namespace remuda::balance {

enum class Role {
  compute,     ///< takes samples
  preprocess,  ///< reads and prepares samples for the others; takes none
  state,       ///< owns parameters and optimizer state for the others; takes no samples
  automatic,   ///< takes samples; which role would be better is proposed
};

constexpr bool takes_samples(Role role) { return role == Role::compute || role == Role::automatic; }

}  // namespace remuda::balance
