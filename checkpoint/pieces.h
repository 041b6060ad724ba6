// Pieces: the tensors of a checkpoint, which lie in its files cut into ranges of elements: what each rank owned.
//
// A file is safetensors. A piece is a tensor of one dimension in it, whose name says what it is part of and where it
// begins there: "state0/layer1.weight@4096" holds elements 4096 and on of the first state of layer1.weight. So any
// number of ranks can read what any other number has written.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/checked_file.h"
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

/// The files of a checkpoint, opened. What is wanted of them is read in one pass.
class Pieces {
 public:
  /// The files of `manifest` in `folder`. The error names the file that is not what the manifest says.
  static Result<Pieces> open(const std::string& folder, const Manifest& manifest);

  size_t files() const { return files_.size(); }
  const std::string& path(size_t file) const { return files_[file].data->path(); }
  /// The tensors in one file.
  const std::vector<weights::TensorInfo>& tensors(size_t file) const { return files_[file].reader.header().tensors; }
  /// The tensor of that name in one file, or null.
  const weights::TensorInfo* find(size_t file, const std::string& name) const;
  /// Whether there is any piece of that kind.
  bool has(const std::string& kind) const;

  /// Elements of type `type` of a tensor, as many as `to` takes, from `first` on, are wanted from whatever pieces hold
  /// them. An error where some are in no piece, or of another type. They are there after fetch().
  Result<void> want(const std::string& kind, const std::string& tensor, weights::DType type, uint64_t first,
                    std::span<std::byte> to);
  /// All of one of tensors() is.
  void want(size_t file, const weights::TensorInfo& tensor, std::span<std::byte> to);
  /// It is to be compared with its sums, and not copied.
  void want_compared(size_t file, const weights::TensorInfo& tensor);
  /// Reads what was wanted since the last call (checked_file.h). The error is of what cannot be read or is damaged.
  Result<void> fetch();
  /// Whether a fetch() has failed.
  bool is_damaged() const { return is_damaged_; }

 private:
  struct File {
    std::shared_ptr<const CheckedFile> data;
    weights::Reader reader;
  };
  struct Place {
    size_t file = 0;
    weights::TensorInfo info;
  };
  std::vector<File> files_;
  std::map<std::pair<std::string, std::string>, std::map<uint64_t, Place>> places_;  ///< by kind and tensor; by element
  std::map<std::pair<size_t, std::string>, weights::TensorInfo> by_name_;
  std::vector<Wanted> wanted_;
  bool is_damaged_ = false;
};

}  // namespace remuda::checkpoint
