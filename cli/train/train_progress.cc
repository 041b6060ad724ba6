#include "cli/train/train_progress.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <numeric>
#include <utility>

#include "base/characters.h"
#include "base/text.h"
#include "cli/train/report_text.h"
#include "workers/event.h"

namespace remuda::cli {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// The quotient in percent; 0 where there is nothing to divide.
double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

/// The list's value for a rank; 0 where there is no usable one.
double at(const std::vector<double>& list, size_t rank) {
  return rank < list.size() && std::isfinite(list[rank]) ? list[rank] : 0;
}

}  // namespace

std::string device_label(const std::string& name, double slowdown, const std::string& role) {
  std::vector<std::string> notes;
  if (slowdown != 1) notes.push_back(fmt::format("slowed {:.1f}x", slowdown));
  if (!role.empty() && role != job::role_word(balance::Role::compute)) notes.push_back(role);
  return notes.empty() ? name : fmt::format("{} ({})", name, fmt::join(notes, ", "));
}

std::vector<std::string> device_labels(const job::TrainJob& job) {
  std::vector<std::string> labels = job::device_names(job);
  for (size_t i = 0; i < labels.size(); ++i)
    labels[i] = device_label(labels[i], job.devices[i].slowdown, job::role_word(job.devices[i].role));
  return labels;
}

std::string rate_text(double per_second) { return fmt::format("{:.{}f}", per_second, per_second < 100 ? 1 : 0); }

TrainProgress::TrainProgress(const job::TrainJob& job)
    : all_devices_(job::device_names(job)),
      all_labels_(device_labels(job)),
      devices_(all_devices_),
      epochs_(job.train.epochs) {}

std::string TrainProgress::opening() const { return fmt::format("training on {}", fmt::join(all_labels_, ", ")); }

std::string TrainProgress::take(int rank, const Json& event) {
  const std::string name = workers::text_field(event, "event");
  if (name == "ready") ++ready_;
  if (name == "step") take_step(event);
  if (name == "output") output_ = workers::text_field(event, "output");
  if (name == "alone") return take_alone(rank, event);
  if (name == "balance") return take_balance(event);
  if (name == "memory") return take_memory(event);
  if (name == "device_collectives") return take_collectives(event);
  if (name == "epoch") return take_epoch(event);
  if (name == "profile") return take_profile(event);
  if (name == "checkpoint") return take_checkpoint(event);
  if (name == "left") return take_left(event);
  if (name == "joined") return take_joined(event);
  if (name == "door")
    return fmt::format("other devices can join at {0}: remuda train FILE --join {0} --devices DEVICE",
                       printable(workers::text_field(event, "address")));
  if (name == "regrouped") return take_regrouped(event);
  if (name == "note") return printable(workers::text_field(event, "text"));
  return "";
}

std::string TrainProgress::take_loss(const std::vector<int>& left, const std::vector<workers::Failure>& lost) {
  std::vector<std::string> causes;
  for (const workers::Failure& one : lost)
    causes.push_back(fmt::format("rank {} ({}) was lost: {}", one.rank, one.device, one.cause));
  devices_.clear();
  regroups_ = true;
  split_ = nullptr;
  for (const int rank : left) devices_.push_back(all_devices_.at(static_cast<size_t>(rank)));
  ready_ = devices_.size();
  measured_ = 0;
  output_.clear();
  steps_ = 0;  // until the next one is known
  shares_.clear();
  return fmt::format("{}; {} go{} on", printable(fmt::format("{}", fmt::join(causes, "; "))), fmt::join(devices_, ", "),
                     devices_.size() == 1 ? "es" : "");
}

/// Whether another rank has said so before.
bool TrainProgress::is_known(const Json& event) {
  const double generation = workers::number_field(event, "generation");
  if (generation <= generation_) return true;
  generation_ = generation;
  return false;
}

/// A rank has joined those that were there.
std::string TrainProgress::take_joined(const Json& event) {
  if (is_known(event)) return "";
  std::vector<std::string> all;
  for (const Json& device : event.value("devices", Json::array()))
    all.push_back(device.is_string() ? printable(device.get<std::string>()) : "-");
  all_labels_.resize(std::max(all_labels_.size(), all.size()));
  for (size_t i = all_devices_.size(); i < all.size(); ++i) all_labels_[i] = all[i];
  if (all.size() > all_devices_.size()) all_devices_ = made_distinct(all);
  devices_.clear();
  for (const double rank : workers::numbers_field(event, "ranks"))
    if (rank >= 0 && rank < double(all_devices_.size())) devices_.push_back(all_devices_[size_t(rank)]);
  ready_ = measured_ = devices_.size();
  output_.clear();
  shares_.clear();
  const double rank = workers::number_field(event, "rank"), step = workers::number_field(event, "step");
  return fmt::format("{} has joined as rank {:.0f} after step {:.0f}, within {:.1f} s; {} go on{}",
                     rank >= 0 && rank < double(all_devices_.size()) ? all_devices_[size_t(rank)] : "-", rank, step,
                     workers::number_field(event, "seconds"), fmt::join(devices_, ", "), held_split(step));
}

