// Seal: a datagram that only those who know a key can write or read.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace remuda::quorum {

/// AES-256-GCM. One key is for one run.
class Seal {
 public:
  using Salt = std::array<std::byte, 32>;

  static Salt make_salt();
  /// The key is HMAC-SHA256(secret, purpose | salt).
  Seal(std::string_view secret, const Salt& salt);

  /// A random nonce of 12 bytes, the text encrypted, and 16 bytes that show that nobody has changed it.
  std::string close(std::string_view text) const;
  /// Nothing for bytes that were not closed with this key. Safe for any bytes.
  std::optional<std::string> open(std::string_view bytes) const;

 private:
  std::array<unsigned char, 32> key_{};
};

}  // namespace remuda::quorum
