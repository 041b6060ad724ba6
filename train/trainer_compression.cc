// What hosts send each other over slow links: train.compression.
#include <algorithm>
#include <fmt/format.h>

#include "base/clock.h"
#include "job/compression.h"
#include "train/labels.h"
#include "train/power_sgd.h"
#include "train/trainer.h"

namespace remuda::train {
namespace {

using job::Compression;

/// What is added up to see how fast ranks exchange: as much as a bucket has, but over a very slow link.
constexpr size_t kTrialBytes = 4 << 20, kSlowTrialBytes = 256 << 10;
constexpr double kSlowTrial_s = 0.05;
constexpr int kExchangeTrials = 3;

/// Collective. Seconds of the quickest trial, on this rank.
Result<double> time_all_reduce(comm::Communicator& communicator, std::span<std::byte> bytes) {
  double shortest_s = std::numeric_limits<double>::infinity();
  for (int trial = 0; trial < kExchangeTrials; ++trial) {
    const double start = monotonic_s();
    REMUDA_TRY(communicator.all_reduce(comm::Values(comm::Element::float32, bytes), label::kCompression));
    shortest_s = std::min(shortest_s, monotonic_s() - start);
  }
  return shortest_s;
}

/// Collective. On this rank, of an all_reduce between all.
Result<double> seconds_per_byte(comm::Communicator& communicator) {
  REMUDA_ASSIGN(const std::span<std::byte> room, communicator.allocate(kTrialBytes));
  REMUDA_ASSIGN(const double slow_s, time_all_reduce(communicator, room.first(kSlowTrialBytes)));
  bool is_slow = slow_s > kSlowTrial_s;
  REMUDA_TRY(communicator.broadcast(std::as_writable_bytes(std::span(&is_slow, 1)), 0, label::kCompression));
  if (is_slow) return slow_s / double(kSlowTrialBytes);
  REMUDA_ASSIGN(const double trial_s, time_all_reduce(communicator, room));
  return trial_s / double(kTrialBytes);
}

}  // namespace

std::string Trainer::why_no_compression() const {
  return communicator_.hosts().size() > 1 ? "" : "all devices are on one host, whose memory needs no compression";
}

/// Collective. Where it is to be chosen: rank 0 does, once the devices are measured, whose step computes so long.
Result<void> Trainer::choose_compression(double compute_s) {
  if (job_.train.compression != Compression::automatic) return {};
  CompressionReport& report = *report_.compression;
  if (const Compression kept = checkpoints_.compression(); kept != Compression::none) {
    if (const std::string what = job::conflict_with(kept, job_); !what.empty())
      return usage_error(fmt::format(
          "the run to go on from was one with train.compression = \"{}\", which does not go together with {}",
          job::name_of(kept), what));
    report.kind = kept;
    report.chosen = "as in the run that this one goes on from";
    return {};
  }
  if (!report.why_not.empty()) return {};
  REMUDA_ASSIGN(const compress::Exchange exchange, measure_exchange(compute_s));
  const std::vector<compress::Prediction> predictions = compress::predict(exchange);
  compress::Packing packing = compress::choose(predictions);
  REMUDA_TRY(communicator_.broadcast(std::as_writable_bytes(std::span(&packing, 1)), 0, label::kCompression));
  report.chosen = compress::reason(exchange, predictions);
  report.kind = packing == compress::Packing::powersgd  ? Compression::powersgd
                : packing == compress::Packing::one_bit ? Compression::one_bit
                                                        : Compression::none;
  if (packing == compress::Packing::none) report.why_not = "it would make a step hardly shorter";
  if (packing != compress::Packing::bf16) return {};
  report.why_not = "gradients in bf16 are enough";
  report_.gradients_sent_as = torch::kBFloat16;
  return prepare_parallel();
}

/// Collective. What rank 0 measures is what counts.
Result<compress::Exchange> Trainer::measure_exchange(double compute_s) {
  const job::TrainSpec& spec = job_.train;
  const bool is_float = model_->parameters().at(0).scalar_type() == torch::kFloat;
  const bool alone_on_hosts =
      std::ranges::all_of(communicator_.hosts(), [](const auto& host) { return host.size() == 1; });
  const auto may_be = [&](Compression one) { return job::conflict_with(one, job_).empty(); };
  compress::Exchange exchange{
      .compute_s = compute_s,
      .values = double(parallel_->flat().layout().count()),
      .value_bytes = double(c10::elementSize(report_.sent_as)),
      .low_rank_values = PowerSgd::sent_values(parallel_->flat(), size_t(spec.compression_rank)),
      .rank = double(spec.compression_rank),
      .may_round = is_float && alone_on_hosts,
      .may_powersgd = is_float && may_be(Compression::powersgd),
      .may_one_bit = is_float && may_be(Compression::one_bit)};
  if (alone_on_hosts) exchange.gradient_bytes = double(c10::elementSize(report_.gradients_sent_as));
  REMUDA_ASSIGN(exchange.seconds_per_byte, seconds_per_byte(communicator_));
  return exchange;
}

/// Collective. From here on hosts pack what they send each other.
Result<void> Trainer::compress() {
  mine_.memory.optimizer = double(parallel_->state().state_bytes());  // until now, on the device
  return parallel_->compress(report_.compression->kind == Compression::powersgd ? size_t(job_.train.compression_rank)
                                                                                : 0);
}

/// For people. What is no matrix, or one too small for its rank, goes as it is.
std::string Trainer::what_hosts_send(Compression kind) const {
  if (kind != Compression::powersgd) return "one bit per parameter";
  const int rank = job_.train.compression_rank;
  const double part =
      PowerSgd::sent_values(parallel_->flat(), size_t(rank)) / double(parallel_->flat().layout().count());
  return fmt::format("gradients as matrices of rank {}, {:.3g} % of their values,", rank, 100 * part);
}

/// Where it stands: hosts will begin it, or have begun it, or go on with it.
void Trainer::report_compression() {
  if (!report_.compression) return;
  CompressionReport& report = *report_.compression;
  const bool begun = parallel_->is_compressed();
  if (begun) report.after = report_.steps;
  if (!is_first() || communicator_.hosts().size() == 1) return;
  std::string text;
  if (!report.why_not.empty()) {
    text = "hosts do not pack what they send each other: " + report.why_not;
  } else {
    const int warm_up = begun ? report_.steps : warm_up_of(job_.train, report.kind, steps_in_all());
    text = fmt::format("hosts {} each other {} after step {} of {}", begun ? "send" : "will send",
                       what_hosts_send(report.kind), warm_up, steps_in_all());
    if (!begun && warm_up >= steps_in_all()) text += ", and so never do";
  }
  if (!begun && !report.chosen.empty()) text += "; " + report.chosen;
  events_.send({{"event", "note"}, {"text", text}});
}

/// Collective. Once the warm-up is over, where there are several hosts.
Result<void> Trainer::compress_when_due() {
  if (!report_.compression || !report_.compression->why_not.empty() || parallel_->is_compressed()) return {};
  if (parallel_->state().steps() < warm_up_of(job_.train, report_.compression->kind, steps_in_all())) return {};
  REMUDA_TRY(compress());
  report_compression();
  return {};
}

}  // namespace remuda::train
