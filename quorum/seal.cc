#include "quorum/seal.h"

#include <memory>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/check.h"

namespace remuda::quorum {
namespace {

constexpr size_t kNonce = 12, kTag = 16;
constexpr std::string_view kPurpose = "remuda: who goes on when ranks are lost";

using Context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;
Context new_context() { return {EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free}; }

const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }
unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

void fill_random(unsigned char* bytes, size_t size) {
  const int done = RAND_bytes(bytes, static_cast<int>(size));
  REMUDA_CHECK(done == 1, "the system's random numbers are always there");
}

}  // namespace

Seal::Salt Seal::make_salt() {
  Salt salt;
  fill_random(reinterpret_cast<unsigned char*>(salt.data()), salt.size());
  return salt;
}

Seal::Seal(std::string_view secret, const Salt& salt) {
  std::string text(kPurpose);
  text.append(reinterpret_cast<const char*>(salt.data()), salt.size());
  unsigned length = key_.size();
  const auto* done = HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), bytes_of(text), text.size(),
                          key_.data(), &length);
  REMUDA_CHECK(done && length == key_.size(), "HMAC-SHA256 gives 32 bytes");
}

std::string Seal::close(std::string_view text) const {
  std::string sealed(kNonce + text.size() + kTag, '\0');
  unsigned char* const out = bytes_of(sealed);
  fill_random(out, kNonce);
  const Context context = new_context();
  int length = 0, rest = 0;
  const bool done =
      EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key_.data(), out) == 1 &&
      EVP_EncryptUpdate(context.get(), out + kNonce, &length, bytes_of(text), static_cast<int>(text.size())) == 1 &&
      EVP_EncryptFinal_ex(context.get(), out + kNonce + length, &rest) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTag, out + kNonce + text.size()) == 1;
  REMUDA_CHECK(done, "AES-256-GCM closes any text");
  return sealed;
}

std::optional<std::string> Seal::open(std::string_view bytes) const {
  if (bytes.size() < kNonce + kTag) return std::nullopt;
  const std::string_view body = bytes.substr(kNonce, bytes.size() - kNonce - kTag);
  std::string text(body.size(), '\0'), tag(bytes.substr(bytes.size() - kTag));
  const Context context = new_context();
  int length = 0, rest = 0;
  const bool good =
      EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key_.data(), bytes_of(bytes)) == 1 &&
      EVP_DecryptUpdate(context.get(), bytes_of(text), &length, bytes_of(body), static_cast<int>(body.size())) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTag, tag.data()) == 1 &&
      EVP_DecryptFinal_ex(context.get(), bytes_of(text) + length, &rest) == 1;
  if (!good) return std::nullopt;
  return text;
}

}  // namespace remuda::quorum
