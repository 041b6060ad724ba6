// What the cipher of encrypted connections costs: AES-128-GCM over records of 16 KiB, as TLS has them.
#pragma once

#include "base/result.h"

namespace remuda::bench {

/// Seconds to seal and to open a byte, on both cores of run_pair() at the same time.
Result<double> cipher_s_per_byte();

}  // namespace remuda::bench
