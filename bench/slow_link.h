// Two hosts on this machine: two network namespaces, joined by a virtual cable whose rate the system limits.
#pragma once

#include <string>

#include "base/result.h"

namespace remuda::bench {

class SlowLink {
 public:
  /// Needs root, `ip` and `tc`; an error that says which is missing otherwise. Removed with this object.
  static Result<SlowLink> create(double bits_per_s);
  SlowLink(SlowLink&& other) noexcept;
  ~SlowLink();

  /// Moves the calling process to host 0 or 1.
  Result<void> enter(int host) const;
  std::string address(int host) const;

 private:
  SlowLink() = default;
  std::string name(int host) const;
  Result<void> plug_in(int host, double bits_per_s) const;
  int id_ = 0;
};

}  // namespace remuda::bench