/// The same as take_loss(), as a rank says it where the ranks have agreed among themselves.
std::string TrainProgress::take_left(const Json& event) {
  if (is_known(event)) return "";
  std::vector<int> left;
  for (const double rank : workers::numbers_field(event, "ranks"))
    if (rank >= 0 && rank < static_cast<double>(all_devices_.size())) left.push_back(static_cast<int>(rank));
  std::vector<workers::Failure> lost;
  for (const Json& one : event.value("lost", Json::array()))
    lost.push_back({.rank = workers::reported_error({{"peer", workers::number_field(one, "rank", -1)}}).peer,
                    .device = workers::text_field(one, "device"),
                    .cause = plain_cause(workers::text_field(one, "cause"))});
  return take_loss(left, lost);
}

/// What the loss has cost.
std::string TrainProgress::take_regrouped(const Json& event) {
  regroups_ = false;
  return regrouped_line(event) + held_split(workers::number_field(event, "resumed_from"));
}

std::string TrainProgress::regrouped_line(const Json& event) {
  const double made = workers::number_field(event, "step"), from = workers::number_field(event, "resumed_from");
  const double seconds = workers::number_field(event, "seconds");
  const std::string state = printable(workers::text_field(event, "state"));
  if (state == "none")
    return fmt::format(
        "stops: nothing holds the state of the run after step {:.0f}; elastic.buddy keeps it in memory, "
        "and checkpoint.folder with checkpoint.every_steps on a disk",
        made);
  if (state == "start")
    return fmt::format("begins again, {:.1f} s after the loss, as no more than one step was made", seconds);
  return fmt::format("goes on after step {:.0f}, from {}, {:.1f} s after the loss; {:.0f} step{} repeated", from,
                     state == "checkpoint" ? "the checkpoint" : state, seconds, made - from,
                     made - from == 1 ? " is" : "s are");
}

std::string TrainProgress::take_alone(int rank, const Json& event) {
  ++measured_;
  return fmt::format("{} alone: {} samples/s", all_labels_.at(rank),
                     rate_text(workers::number_field(event, "samples_per_s", kUnknown)));
}

/// Ranks that have changed split before they say who they are, or where they go on.
std::string TrainProgress::take_balance(const Json& event) {
  predicted_step_s_ = workers::number_field(event, "predicted_step_s");
  const bool are_known = workers::numbers_field(event, "shares").size() == devices_.size();
  if (!regroups_ && are_known) return balance_line(event, workers::number_field(event, "step"));
  split_ = event;
  return "";
}

std::string TrainProgress::held_split(double step) {
  const Json split = std::exchange(split_, nullptr);
  return split.is_null() ? "" : "\n" + balance_line(split, step);
}

std::string TrainProgress::balance_line(const Json& event, double step) {
  std::vector<std::string> shares;
  const std::vector<double> counts = workers::numbers_field(event, "shares");
  for (size_t i = 0; i < counts.size() && i < devices_.size(); ++i)
    shares.push_back(fmt::format("{} {:.0f}", devices_[i], counts[i]));
  return fmt::format("step {:.0f}: shares {}, predicted gain {:.1f} %: {}", step, fmt::join(shares, ", "),
                     100 * workers::number_field(event, "predicted_gain"),
                     printable(workers::text_field(event, "reason", "no reason given")));
}

std::string TrainProgress::take_memory(const Json& event) const {
  const std::vector<double> peaks = workers::numbers_field(event, "peak_bytes"),
                            rooms = workers::numbers_field(event, "room_bytes"),
                            pieces = workers::numbers_field(event, "pieces");
  std::vector<std::string> texts;
  for (size_t i = 0; i < devices_.size(); ++i) {
    std::string text = at(peaks, i) > 0 ? human_bytes(at(peaks, i)) : "not known";
    if (at(peaks, i) > 0 && at(rooms, i) > 0) text += " of " + human_bytes(at(rooms, i));
    if (at(pieces, i) > 1) text += fmt::format(" in {:.0f} pieces", at(pieces, i));
    texts.push_back(devices_[i] + " " + text);
  }
  const auto is_set = [&](const char* key) { return event.value(key, Json(false)) == Json(true); };
  return fmt::format("memory of a step: {}{}{}", fmt::join(texts, ", "),
                     is_set("spills") ? "; activations lie in the host's memory meanwhile so that it fits" : "",
                     is_set("recomputes") ? "; blocks are recomputed so that it fits" : "");
}

