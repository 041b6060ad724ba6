// Store: the folder in which the checkpoints of a run lie, each in a folder of its own: "step-000000120".
//
//   folder/step-000000120/rank-0.safetensors, rank-1.safetensors, ..., manifest.json
//
// Files appear whole (base/file.h) and the manifest last, so that a process that is killed at any moment leaves the
// checkpoints before it as they were. Runs that wrote to one folder at a time would spoil each other's: see Claim.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
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
/// Of several readers who part the files among themselves: one of them.
struct ReaderOf {
  size_t number = 0, all = 1;
};
/// What must be compared before any of it is loaded, as CheckedFile compares the rest: the lengths of this reader's
/// files, and where the manifest is of version 1 their sums, too.
Result<Manifest> look_at(const Stored& stored, ReaderOf reader);

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
/// Makes it a checkpoint, once its files are there: those of other hosts may be seen a little later. An error where
/// they are not, as where a rank has written to another folder.
Result<void> publish(const Stored& stored, const Manifest& manifest, double patience_s = 10);
/// Removes one that could not be finished: its files would take room until another is.
void abandon(const Stored& stored);
/// Of the checkpoints up to that of step `newest`, removes all but the last `kept`, and what runs that were killed have
/// left among them. Newer ones stay: that a run could not go on from them does not make them its own. Tries all of
/// them; the error is of the first that stays.
Result<void> remove_old(const std::string& folder, int64_t newest, int kept);

/// Held by the one run that writes to a folder, for as long as it lives: by one of its processes, and by those that
/// have inherited the descriptor.
class Claim {
 public:
  /// Makes the folder. A usage error where another run has had it for longer than one that is ending needs. Where the
  /// folder cannot be made or the file system has no locks, the claim holds nothing.
  static Result<Claim> take(const std::string& folder, double patience_s = 3);
  Claim(Claim&&) noexcept = default;
  Claim& operator=(Claim&&) noexcept = default;
  /// Given up for those, too, that have inherited it: one that was killed may not have ended yet.
  ~Claim();
  /// -1 where it holds nothing.
  int fd() const { return folder_.get(); }

 private:
  explicit Claim(Fd folder) : folder_(std::move(folder)) {}
  Fd folder_;
};

}  // namespace remuda::checkpoint
