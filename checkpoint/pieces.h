// Pieces: the tensors of a checkpoint, which lie in its files cut into ranges of elements: what each rank owned.
//
// A file is safetensors. A piece is a tensor of one dimension in it, whose name says what it is part of and where it
// begins there: "state0/layer1.weight@4096" holds elements 4096 and on of the first state of layer1.weight. So any
// number of ranks can read what any other number has written.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/manifest.h"
#include "weights/reader.h"

namespace remuda::checkpoint {

/// Of what a piece is part: a kind, such as "parameter" or "state0", and the name of the tensor that it belongs to.
struct PieceName {
  std::string kind, tensor;
  uint64_t first = 0;  ///< its first element, in row-major order

  bool operator==(const PieceName&) const = default;
};

std::string text_of(const PieceName& name);
/// Nothing where the text is no such name.
std::optional<PieceName> parse_piece_name(std::string_view text);

/// The files of a checkpoint, opened.
class Pieces {
 public:
  /// The files of `manifest` in `folder`. The error names the file that is not what the manifest says.
  static Result<Pieces> open(const std::string& folder, const Manifest& manifest);

  size_t files() const { return readers_.size(); }
  const weights::Reader& file(size_t rank) const { return readers_[rank]; }
  /// The tensor of that name in one file, or null.
  const weights::TensorInfo* find(size_t rank, const std::string& name) const;

  /// Copies elements of type `type` of a tensor from whatever pieces hold them: as many as `to` takes, from `first` on.
  /// An error where some are in no piece, or of another type.
  Result<void> read(const std::string& kind, const std::string& tensor, weights::DType type, uint64_t first,
                    std::span<std::byte> to) const;
  /// Whether there is any piece of that kind.
  bool has(const std::string& kind) const;

 private:
  struct Place {
    size_t file = 0;
    weights::TensorInfo info;
  };
  std::vector<weights::Reader> readers_;
  std::map<std::pair<std::string, std::string>, std::map<uint64_t, Place>> places_;  ///< by kind and tensor; by element
  std::map<std::pair<size_t, std::string>, weights::TensorInfo> by_name_;
};

}  // namespace remuda::checkpoint
