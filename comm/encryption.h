// Encryption: which connections between ranks are encrypted, and what a secret must be for those that leave the host.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "comm/wire.h"

namespace remuda::comm {

enum class Encryption {
  off,
  beyond_loopback,  ///< connections whose other end has an address that is not loopback's
  always,           ///< those of loopback, too
};

/// "off", "beyond loopback", "always".
const char* name_of(Encryption encryption);

/// 127.0.0.0/8 and ::1, and whatever is no address of a network.
bool is_loopback(const Endpoint& endpoint);

bool wants_encryption(Encryption encryption, const Endpoint& peer);

constexpr double kLeastSecretBits = 128;

/// What random text of this length and these characters tells at most: log2(10) bits for each character if all are
/// digits, 4 if all are hexadecimal digits, else 6, as base64 has them.
double secret_bits(std::string_view secret);

/// Beyond loopback a secret can be guessed by whoever listens or asks for one signature: an error (usage) if it has
/// fewer than kLeastSecretBits. To be called before `rank` signs anything for whoever is at `address`.
Result<void> check_secret(std::string_view secret, const Endpoint& address, int rank);

}  // namespace remuda::comm
