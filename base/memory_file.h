// MemoryFile: memory as a file without a name, which processes of one user share.
//
// One process makes it and sends the others its offer; they open it through /proc. It is freed with the last process
// that holds it, however that ends: nothing is left in /dev/shm, and the limit of /dev/shm does not apply.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/file.h"
#include "base/result.h"

namespace remuda {

class MemoryFile {
 public:
  /// How others find it; sent as raw bytes.
  struct Offer {
    int32_t pid = 0;
    int32_t fd = -1;
    std::array<std::byte, 16> token{};  ///< also its first bytes, which prove that it is the right one
  };

  /// Its first bytes are the token, which stays there; the rest is for the caller, who sets the size.
  static Result<MemoryFile> create();
  /// `whose`: "rank 0's memory", for the error. It fails on another host, and for another user.
  static Result<MemoryFile> open(const Offer& offer, const std::string& whose);

  const Offer& offer() const { return offer_; }
  int fd() const { return fd_.get(); }

 private:
  MemoryFile(Fd fd, const Offer& offer) : fd_(std::move(fd)), offer_(offer) {}
  Fd fd_;
  Offer offer_;
};

}  // namespace remuda
