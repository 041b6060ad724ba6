// Handshake: both ends of a connection prove that they know the job's secret and find out whether they belong to one
// run, before anything else is sent.
//
//   connector -> acceptor   hello      rank, world size, digest of its terms, nonce A
//   acceptor -> connector   challenge  the same of the acceptor, nonce B, MAC
//   connector -> acceptor   proof      MAC
//   acceptor -> connector   verdict    welcome, or why not, MAC
//
// MAC = HMAC-SHA256(secret, hello | challenge | this message), each without its own MAC; a message carries its step, so
// none can be replayed as another. Every message is a Greeting of 128 bytes, little-endian. What follows is encrypted
// if either end wants it (Protection), with a key made of the secret, the hello and the challenge: of both nonces, so
// that it is of this connection alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "comm/encryption.h"
#include "comm/terms.h"
#include "comm/tls.h"

namespace remuda::comm {

constexpr int kMaxRanks = 1024;
constexpr int kMaxStreams = 16;

/// What a connection is for: control carries set-up, liveness (its end shows that the peer is gone) and reports of
/// failure; data and the numbers after it carry messages, one number for each stream.
enum class LinkRole : uint32_t { control, data };
constexpr LinkRole data_role(int stream) { return LinkRole(uint32_t(LinkRole::data) + uint32_t(stream)); }
constexpr size_t stream_of(LinkRole role) { return size_t(role) - size_t(LinkRole::data); }

struct Greeting {
  enum class Step : uint32_t { hello, challenge, proof, verdict };
  enum class Verdict : uint32_t { welcome, other_size, duplicate, other_terms };
  static constexpr size_t kBytes = 128;
  using Bytes = std::array<std::byte, kBytes>;

  Step step = Step::hello;
  LinkRole role = LinkRole::control;
  uint32_t rank = 0;
  uint32_t size = 1;
  Verdict verdict = Verdict::welcome;
  std::array<std::byte, 32> nonce{};
  TermsDigest terms{};
  std::array<std::byte, 32> mac{};
  bool encrypted = false;  ///< wants what follows to be encrypted
};

Greeting::Bytes encode(const Greeting& greeting);
/// Pure. Refuses anything that is not a greeting of this version with a rank below its world size.
Result<Greeting> parse_greeting(std::span<const std::byte> bytes);
/// Pure. Whether `bytes`, the first ones received, can be the beginning of a greeting of this version.
Result<void> check_beginning(std::span<const std::byte> bytes);

/// A rank of a job.
struct Identity {
  int rank = 0;
  int size = 1;
  std::string secret;
  Terms terms;
  Encryption encryption = Encryption::off;
};

/// What both ends know, after a welcome, of how the connection goes on.
struct Protection {
  bool encrypted = false;
  Tls::Key key{};  ///< HKDF-SHA256 of the secret, hello and challenge
};

/// Pure. The same at both ends.
Protection protection_of(const std::string& secret, const Greeting& hello, const Greeting& challenge);

/// The connector's side, over an open socket. Errors name `address`. Sends nothing beyond loopback where the secret
/// could be guessed.
Result<Protection> authenticate(int fd, const Identity& self, LinkRole role, const std::string& address,
                                double deadline_s);

/// The acceptor's side, without IO: hello in, challenge out; proof in, verdict out.
class AcceptorHandshake {
 public:
  explicit AcceptorHandshake(const Identity& self, Endpoint from = {}) : self_(&self), from_(std::move(from)) {}
  /// The challenge to a hello. Nothing is signed for somebody beyond loopback where the secret could be guessed.
  Result<Greeting::Bytes> challenge(std::span<const std::byte> hello);
  /// Whether the proof shows that the connector knows the secret.
  Result<void> check_proof(std::span<const std::byte> proof) const;
  Greeting::Bytes verdict(Greeting::Verdict verdict) const;
  /// The connector's hello; once check_proof() has passed, that of a rank that knows the secret.
  const Greeting& connector() const { return hello_; }
  /// Once the challenge was made.
  Protection protection() const;

 private:
  const Identity* self_;
  Endpoint from_;  ///< the connector's
  Greeting hello_;
  Greeting challenge_;
};

/// After a verdict of other_terms, on both ends: exchanges the terms and returns an error that says what differs.
/// `peer` is the other end's rank, `address` its address.
Error other_terms(int fd, const Identity& self, bool is_acceptor, uint32_t peer, const std::string& address);

/// Whether a handshake failed as another process had come with the same rank: for those that come again.
bool is_there_twice(const Error& error);

}  // namespace remuda::comm
