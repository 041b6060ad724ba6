// Link: one connection to another rank, plain or encrypted, with the steps and waits of comm/wire.h.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"
#include "comm/tls.h"

namespace remuda::comm {

class Link {
 public:
  Link() = default;
  /// A plain one.
  Link(Fd fd) : fd_(std::move(fd)) {}

  int get() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }

  /// From now on; both ends at the same time. Errors: those of Tls::connect().
  Result<void> encrypt(Tls::End end, const Tls::Key& key, double deadline_s, const std::string& peer);
  bool encrypted() const { return tls_ != nullptr; }

  /// Where a message begins: see Tls::begin_message().
  void begin_message() const {
    if (tls_) tls_->begin_message();
  }

  /// As in comm/wire.h. Of an encrypted link's bytes, those that were not sent must be passed again. One that cannot be
  /// received into enough may hold bytes that poll() does not report: receive until it would block.
  ptrdiff_t send_some(std::span<const std::byte> bytes, bool more = false) const;
  ptrdiff_t recv_some(std::span<std::byte> bytes) const;
  Result<void> send_all(std::span<const std::byte> bytes, double deadline_s, std::string_view peer) const;
  Result<void> recv_all(std::span<std::byte> bytes, double deadline_s, std::string_view peer) const;

  /// After -1: what is wrong with what the other end sent; empty when it is gone.
  std::string trouble() const { return tls_ ? tls_->trouble() : ""; }
  /// Sends nothing more.
  void hang_up() const;

 private:
  Fd fd_;
  std::unique_ptr<Tls> tls_;
};

}  // namespace remuda::comm
