#include "agent/partitions.h"

#include <algorithm>
#include <fmt/format.h>
#include <unistd.h>
#include <utility>

#include "agent/partition_marks.h"
#include "base/text.h"

namespace remuda::agent {
namespace {

constexpr double kPartitionLook_s = 0.05, kPartitionPatience_s = 60;
/// What a driver has refused it may refuse again, and each try is told.
constexpr double kPartitionPause_s = 60;
constexpr size_t kMostPartitionSaid = 4096;

std::string text_of(const PartitionChange& change) {
  using What = PartitionChange::What;
  if (change.what == What::settle) return fmt::format("settle a change of {} that was cut off", change.gpu);
  return change.what == What::make ? fmt::format("make a {} of {}", change.profile, change.gpu)
                                   : fmt::format("take away {} of {}", change.partition, change.gpu);
}

PartitionChange settling(const PartitionChange& left) { return {PartitionChange::What::settle, left.gpu, "", ""}; }

}  // namespace

void Partitions::fail(const PartitionChange& change, const std::string& why, double now_s) {
  std::erase_if(refused_, [&](const Refused& one) { return one.until_s <= now_s || one.change == change; });
  refused_.push_back({change, now_s + kPartitionPause_s});
  say_(fmt::format("cannot {}: {}", text_of(change), why));
}

void Partitions::begin(const PartitionChange& change, double now_s) {
  auto process = start_(change);
  if (!process) return fail(change, process.error().message, now_s);
  running_.emplace(Running{change, std::move(*process), "", now_s + kPartitionPatience_s});
  next_look_s_ = now_s + kPartitionLook_s;
}

bool Partitions::step(double now_s) {
  if (now_s < next_look_s_) return false;
  next_look_s_ = now_s + kPartitionLook_s;
  return running_ ? see_running(now_s) : !left_.empty() && see_left(now_s);
}

/// Settles what nobody is at work on any more. True once one has ended by itself.
bool Partitions::see_left(double now_s) {
  const size_t before = std::exchange(left_, left_changes(marks_)).size();
  next_look_s_ = now_s + kPartitionPause_s;
  for (const LeftChange& one : left_) {
    const PartitionChange settle = settling(one.change);
    const auto refused = std::ranges::find(refused_, settle, &Refused::change);
    if (one.is_at_work)
      next_look_s_ = now_s + kPartitionLook_s;
    else if (refused != refused_.end() && now_s < refused->until_s)
      next_look_s_ = std::min(next_look_s_, refused->until_s);
    else if (begin(settle, now_s); running_)
      break;
  }
  const bool has_ended = left_.size() < before;
  is_stale_ = is_stale_ || has_ended;
  return has_ended;
}

bool Partitions::see_running(double now_s) {
  char bytes[512];
  ssize_t got = 0;
  while ((got = ::read(running_->process.output(), bytes, sizeof bytes)) > 0)
    if (running_->said.size() < kMostPartitionSaid) running_->said.append(bytes, static_cast<size_t>(got));
  const auto ended = running_->process.exit_state();
  if (!ended && now_s < running_->until_s) return false;
  const std::string said = printable(running_->said.substr(0, running_->said.find('\n')));
  if (!ended)
    fail(running_->change, "the driver takes too long", now_s);
  else if (!ended->ok())
    fail(running_->change, said.empty() ? to_string(*ended) : said, now_s);
  else
    say_(fmt::format("did {}{}", text_of(running_->change), said.empty() ? "" : ": " + said));
  running_.reset();
  is_stale_ = true;
  left_ = left_changes(marks_);
  return true;
}

std::vector<PartitionChange> Partitions::refused(double now_s) const {
  std::vector<PartitionChange> refused;
  for (const Refused& one : refused_)
    if (now_s < one.until_s) refused.push_back(one.change);
  for (const LeftChange& one : left_) refused.push_back(settling(one.change));
  return refused;
}

/// A mark without its partition is of one that somebody else has taken away: what comes in its place, by the same UUID,
/// is not this one's.
std::set<std::string> Partitions::own(const Inventory& machine) const {
  if (!start_) return {};
  std::set<std::string> own = marked_partitions(marks_);
  std::erase_if(own, [&](const std::string& uuid) {
    const bool is_gone = !machine.find(uuid);
    const bool is_known = std::ranges::none_of(machine.devices, [](const Device& device) {
      return device.kind != DeviceKind::cpu && !device.uuid.has_value();
    });
    if (is_gone && is_known) unmark_lost_partition(marks_, uuid);
    return is_gone;
  });
  return own;
}

std::vector<place::Held> Partitions::held() const {
  std::vector<place::Held> held;
  const auto hold = [&](const PartitionChange& change) {
    if (change.what == PartitionChange::What::remove)
      held.push_back({.device = change.partition, .barred = "is taken away, as another size of partition is wanted"});
  };
  if (running_) hold(running_->change);
  for (const LeftChange& one : left_) hold(one.change);
  return held;
}

/// In a session of its own, so that it ends neither with the agent nor with its process group.
Partitions::Start partition_starter(const std::string& program, const std::string& marks) {
  return [=](const PartitionChange& change) {
    std::vector<std::string> words{"setsid", "--wait", program, "partition", to_string(change.what), change.gpu};
    if (change.what == PartitionChange::What::make) words.push_back(change.profile);
    if (change.what == PartitionChange::What::remove) words.push_back(change.partition);
    words.insert(words.end(), {"--marks", marks});
    return process::ChildProcess::spawn({.argv = std::move(words), .folder = "/"});
  };
}

std::string partition_marks_of(const std::string& pool) { return pool + "/partitions"; }

}  // namespace remuda::agent
