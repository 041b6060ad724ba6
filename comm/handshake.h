// Handshake: both ends of a connection prove that they know the job's secret, before anything else is said.
//
//   connector -> acceptor   hello      who I am, nonce A
//   acceptor -> connector   challenge  who I am, nonce B, MAC
//   connector -> acceptor   proof      MAC
//   acceptor -> connector   verdict    welcome, or why not, MAC
//
// MAC = HMAC-SHA256(secret, hello | challenge | this message), each without its own MAC; a message carries its step, so
// none can be played back as another. Every message is a Greeting of 96 bytes, little-endian. The handshake
// authenticates; it does not encrypt what follows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace remuda::comm {

constexpr int kMaxRanks = 1024;

/// What a connection is for: control carries set-up, signs of life and goodbyes; data carries messages.
enum class LinkRole : uint32_t { control, data };

struct Greeting {
  enum class Step : uint32_t { hello, challenge, proof, verdict };
  enum class Verdict : uint32_t { welcome, other_size, duplicate };
  static constexpr size_t kBytes = 96;
  using Bytes = std::array<std::byte, kBytes>;

  Step step = Step::hello;
  LinkRole role = LinkRole::control;
  uint32_t rank = 0;
  uint32_t size = 1;
  Verdict verdict = Verdict::welcome;
  std::array<std::byte, 32> nonce{};
  std::array<std::byte, 32> mac{};
};

Greeting::Bytes encode(const Greeting& greeting);
/// Pure. Refuses anything that is not a greeting of this version with a rank below its world size.
Result<Greeting> parse_greeting(std::span<const std::byte> bytes);

/// A rank of a job.
struct Identity {
  int rank = 0;
  int size = 1;
  std::string secret;
};

/// The connector's side, over an open socket. Errors name `address`.
Result<void> introduce(int fd, const Identity& self, LinkRole role, const std::string& address, double deadline_s);

/// The acceptor's side, without IO.
class Reception {
 public:
  explicit Reception(const Identity& self) : self_(&self) {}
  /// The challenge to a hello.
  Result<Greeting::Bytes> answer(std::span<const std::byte> hello);
  /// Whether the proof shows that the visitor knows the secret.
  Result<void> check(std::span<const std::byte> proof) const;
  Greeting::Bytes verdict(Greeting::Verdict verdict) const;
  const Greeting& visitor() const { return hello_; }

 private:
  const Identity* self_;
  Greeting hello_;
  Greeting challenge_;
};

}  // namespace remuda::comm
