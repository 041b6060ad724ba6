// Store: the folder in which the checkpoints of a run lie, each in a folder of its own: "step-000000120".
//
//   folder/step-000000120/rank-0.safetensors, rank-1.safetensors, ..., manifest.json
//
// Files appear whole (base/file.h) and the manifest last, so that a process that is killed at any moment leaves the
// checkpoints before it as they were.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"

namespace remuda::checkpoint {

/// A checkpoint by its place; whether it is whole is another question.
struct Stored {
  int64_t step = 0;
  std::string folder;
};

/// Where the checkpoint of a step lies, or would.
Stored place_of(const std::string& folder, int64_t step);

/// Those with a manifest, in the order of their steps. None where there is no such folder.
Result<std::vector<Stored>> stored_in(const std::string& folder);

Result<Manifest> read_manifest(const Stored& stored);
/// Reads all files, and compares their lengths and sums with the manifest. The error says what is wrong with which.
Result<Manifest> verify(const Stored& stored);

struct Found {
  Stored at;
  Manifest manifest;
};
struct Newest {
  std::optional<Found> found;            ///< nothing where none is whole
  std::vector<std::string> passed_over;  ///< what is wrong with newer ones, a sentence each
};
/// The newest that is whole.
Result<Newest> newest_whole(const std::string& folder);

/// Makes the folder for a checkpoint, or makes one that is there no checkpoint any more.
Result<Stored> begin(const std::string& folder, int64_t step);
std::string file_of_rank(int rank);
/// The file's length and sum.
Result<StoredFile> describe(const Stored& stored, const std::string& name);
/// Makes it a checkpoint: its files are there.
Result<void> publish(const Stored& stored, const Manifest& manifest);
/// Removes all but the newest `kept` of them, and what runs that were killed have left.
Result<void> remove_old(const std::string& folder, int kept);

}  // namespace remuda::checkpoint
