// TokenSet: windows of a token file, a plain stream of little-endian uint16.
//
// Window i holds the tokens [i * context, i * context + context], context + 1 of them: the first `context` are the
// input, the last `context` the targets. The last token of one window is the first of the next.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/file.h"
#include "base/result.h"

namespace remuda::data {

class TokenSet {
 public:
  /// Maps the file. It must hold at least one window of whole tokens, none of them >= `vocabulary`. The error names the
  /// file, and the place of a token out of range.
  static Result<TokenSet> open(const std::string& path, int context, int vocabulary);

  size_t size() const { return windows_; }
  std::span<const uint16_t> window(size_t index) const { return tokens_.subspan(index * context_, context_ + 1); }

 private:
  MappedFile file_;
  std::span<const uint16_t> tokens_;
  size_t context_ = 0, windows_ = 0;
};

}  // namespace remuda::data
