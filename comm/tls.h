// Tls: one end of a connection that is encrypted with TLS 1.3 and a key that both ends have, without certificates.
//
// OpenSSL does all of it: TLS_AES_128_GCM_SHA256, the pre-shared key together with an ephemeral exchange (psk_dhe_ke),
// so that a key that becomes known later opens nothing. A connection that was not made with the key is refused.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace remuda::comm {

class Tls {
 public:
  using Key = std::array<std::byte, 32>;
  enum class End { connector, acceptor };

  /// Sent bytes after which the traffic key is renewed: AES-GCM's own limit is six times as far (RFC 8446, 5.5).
  static constexpr uint64_t kRenewBytes = uint64_t{64} << 30;

  /// Both ends at the same time, over an open non-blocking socket, which outlives this. An error (failed) when the
  /// other end does not know the key or what it sends was changed on the way; lost_peer when it is gone or silent.
  /// `peer` names it.
  static Result<std::unique_ptr<Tls>> connect(int fd, End end, const Key& key, double deadline_s,
                                              const std::string& peer, uint64_t renew_bytes = kRenewBytes);
  ~Tls();

  /// To be called where a message begins, before any byte of it is sent: renews the key where it is time. The other end
  /// must be able to receive what came before without an answer; two ends that renewed keys in the middle of messages
  /// could wait for each other.
  void begin_message();
  /// How often the key for what is sent was renewed.
  int renewals() const;

  /// As those of comm/wire.h. What was not sent has to be passed again, with the same bytes and at least as many.
  ptrdiff_t send_some(std::span<const std::byte> bytes);
  ptrdiff_t recv_some(std::span<std::byte> bytes);
  /// After -1: what is wrong with what the other end sent ("bad record mac"); empty when it is gone.
  const std::string& trouble() const { return trouble_; }

  Tls(const Tls&) = delete;

 private:
  struct State;
  explicit Tls(std::unique_ptr<State> state);
  Result<void> shake(End end, double deadline_s, const std::string& peer);
  ptrdiff_t gave_nothing(int result);

  std::unique_ptr<State> state_;
  std::string trouble_;
};

}  // namespace remuda::comm
