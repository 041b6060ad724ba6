// Manifest: what one checkpoint holds. It is the last of a checkpoint's files to be written: a folder without one is
// none.
//
// All of it is plain data, in JSON, of the version kVersion, with a sum of itself. `run` belongs to who wrote it.
// Version 1 had one sum for a file as a whole, which only who reads all of it can compare; it is still read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "weights/dtype.h"

namespace remuda::checkpoint {

inline constexpr uint64_t kSummedBytes = 1 << 20;

/// One of the checkpoint's files, in the same folder.
struct StoredFile {
  std::string name;  ///< without a folder
  uint64_t bytes = 0;
  std::vector<uint64_t> sums;  ///< XXH3, 64 bits, of each kSummedBytes of it; the last ones may be fewer

  bool operator==(const StoredFile&) const = default;
};

/// A tensor of the model, whose elements lie in pieces in the files (pieces.h).
struct ModelTensor {
  std::string name;
  weights::DType type = weights::DType::f32;
  std::vector<uint64_t> shape;
  bool is_buffer = false;  ///< not trained; each rank has its own

  bool operator==(const ModelTensor&) const = default;
};

struct Manifest {
  static constexpr int kVersion = 2;

  int version = kVersion;
  std::string remuda;  ///< the version that wrote it
  int64_t step = 0;    ///< so many steps were made
  double written_s = 0;
  std::vector<StoredFile> files;  ///< one per rank, in rank order; at least one
  std::vector<ModelTensor> tensors;
  Json run = Json::object();

  /// Names that tensors have besides their own: name -> that of the tensor. What `run` says of "tied", if it is that.
  std::map<std::string, std::string> tied() const;
  uint64_t bytes() const;
  bool operator==(const Manifest&) const = default;
};

Json to_json(const Manifest& manifest);

/// The same with "xxh3", the sum of all the rest, in place of one that may be there.
Json sealed(Json manifest);

/// Hostile text is welcome. The error names `where` and what in it is wrong.
Result<Manifest> parse_manifest(std::string_view text, const std::string& where);

}  // namespace remuda::checkpoint
