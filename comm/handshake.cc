#include "comm/handshake.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/env.h"
#include "comm/wire.h"

namespace remuda::comm {
namespace {

constexpr std::string_view kThereTwice = " is there twice";

constexpr std::string_view kMagic{"remuda\r\n", 8};
constexpr uint32_t kVersion = 3;
constexpr size_t kSignedBytes = 96;     // all except the MAC
constexpr uint32_t kEncrypted = 0x100;  // beside the role
constexpr double kTermsWaitS = 5;       // for the other end's terms, once they are known to differ

using Mac = std::array<std::byte, 32>;

void put(std::byte* to, uint32_t value) {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<std::byte>(value >> (8 * i));
}

uint32_t get(const std::byte* from) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= std::to_integer<uint32_t>(from[i]) << (8 * i);
  return value;
}

void fill_random(std::span<std::byte> bytes) {
  const int done = RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  REMUDA_CHECK(done == 1, "the system's random numbers are always there");
}

// What is signed of several greetings, one after the other.
std::vector<std::byte> texts_of(std::initializer_list<const Greeting*> greetings) {
  std::vector<std::byte> text;
  for (const Greeting* greeting : greetings) {
    const auto bytes = encode(*greeting);
    text.insert(text.end(), bytes.begin(), bytes.begin() + kSignedBytes);
  }
  return text;
}

Mac sign(const std::string& secret, const Greeting& hello, const Greeting& challenge, const Greeting& message) {
  const std::vector<std::byte> text = texts_of({&hello, &challenge, &message});
  Mac mac;
  unsigned length = mac.size();
  const auto* done = HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                          reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                          reinterpret_cast<unsigned char*>(mac.data()), &length);
  REMUDA_CHECK(done && length == mac.size(), "HMAC-SHA256 gives 32 bytes");
  return mac;
}

bool same(const Mac& a, const Mac& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

Result<Greeting> receive(int fd, Greeting::Step step, double deadline_s, const std::string& address) {
  Greeting::Bytes bytes;
  REMUDA_TRY(recv_all(fd, bytes, deadline_s, address));
  auto parsed = parse_greeting(bytes);
  if (!parsed) return failed(fmt::format("{}: {}", address, parsed.error().message));
  const Greeting greeting = *parsed;
  if (greeting.step != step) return failed(fmt::format("{} breaks the order of the handshake", address));
  return greeting;
}

Greeting greeting_of(const Identity& self, Greeting::Step step, LinkRole role, bool encrypted) {
  Greeting greeting{.step = step,
                    .role = role,
                    .rank = static_cast<uint32_t>(self.rank),
                    .size = static_cast<uint32_t>(self.size),
                    .terms = digest_of(self.terms),
                    .encrypted = encrypted};
  fill_random(greeting.nonce);
  return greeting;
}

Result<void> check_size(const Greeting& verdict, const Identity& self, const Greeting& acceptor,
                        const std::string& address) {
  if (verdict.verdict != Greeting::Verdict::other_size && acceptor.size == static_cast<uint32_t>(self.size)) return {};
  return usage_error(fmt::format("rank {} was started for a job of {} ranks, rank {} at {} for {}", self.rank,
                                 self.size, acceptor.rank, address, acceptor.size));
}

Result<void> check_verdict(int fd, const Greeting& verdict, const Identity& self, const Greeting& acceptor,
                           const std::string& address) {
  REMUDA_TRY(check_size(verdict, self, acceptor, address));
  if (verdict.verdict == Greeting::Verdict::duplicate)
    return usage_error(fmt::format("rank {}{}: rank {} at {} is connected to another one", self.rank, kThereTwice,
                                   acceptor.rank, address));
  if (verdict.verdict == Greeting::Verdict::other_terms || acceptor.terms != digest_of(self.terms))
    return tl::unexpected(other_terms(fd, self, false, acceptor.rank, address));
  return {};
}

}  // namespace

Protection protection_of(const std::string& secret, const Greeting& hello, const Greeting& challenge) {
  Protection protection{.encrypted = hello.encrypted || challenge.encrypted};
  std::vector<std::byte> both = texts_of({&hello, &challenge});
  std::string key = secret, digest = "SHA256", purpose = "remuda: TLS 1.3 between two ranks";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, key.data(), key.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, both.data(), both.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, purpose.data(), purpose.size()),
      OSSL_PARAM_construct_end()};
  EVP_KDF* const kdf = EVP_KDF_fetch(nullptr, "HKDF", nullptr);
  EVP_KDF_CTX* const context = EVP_KDF_CTX_new(kdf);
  const int done = EVP_KDF_derive(context, reinterpret_cast<unsigned char*>(protection.key.data()),
                                  protection.key.size(), parameters);
  EVP_KDF_CTX_free(context);
  EVP_KDF_free(kdf);
  REMUDA_CHECK(done == 1, "HKDF-SHA256 makes 32 bytes of any secret");
  return protection;
}

Greeting::Bytes encode(const Greeting& greeting) {
  Greeting::Bytes bytes{};
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  put(&bytes[8], kVersion);
  put(&bytes[12], static_cast<uint32_t>(greeting.step));
  put(&bytes[16], static_cast<uint32_t>(greeting.role) + (greeting.encrypted ? kEncrypted : 0));
  put(&bytes[20], greeting.rank);
  put(&bytes[24], greeting.size);
  put(&bytes[28], static_cast<uint32_t>(greeting.verdict));
  std::memcpy(&bytes[32], greeting.nonce.data(), greeting.nonce.size());
  std::memcpy(&bytes[64], greeting.terms.data(), greeting.terms.size());
  std::memcpy(&bytes[96], greeting.mac.data(), greeting.mac.size());
  return bytes;
}