/// Where there is a CPU, that there are none needs no word.
std::string TrainProgress::take_collectives(const Json& event) const {
  const std::string library = printable(workers::text_field(event, "library"));
  if (!library.empty()) return fmt::format("buckets go from device to device by {}", library);
  if (std::ranges::any_of(devices_, [](const std::string& name) { return name.starts_with("cpu"); })) return "";
  return fmt::format("buckets go through memory of the host: {}", printable(workers::text_field(event, "why_not")));
}

std::string TrainProgress::take_epoch(const Json& event) const {
  std::string line = fmt::format("epoch {:.0f}/{:.0f}: train loss {:.4f}", workers::number_field(event, "epoch"),
                                 workers::number_field(event, "epochs", epochs_),
                                 workers::number_field(event, "train_loss", kUnknown));
  if (event.contains("test_loss"))
    line += fmt::format(", test loss {:.4f}", workers::number_field(event, "test_loss", kUnknown));
  if (event.contains("test_accuracy"))
    line += fmt::format(", test accuracy {:.2f} %", 100 * workers::number_field(event, "test_accuracy", kUnknown));
  return line;
}

std::string TrainProgress::take_checkpoint(const Json& event) {
  const double step = workers::number_field(event, "step");
  const std::string why = printable(workers::text_field(event, "failed"));
  const bool goes_on = event.value("goes_on", Json(true)) == Json(true);
  if (!why.empty())
    return fmt::format("step {:.0f}: no checkpoint: {}{}", step, why, goes_on ? "; the run goes on" : "");
  return fmt::format("step {:.0f}: checkpoint in {}", step, printable(workers::text_field(event, "folder")));
}

std::string TrainProgress::take_profile(const Json& event) {
  const std::string trace = printable(workers::text_field(event, "trace"));
  return fmt::format("{:.0f} steps recorded{}; the report has their operators", workers::number_field(event, "steps"),
                     trace.empty() ? "" : " in " + trace);
}

void TrainProgress::take_step(const Json& event) {
  output_.clear();
  step_ = workers::number_field(event, "step");
  steps_ = workers::number_field(event, "steps");
  epoch_ = workers::number_field(event, "epoch");
  loss_ = workers::number_field(event, "loss", kUnknown);
  samples_per_s_ = workers::number_field(event, "samples_per_s", kUnknown);
  shares_ = workers::numbers_field(event, "shares");
  compute_s_ = workers::numbers_field(event, "compute_s");
  wait_s_ = workers::numbers_field(event, "wait_s");
}

std::string TrainProgress::status(size_t width) const {
  if (output_ == "weights") return "writing the weights";
  if (output_ == "checkpoint") return "writing the last checkpoint";
  if (output_ == "sample") return "generating the sample";
  if (steps_ > 0) {
    const std::string whole = fmt::format("epoch {:.0f}/{}, {:.0f} %, loss {:.4f}, {} samples/s, ", epoch_, epochs_,
                                          percent(step_, steps_), loss_, rate_text(samples_per_s_));
    const std::string devices = per_device();
    return whole + (characters(whole + devices) <= width ? devices : devices_in_sum());
  }
  if (ready_ < devices_.size()) return fmt::format("starting {} workers, {} ready", devices_.size(), ready_);
  if (measured_ < devices_.size()) return fmt::format("measuring {} alone", devices_[measured_]);
  return "all devices measured";
}

double TrainProgress::step_s() const {
  double longest_s = predicted_step_s_;
  for (size_t i = 0; i < devices_.size(); ++i) longest_s = std::max(longest_s, at(compute_s_, i) + at(wait_s_, i));
  return longest_s;
}

double TrainProgress::part_waited(size_t rank) const {
  return percent(at(wait_s_, rank), at(compute_s_, rank) + at(wait_s_, rank));
}

std::string TrainProgress::per_device() const {
  const double batch = std::accumulate(shares_.begin(), shares_.end(), 0.0);
  std::vector<std::string> parts;
  for (size_t i = 0; i < devices_.size(); ++i)
    parts.push_back(
        fmt::format("{} {:.0f} % wait {:.0f} %", devices_[i], percent(at(shares_, i), batch), part_waited(i)));
  return fmt::format("{}", fmt::join(parts, " · "));
}

std::string TrainProgress::devices_in_sum() const {
  double least = 100, most = 0;
  for (size_t i = 0; i < devices_.size(); ++i) {
    least = std::min(least, part_waited(i));
    most = std::max(most, part_waited(i));
  }
  return fmt::format("{} devices wait {:.0f} to {:.0f} %", devices_.size(), least, most);
}

}  // namespace remuda::cli
