#include "cli/train/run_bottleneck.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "base/text.h"
#include "cli/train/report_text.h"
#include "cli/train/run_compression.h"
#include "cli/train/run_together.h"
#include "cli/train/train_progress.h"
#include "workers/event.h"

namespace remuda::cli {
namespace {

constexpr double kLeastToName = 0.1;    // of a step: less is not worth a change of the job
constexpr double kUnsettledSteps = 3;   // at the start, in no figure of speed (kUntimedSteps in train/run_report.h)
constexpr double kStepsToBalance = 22;  // until it is near its optimum (docs/measurements.md)
constexpr double kStepsToJudge = 100;   // of which those are the smaller part
constexpr double kMuchOfIt = 0.5;       // of what a device computes: the reason that others wait for it
constexpr double kMostThreads = 64;
constexpr double kRounding = 1 - 1e-9;

/// What one rank did in the run.
struct RankTimes {
  double samples = 0, compute_s = 0, data_s = 0, wait_s = 0, again_s = 0;

  double own_s() const { return compute_s - data_s; }
  double speed() const { return own_s() > 0 ? samples / own_s() : 0; }  ///< samples/s, while it computes
};

struct RunTimes {
  std::vector<RankTimes> ranks;
  size_t last = 0;     ///< the rank that computed longest: the others waited for it
  size_t waiting = 0;  ///< the one that waited most
  double all_s = 0;    ///< of that last rank
  double communication_s = 0;
  double steps = 0;           ///< that the times are of
  double steps_of_split = 0;  ///< since the balance began, or began again

  const RankTimes& slowest() const { return ranks[last]; }
  double speed() const {
    double sum = 0;
    for (const RankTimes& rank : ranks) sum += rank.speed();
    return sum;
  }
  /// Computing what was computed, if each rank had what it can do in the same time.
  double balanced_s() const {
    return balanced([](const RankTimes& rank) { return rank.own_s(); });
  }
  /// The same with the waiting for samples, as `auto` balances it.
  double balanced_compute_s() const {
    return balanced([](const RankTimes& rank) { return rank.compute_s; });
  }
  /// The part of a step that `auto` would have saved by that.
  double unbalanced() const { return (slowest().compute_s - balanced_compute_s()) / all_s; }