Result<void> check_beginning(std::span<const std::byte> bytes) {
  if (std::memcmp(bytes.data(), kMagic.data(), std::min(bytes.size(), kMagic.size())) != 0)
    return failed("the other end does not speak remuda's protocol");
  if (bytes.size() < 12) return {};
  if (const uint32_t version = get(&bytes[8]); version != kVersion)
    return failed(fmt::format("the other end speaks version {} of the protocol, this one {}", version, kVersion));
  return {};
}

Result<Greeting> parse_greeting(std::span<const std::byte> bytes) {
  if (bytes.size() != Greeting::kBytes) return failed("the other end does not speak remuda's protocol");
  REMUDA_TRY(check_beginning(bytes));
  const uint32_t step = get(&bytes[12]), role = get(&bytes[16]) & ~kEncrypted, rank = get(&bytes[20]),
                 size = get(&bytes[24]);
  const uint32_t verdict = get(&bytes[28]);
  if (step > 3 || role > kMaxStreams || size > kMaxRanks || rank >= size || verdict > 3)
    return failed("the other end sent a greeting that makes no sense");
  Greeting greeting{static_cast<Greeting::Step>(step), static_cast<LinkRole>(role), rank, size,
                    static_cast<Greeting::Verdict>(verdict)};
  std::memcpy(greeting.nonce.data(), &bytes[32], greeting.nonce.size());
  std::memcpy(greeting.terms.data(), &bytes[64], greeting.terms.size());
  std::memcpy(greeting.mac.data(), &bytes[96], greeting.mac.size());
  greeting.encrypted = (get(&bytes[16]) & kEncrypted) != 0;
  return greeting;
}

Result<Protection> authenticate(int fd, const Identity& self, LinkRole role, const std::string& address,
                                double deadline_s) {
  const Endpoint peer = remote_endpoint(fd);
  REMUDA_TRY(check_secret(self.secret, peer, self.rank));
  const bool encrypted = wants_encryption(self.encryption, peer);
  const Greeting hello = greeting_of(self, Greeting::Step::hello, role, encrypted);
  REMUDA_TRY(send_all(fd, encode(hello), deadline_s, address));
  REMUDA_ASSIGN(const Greeting challenge, receive(fd, Greeting::Step::challenge, deadline_s, address));
  if (!same(challenge.mac, sign(self.secret, hello, challenge, challenge)))
    return usage_error(fmt::format("rank {} and {} do not share one secret; {} must be the same for all ranks",
                                   self.rank, address, env::secret.name));
  Greeting proof = hello;
  proof.step = Greeting::Step::proof;
  proof.mac = sign(self.secret, hello, challenge, proof);
  REMUDA_TRY(send_all(fd, encode(proof), deadline_s, address));
  REMUDA_ASSIGN(const Greeting verdict, receive(fd, Greeting::Step::verdict, deadline_s, address));
  if (!same(verdict.mac, sign(self.secret, hello, challenge, verdict)))
    return failed(fmt::format("{} sent a verdict that it did not sign", address));
  REMUDA_TRY(check_verdict(fd, verdict, self, challenge, address));
  return protection_of(self.secret, hello, challenge);
}

Result<Greeting::Bytes> AcceptorHandshake::challenge(std::span<const std::byte> hello) {
  REMUDA_ASSIGN(hello_, parse_greeting(hello));
  if (hello_.step != Greeting::Step::hello) return failed("the other end did not begin with a hello");
  REMUDA_TRY(check_secret(self_->secret, from_, self_->rank));
  const bool encrypted = wants_encryption(self_->encryption, from_);
  challenge_ = greeting_of(*self_, Greeting::Step::challenge, hello_.role, encrypted);
  challenge_.mac = sign(self_->secret, hello_, challenge_, challenge_);
  return encode(challenge_);
}

Result<void> AcceptorHandshake::check_proof(std::span<const std::byte> proof) const {
  REMUDA_ASSIGN(const Greeting given, parse_greeting(proof));
  if (given.step != Greeting::Step::proof || !same(given.mac, sign(self_->secret, hello_, challenge_, given)))
    return failed(fmt::format("the other end does not know the job's secret ({})", env::secret.name));
  return {};
}

Greeting::Bytes AcceptorHandshake::verdict(Greeting::Verdict verdict) const {
  Greeting message = challenge_;
  message.step = Greeting::Step::verdict;
  message.verdict = verdict;
  message.mac = sign(self_->secret, hello_, challenge_, message);
  return encode(message);
}

Protection AcceptorHandshake::protection() const { return protection_of(self_->secret, hello_, challenge_); }

Error other_terms(int fd, const Identity& self, bool is_acceptor, uint32_t peer, const std::string& address) {
  const auto theirs = exchange_terms(fd, self.terms, is_acceptor, deadline_after(kTermsWaitS), address);
  const int other = static_cast<int>(peer);
  const std::string what = theirs ? differences(self.rank, self.terms, other, *theirs)
                                  : fmt::format("what differs is not known, as {}", theirs.error().message);
  return {ErrorKind::usage, fmt::format("rank {} and rank {} at {} must have the same run, job and data: {}", self.rank,
                                        other, address, what)};
}

bool is_there_twice(const Error& error) { return error.message.find(kThereTwice) != std::string::npos; }

}  // namespace remuda::comm
