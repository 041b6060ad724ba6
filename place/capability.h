// Capability: what a device's arithmetic must support, as people ask for it: bf16, sm_80, gfx90a.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/device.h"

namespace remuda::place {

/// fp16, bf16, fp8, fp4   the hardware computes with it
/// sm_80, sm80, 8.0       compute capability 8.0 or newer
/// gfx90a                 this very target
class Capability {
 public:
  /// A usage error lists the possible values. The case of `text` does not matter.
  static Result<Capability> parse(std::string_view text);

  /// Whether `device` has it; missing where neither compute capability nor target is known.
  Reading<bool> of(const Device& device) const;
  /// As asked for, in lower case.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::string since_;                 ///< first compute capability that has it; empty: none has
  std::vector<std::string> targets_;  ///< prefixes of the names of targets that have it
  bool whole_ = false;                ///< a target must be named in full
};

}  // namespace remuda::place
