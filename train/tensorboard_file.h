// TensorBoardFile: scalars of a run, step by step, as TensorBoard reads them: a file of TFRecords, each an Event.
//
// Each record is written at once, whole: after kill -9 the file holds all of them, and at most the beginning of one
// more, which readers pass over.
//   https://github.com/tensorflow/tensorboard/blob/master/tensorboard/compat/proto/event.proto
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"

namespace remuda::train {

struct Scalar {
  std::string tag;  ///< "loss"; what stands before a slash is the group it is shown in
  double value = 0;
};

/// A length and the bytes, each with its masked CRC-32C.
std::string tf_record(std::string_view bytes);
/// An Event of scalars; with none, the one that files begin with.
std::string event_of(int64_t step, double wall_s, std::span<const Scalar> scalars);

class TensorBoardFile {
 public:
  /// A new file in the folder, which is made where there is none: a run that goes on adds a file, and TensorBoard shows
  /// them as one. The error names the file or folder that cannot be made.
  static Result<TensorBoardFile> create(const std::string& folder, double wall_s);

  /// A write that fails ends the file and not the run: it is reported on stderr, once.
  void add(int64_t step, double wall_s, std::span<const Scalar> scalars);
  /// Why the file ended before the run, or that it is gone; empty: neither.
  std::string why_ended() const;

 private:
  TensorBoardFile(Fd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  Fd file_;
  std::string path_, why_ended_;
};

}  // namespace remuda::train
