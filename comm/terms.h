// Terms: names and values that must be the same on all ranks of a run: its id, the job's settings, the data.
//
// Both ends of a connection compare a digest of their terms in the handshake. Where it differs they exchange the terms
// themselves, so that both can report what differs.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace remuda::comm {

struct Term {
  std::string name;  ///< "train.seed"
  std::string value;
  bool operator==(const Term&) const = default;
};

using Terms = std::vector<Term>;
using TermsDigest = std::array<std::byte, 32>;

/// SHA-256. Terms in another order are other terms.
TermsDigest digest_of(const Terms& terms);

/// "train.seed is 8 for rank 1 and 7 for rank 0": the first few differences, safe for a terminal whatever the terms
/// contain.
std::string differences(int a, const Terms& terms_of_a, int b, const Terms& terms_of_b);

/// Once both ends of a connection have proved that they know the secret, and know that their terms differ: sends `mine`
/// and returns those of the other end, not encrypted. Exactly one end must have `send_first`, so that neither waits
/// with its socket's buffer full.
Result<Terms> exchange_terms(int fd, const Terms& mine, bool send_first, double deadline_s, const std::string& peer);

}  // namespace remuda::comm
