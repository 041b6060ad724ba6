// The ways of splitting a global batch over devices.
#pragma once

namespace remuda::balance {

enum class BalancePolicy {
  automatic,  ///< by measured speed, adjusted during training
  even,       ///< the same for all
  fixed,      ///< in proportions that the user gave
};

}  // namespace remuda::balance
