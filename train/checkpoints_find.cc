// Which checkpoint a run goes on from.
#include <algorithm>
#include <fmt/format.h>

#include "base/clock.h"
#include "train/agreement.h"
#include "train/checkpoints.h"
#include "train/labels.h"

namespace remuda::train {
namespace {

constexpr int64_t kNoCheckpoint = -1, kCannotRead = -2;

}  // namespace

tl::unexpected<Error> Checkpoints::because_of(int rank, std::string why) {
  return tl::unexpected(Error{ErrorKind::lost_peer, std::move(why), rank});
}

/// Claims the folder. The checkpoints to choose from, in the order of their steps.
Result<std::vector<checkpoint::Stored>> Checkpoints::candidates(const Wanted& wanted) {
  const std::string& folder = job_.checkpoint.folder;
  if (!claim_ && !is_claimed_) {
    Result<checkpoint::Claim> claim = checkpoint::Claim::take(folder);
    if (claim) claim_.emplace(std::move(*claim));
    if (!claim && !goes_on_) return tl::unexpected(claim.error());  // else it is that of the rank that was lost
  }
  if (!wanted) return std::vector<checkpoint::Stored>();
  REMUDA_ASSIGN(std::vector<checkpoint::Stored> stored, checkpoint::stored_in(folder));
  std::erase_if(stored, [&](const checkpoint::Stored& one) { return !wanted(one.step); });
  return stored;
}

/// Collective. What each rank has seen of one.
Result<std::vector<Checkpoints::Seen>> Checkpoints::exchange(Seen::Verdict verdict, const std::string& why) {
  Seen mine{.verdict = verdict};
  why.copy(mine.why.data(), mine.why.size() - 1);
  return gather_all(communicator_, mine, label::kCheckpoint);
}

/// Collective. What must be right before it is loaded; each rank looks at some of its files.
Result<Checkpoints::Looked> Checkpoints::look_together(const checkpoint::Stored& at) {
  const auto size = size_t(communicator_.size());
  auto manifest = checkpoint::look_at(at, {.number = size_t(communicator_.rank()), .all = size});
  const bool is_missing = !manifest && !checkpoint::read_manifest(at);
  const std::string why = manifest ? "" : manifest.error().message;
  REMUDA_ASSIGN(const std::vector<Seen> all, exchange(manifest     ? Seen::whole
                                                      : is_missing ? Seen::missing
                                                                   : Seen::damaged,
                                                      why));
  const auto lacks = std::ranges::find(all, Seen::missing, &Seen::verdict);
  if (lacks != all.end() && all[0].verdict != Seen::missing) {
    if (is_missing) return usage_error(why + "; all hosts must have that folder");
    return because_of(int(lacks - all.begin()),
                      fmt::format("rank {} does not find {}", lacks - all.begin(), at.folder));
  }
  const auto bad = std::ranges::find_if(all, [](const Seen& one) { return one.verdict != Seen::whole; });
  if (bad != all.end()) return Looked{.wrong = bad->why.data()};
  return Looked{.manifest = std::move(*manifest)};
}

/// Collective. The newest of those left_ that seems whole is found; none where there were none from the start.
Result<void> Checkpoints::take_next() {
  const std::string& folder = job_.checkpoint.folder;
  found_.reset();
  for (;;) {
    int64_t step = left_ && !left_->empty()        ? left_->back().step
                   : left_ && passed_over_.empty() ? kNoCheckpoint
                                                   : kCannotRead;
    REMUDA_TRY(communicator_.broadcast(std::as_writable_bytes(std::span(&step, 1)), 0, label::kCheckpoint));
    if (!left_) return tl::unexpected(left_.error());
    if (step == kNoCheckpoint) return {};
    if (step == kCannotRead && !is_first())
      return because_of(0, fmt::format("rank 0 cannot use the checkpoints in {}", folder));
    if (step == kCannotRead)
      return usage_error(fmt::format("no checkpoint in {} is whole: {}; a run that begins needs another folder", folder,
                                     passed_over_.front()));
    if (is_first()) left_->pop_back();
    const checkpoint::Stored at = checkpoint::place_of(folder, step);
    REMUDA_ASSIGN(Looked looked, look_together(at));
    if (looked.wrong.empty()) {
      found_ = Found{at, std::move(looked.manifest), {}};
      if (const auto kept = found_->manifest.run.find("balance"); kept != found_->manifest.run.end())
        found_->balance = parse_kept_balance(*kept);
      return {};
    }
    passed_over_.push_back(std::move(looked.wrong));
  }
}

Result<void> Checkpoints::open() {
  return find(job_.checkpoint.resume == job::Switch::on ? [](int64_t) { return true; } : Wanted());
}

Result<void> Checkpoints::open_again(std::vector<int64_t> steps) {
  steps_ = std::move(steps);
  goes_on_ = true;
  REMUDA_TRY(find({}));
  REMUDA_ASSIGN(last_step_, newest_of_own());
  return {};
}

/// Collective. The newest step of this run that is kept: of the last one, its manifest may be missing, as a rank may
/// have been lost before it was written. 0: none.
Result<int> Checkpoints::newest_of_own() {
  int step = 0;
  if (!active()) return step;
  const auto stored = is_first() ? checkpoint::stored_in(job_.checkpoint.folder) : std::vector<checkpoint::Stored>();
  for (const checkpoint::Stored& one : stored.value_or(std::vector<checkpoint::Stored>()))
    if (std::ranges::find(steps_, one.step) != steps_.end()) step = int(one.step);
  REMUDA_TRY(communicator_.broadcast(std::as_writable_bytes(std::span(&step, 1)), 0, label::kCheckpoint));
  return step;
}

Result<void> Checkpoints::find(const Wanted& wanted) {
  if (!active()) return {};
  const double start = monotonic_s();
  left_ = is_first() ? candidates(wanted) : std::vector<checkpoint::Stored>();
  passed_over_.clear();
  REMUDA_TRY(take_next());
  if (found_) report_.load_s = monotonic_s() - start;
  return {};
}

job::Compression Checkpoints::compression() const {
  const Json kept = found_ ? found_->manifest.run.value("compressed", Json()) : Json();
  if (kept == true) return job::Compression::one_bit;
  return kept == job::name_of(job::Compression::powersgd) ? job::Compression::powersgd : job::Compression::none;
}

}  // namespace remuda::train