 private:
  /// `seconds`: what a rank took for its samples.
  template <typename Seconds>
  double balanced(Seconds seconds) const {
    double samples = 0, per_s = 0;
    for (const RankTimes& rank : ranks) {
      samples += rank.samples;
      if (seconds(rank) > 0) per_s += rank.samples / seconds(rank);
    }
    return per_s > 0 ? std::min(samples / per_s, seconds(slowest())) : seconds(slowest());
  }
};

/// Not less than 0, whatever the report says.
double seconds_of(const Json& object, const char* key) { return std::max(0.0, workers::number_field(object, key)); }

/// Times are of the steps since a run went on, and of those, too, that were made again after a loss.
void count_steps(const Json& report, RunTimes& run) {
  const double last = workers::number_field(report, "steps");
  double first = workers::number_field(report.value("checkpoints", Json()), "resumed_from");
  run.steps = last - first;
  const Json losses = report.value("lost_ranks", Json::array());
  for (size_t i = 0; losses.is_array() && i < losses.size(); ++i) {
    if (i > 0 && workers::number_field(losses[i], "seconds") == workers::number_field(losses[i - 1], "seconds"))
      continue;  // lost at once
    first = workers::number_field(losses[i], "resumed_from");
    run.steps += std::max(0.0, workers::number_field(losses[i], "step") - first);
  }
  run.steps_of_split = last - first;
}

std::optional<RunTimes> times_of(const Json& report) {
  RunTimes run;
  if (!report.is_object() || !report.contains("devices") || !report["devices"].is_array()) return std::nullopt;
  count_steps(report, run);
  for (const Json& device : report["devices"]) {
    RankTimes rank{.samples = seconds_of(device, "samples"),
                   .compute_s = seconds_of(device, "compute_s"),
                   .wait_s = seconds_of(device, "wait_s")};
    rank.data_s = std::min(seconds_of(device, "data_wait_s"), rank.compute_s);
    rank.again_s = std::min(seconds_of(device, "recompute_s"), rank.own_s());
    run.ranks.push_back(rank);
  }
  if (run.ranks.size() == 1) run.ranks[0].wait_s = 0;  // there is nobody to wait for
  const auto last = std::ranges::max_element(run.ranks, {}, &RankTimes::compute_s);
  if (!(run.steps > kUnsettledSteps) || last == run.ranks.end() || !(last->compute_s > 0)) return std::nullopt;
  run.all_s = last->compute_s + last->wait_s;
  run.last = static_cast<size_t>(last - run.ranks.begin());
  run.waiting = static_cast<size_t>(std::ranges::max_element(run.ranks, {}, &RankTimes::wait_s) - run.ranks.begin());
  run.communication_s = std::min(workers::number_field(report, "communication_s", last->wait_s), last->wait_s);
  return run;
}

StepParts parts_of(const RunTimes& run) {
  const RankTimes& last = run.slowest();
  const double balanced_s = run.balanced_s();
  StepParts parts{.data = last.data_s / run.all_s, .communication = run.communication_s / run.all_s};
  if (last.own_s() > 0) parts.memory = balanced_s * (last.again_s / last.own_s()) / run.all_s;
  parts.compute = balanced_s / run.all_s - parts.memory;
  parts.imbalance = std::max(0.0, 1 - parts.data - parts.communication - parts.memory - parts.compute);
  return parts;
}

/// The value of a key of the job, as text; empty where it is not known.
std::string key_of(const Json& report, const char* key) {
  const auto job = report.find("job");
  return job != report.end() && job->is_object() ? workers::text_field(*job, key) : "";
}

std::string percent(double part) { return fmt::format("{:.0f} %", 100 * part); }

/// Threads that made batches: of data.workers, or what remuda takes without it. Nothing: one for each core.
std::optional<double> threads_of(const Json& report) {
  const std::string given = key_of(report, "data.workers");
  if (!given.empty() && given != "-1") return std::strtod(given.c_str(), nullptr);
  const bool makes_images = key_of(report, "data.format") == "images" || !key_of(report, "data.transform").empty();
  return makes_images ? std::nullopt : std::optional(0.0);
}

/// `rest_s`: of a step, without the wait for samples, which took `data_s`.
std::string data_help(const Json& report, double data_s, double rest_s) {
  const auto threads = threads_of(report);
  const double step_s = data_s + rest_s;
  const bool without_memory = key_of(report, "data.cache_mib") == "0" && key_of(report, "data.format") == "images";
  if (!threads && without_memory)
    return fmt::format(
        "data.cache_mib keeps decoded images in memory, and would make steps after the first epoch up to {} shorter",
        percent(data_s / step_s));
  if (!threads) return "smaller images, a faster disk or more cores would help";
  const double loading_s = *threads == 0 ? data_s : step_s * *threads;  // of threads that are always busy
  const double more = rest_s > 0 ? std::min(kMostThreads, std::ceil(kRounding * loading_s / rest_s)) : kMostThreads;
  if (more <= *threads)
    return key_of(report, "data.format") == "tokens" ? "a faster disk would help"
                                                     : "smaller images or a faster disk would help";
  const double left_s = std::max(rest_s, loading_s / more);
  return fmt::format(
      "data.workers = {:.0f} would load samples while the devices compute, and make a step up to {} shorter where as "
      "many cores are free",
      more, percent(1 - left_s / step_s));
}

std::string data_sentence(const Json& report, const RunTimes& run, double share) {
  const double data_s = run.slowest().data_s / run.steps;
  return fmt::format("Loading data took {} of each step{}: {}.", percent(share),
                     run.ranks.size() > 1 ? " of " + device_names(report)[run.last] : "",
                     data_help(report, data_s, run.all_s / run.steps - data_s));
}

bool is_balanced(const Json& report) {
  const std::string policy = workers::text_field(report.value("balance", Json::object()), "policy");
  return policy != "even" && policy != "fixed";
}

/// Why others wait for a device that is slow whatever its samples: it updates its part of the parameters meanwhile.
/// Empty where its samples are the reason, or that is not known.
std::string state_reason(const Json& report, const RunTimes& run) {
  const Json& device = report.at("devices")[run.last];
  const RankTimes& times = run.slowest();
  const double alone = workers::number_field(device, "alone_samples_per_s"),
               owned = workers::number_field(device, "state_share");
  if (!(owned > 0) || !(alone > 0) || times.samples / alone > (1 - kMuchOfIt) * times.own_s()) return "";
  std::vector<std::string> speeds;
  for (const Json& one : report.at("devices"))
    if (const double speed = workers::number_field(one, "alone_samples_per_s"); speed > 0)
      speeds.push_back(rate_text(speed));
  const std::string name = device_names(report)[run.last];
  const std::string help =
      speeds.size() == run.ranks.size()
          ? fmt::format("balance.state_shares = [{}], by what each does alone,", fmt::join(speeds, ", "))
          : fmt::format("less of balance.state_shares for {}", name);
  return fmt::format(
      "as {} updates {} of the parameters, which takes it longer than its samples; {} would leave less of that to it",
      name, percent(owned), help);
}

/// Of a split by measured speeds: why devices wait all the same.
std::string balanced_reason(const Json& report, const RunTimes& run) {
  constexpr const char* kTakes = "; the split takes some 20 steps to come near its best, and had {:.0f}{}";
  if (const std::string state = state_reason(report, run); !state.empty()) return ", " + state;
  const double steps = run.steps_of_split;
  if (steps < kStepsToBalance) return fmt::format(kTakes, steps, "");
  if (steps < kStepsToJudge) return fmt::format(kTakes, steps, ": a longer run would have less of that");
  if (workers::number_field(report.value("balance", Json::object()), "micro_batch") > 0)
    return "; a smaller train.micro_batch would let the split follow the speeds more closely";
  return ", as speeds changed faster than the split can follow; other work on these machines is the usual cause, and a "
         "larger train.global_batch would even it out";
}

std::string imbalance_sentence(const Json& report, const RunTimes& run, double share) {
  const std::vector<std::string> names = device_names(report);
  const RankTimes& waiting = run.ranks[run.waiting];
  const std::string what =
      fmt::format("Imbalance took {} of each step: {} waited for others {} of its time", percent(share),
                  names[run.waiting], percent(waiting.wait_s / (waiting.compute_s + waiting.wait_s)));
  if (is_balanced(report)) return fmt::format("{}{}.", what, balanced_reason(report, run));
  return fmt::format(
      "{}, as the split is {}; by the speeds of this run, balance.policy = \"auto\" would make a step about {} "
      "shorter.",
      what, workers::text_field(report["balance"], "policy"), percent(run.unbalanced()));
}

/// Where a better split could not help, and there was the time to find one. `limit`: the most of a step. A split that
/// was given is changed first: `auto` leaves out by itself who costs more than it gives.
std::optional<SlowerTogether> slower_by_others(const Json& report, const RunTimes& run, Limit limit) {
  if (!is_balanced(report)) return limit == Limit::imbalance ? std::nullopt : slower_together(report, run.unbalanced());
  return run.steps_of_split < kStepsToBalance ? std::nullopt : slower_together(report);
}

/// What of its network a run could still change, after what it was told so far.
std::string network_help(const Json& report, bool goes_over_tcp, bool packs) {
  if (!goes_over_tcp) return ".";
  const bool tries = !packs && why_no_compression(report).empty();
  return fmt::format(
      "; {}a faster link or fewer hosts help, too.",
      tries ? "train.compression = \"auto\" finds out whether packing what hosts send saves more, and " : "");
}

std::string communication_sentence(const Json& report, const RunTimes& run, double share) {
  const std::string transport = printable(workers::text_field(report, "transport"));
  const std::string what = fmt::format("Communication took {} of each step{}", percent(share),
                                       transport.empty() ? "" : fmt::format(", over {}", transport));
  const bool by_devices = report.value("device_collectives", Json::object()).contains("library");
  const std::string asked = key_of(report, "train.compression");
  const bool compressed = report.value("compression", Json::object()).value("after_steps", 0) > 0;
  const bool packs = compressed || by_devices || (!asked.empty() && asked != "none");
  const std::string more = network_help(report, transport.find("tcp") != std::string::npos, packs);
  // Where hosts share memory too, what goes between them are sums, in float32 whatever was sent.
  if (transport.starts_with("tcp") && !by_devices && !compressed &&
      workers::text_field(report, "gradients_sent_as") == "float32") {
    const double parameters = workers::text_field(report, "parameters_sent_as") == "float32" ? 4 : 2;  // bytes
    const double fewer = 2 / (4 + parameters);
    return fmt::format("{}: train.gradients = \"bf16\" would send {} fewer bytes, and make a step about {} shorter{}",
                       what, percent(fewer), percent(fewer * run.communication_s / run.all_s), more);
  }
  return fmt::format(
      "{}: with a train.global_batch of twice the samples there are half as many exchanges, and about {} more "
      "samples/s{}",
      what, percent(1 / (1 - share / 2) - 1), more);
}

/// Steps that were repeated, as told by memory_text(), may be a part of it.
std::string memory_sentence(const Json& report, const RunTimes& run, double share) {
  const std::string what = fmt::format("Computing again for want of memory took {} of each step", percent(share));
  const Json& device = report.at("devices")[run.last];
  if (workers::number_field(report.value("balance", Json::object()), "micro_batch") > 0)
    return what + ": a smaller train.micro_batch needs less memory.";
  const std::string recompute = key_of(report, "memory.recompute");
  if (recompute == "blocks")
    return fmt::format(
        "{}: memory.recompute = \"auto\" does so only where a device has no room, and memory.recompute_blocks for "
        "fewer "
        "blocks; a step would be up to {} shorter.",
        what, percent(share));
  if (report.value("recomputes", Json(false)) == Json(true))
    return fmt::format(
        "{}: {} has no room for what its blocks compute; memory.recompute = \"none\" with a larger memory.accumulate "
        "needs less memory too, and would make a step up to {} shorter.",
        what, device_names(report)[run.last], percent(share));
  return fmt::format("{}: memory.accumulate = {:.0f} would save the steps that were repeated.", what,
                     std::max(2.0, workers::number_field(device, "pieces")));
}

std::string compute_sentence(const Json& report, const RunTimes& run, double share) {
  const auto fastest =
      std::ranges::max_element(run.ranks, [](const RankTimes& a, const RankTimes& b) { return a.speed() < b.speed(); });
  const bool in_float32 = key_of(report, "train.precision") == "fp32";
  const std::string what =
      fmt::format("Computing took {} of each step: only more or faster devices{} make it shorter", percent(share),
                  in_float32 ? ", or train.precision = \"auto\" where they have a faster type," : "");
  if (!(fastest->speed() > 0)) return what + ".";
  const double shorter = fastest->speed() / (run.speed() + fastest->speed());
  return fmt::format("{}; one more like {} would make it up to {} shorter.", what,
                     device_names(report)[static_cast<size_t>(fastest - run.ranks.begin())], percent(shorter * share));
}

std::string sentence_of(Limit limit, const Json& report, const RunTimes& run, double share) {
  switch (limit) {
    case Limit::data:
      return data_sentence(report, run, share);
    case Limit::imbalance:
      return imbalance_sentence(report, run, share);
    case Limit::communication:
      return communication_sentence(report, run, share);
    case Limit::memory:
      return memory_sentence(report, run, share);
    case Limit::compute:
      return compute_sentence(report, run, share);
    case Limit::devices:
      break;  // slower_together_text() says it
  }
  return "";
}

}  // namespace

const char* to_string(Limit limit) {
  constexpr std::array kNames{"data", "imbalance", "communication", "memory", "compute", "devices"};
  return kNames[static_cast<size_t>(limit)];
}

std::optional<StepParts> step_parts(const Json& report) {
  const auto run = times_of(report);
  if (!run) return std::nullopt;
  return parts_of(*run);
}

std::optional<Bottleneck> bottleneck_of(const Json& report) {
  const auto run = times_of(report);
  if (!run) return std::nullopt;
  const StepParts parts = parts_of(*run);
  std::pair most{parts.data, Limit::data};
  for (const auto& other :
       {std::pair{parts.imbalance, Limit::imbalance}, std::pair{parts.communication, Limit::communication},
        std::pair{parts.memory, Limit::memory}})
    if (other.first > most.first) most = other;
  if (const auto slower = slower_by_others(report, *run, most.second))
    return Bottleneck{Limit::devices, slower->saved(), slower_together_text(report, *slower)};
  if (most.first < kLeastToName) most = {parts.compute, Limit::compute};
  return Bottleneck{most.second, most.first, sentence_of(most.second, report, *run, most.first)};
}

std::string bottleneck_text(const Json& report) {
  const auto bottleneck = bottleneck_of(report);
  return bottleneck ? bottleneck->sentence : "";
}

Json bottleneck_json(const Json& report) {
  const auto parts = step_parts(report);
  const auto bottleneck = bottleneck_of(report);
  if (!parts || !bottleneck) return {};
  return {{"limit", to_string(bottleneck->limit)},
          {"share", bottleneck->share},
          {"parts",
           {{"data", parts->data},
            {"imbalance", parts->imbalance},
            {"communication", parts->communication},
            {"memory", parts->memory},
            {"compute", parts->compute}}},
          {"sentence", bottleneck->sentence}};
}

}  // namespace remuda::cli
