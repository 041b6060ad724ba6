#include "bench/cipher.h"

#include <memory>
#include <openssl/evp.h>
#include <vector>

#include "bench/pair.h"
#include "bench/repeat.h"

namespace remuda::bench {
namespace {

constexpr int kRecordBytes = 16 << 10;
constexpr int kRecords = 256;
constexpr double kSeconds = 0.5;

using Context = std::unique_ptr<EVP_CIPHER_CTX, void (*)(EVP_CIPHER_CTX*)>;

// Seals a record with a fresh nonce, and opens it, each with its tag.
bool seal_and_open(EVP_CIPHER_CTX* context, std::vector<unsigned char>& record, uint64_t number) {
  static constexpr unsigned char kKey[16] = {1, 2, 3};
  unsigned char nonce[12] = {}, tag[16];
  std::copy_n(reinterpret_cast<const unsigned char*>(&number), sizeof number, nonce);
  int length = 0;
  return EVP_EncryptInit_ex(context, EVP_aes_128_gcm(), nullptr, kKey, nonce) == 1 &&
         EVP_EncryptUpdate(context, record.data(), &length, record.data(), kRecordBytes) == 1 &&
         EVP_EncryptFinal_ex(context, record.data(), &length) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, sizeof tag, tag) == 1 &&
         EVP_DecryptInit_ex(context, EVP_aes_128_gcm(), nullptr, kKey, nonce) == 1 &&
         EVP_DecryptUpdate(context, record.data(), &length, record.data(), kRecordBytes) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, sizeof tag, tag) == 1 &&
         EVP_DecryptFinal_ex(context, record.data(), &length) == 1;
}

}  // namespace

Result<double> cipher_s_per_byte() {
  REMUDA_ASSIGN(const auto values, run_pair([](int) -> Result<std::vector<double>> {
                  const Context context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
                  std::vector<unsigned char> record(kRecordBytes);
                  bool good = true;
                  const auto all = [&] {
                    for (uint64_t i = 0; i < kRecords; ++i) good = good && seal_and_open(context.get(), record, i);
                  };
                  const double seconds = median_s(kSeconds, [] {}, all, [](int times) { return times; });
                  if (!good) return failed("OpenSSL has no AES-128-GCM");
                  return std::vector{seconds / (double{kRecords} * kRecordBytes)};
                }));
  return values.front();
}

}  // namespace remuda::bench
