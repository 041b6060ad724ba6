#include "comm/encryption.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/env.h"

namespace remuda::comm {
namespace {

bool all_of(std::string_view text, std::string_view characters) {
  return text.find_first_not_of(characters) == std::string_view::npos;
}

}  // namespace

const char* name_of(Encryption encryption) {
  switch (encryption) {
    case Encryption::off:
      return "off";
    case Encryption::beyond_loopback:
      return "beyond loopback";
    case Encryption::always:
      return "always";
  }
  return "unknown";
}

bool is_loopback(const Endpoint& endpoint) {
  std::string_view address = endpoint.address;
  if (constexpr std::string_view kMapped = "::ffff:"; address.starts_with(kMapped))
    address.remove_prefix(kMapped.size());
  return address.empty() || address == "::1" || address.starts_with("127.");
}

bool wants_encryption(Encryption encryption, const Endpoint& peer) {
  return encryption == Encryption::always || (encryption == Encryption::beyond_loopback && !is_loopback(peer));
}

double secret_bits(std::string_view secret) {
  constexpr std::string_view kDigits = "0123456789", kHex = "0123456789abcdefABCDEF";
  const double each = all_of(secret, kDigits) ? std::log2(10.0) : all_of(secret, kHex) ? 4 : 6;
  return each * static_cast<double>(secret.size());
}

Result<void> check_secret(std::string_view secret, const Endpoint& address, int rank) {
  const double bits = secret_bits(secret);
  if (is_loopback(address) || bits >= kLeastSecretBits) return {};
  return usage_error(
      fmt::format("rank {} and {} are not on one host's loopback, and the secret of the job has at most {:.0f} bits; "
                  "{} must be random text of at least {:.0f}, as `openssl rand -hex 32` prints it",
                  rank, address.text(), bits, env::secret.name, kLeastSecretBits));
}

}  // namespace remuda::comm
