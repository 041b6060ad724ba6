// What hosts send each other over slow links: train.compression.
#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "base/clock.h"
#include "compress/trial.h"
#include "job/compression.h"
#include "measure/repeat.h"
#include "train/agreement.h"
#include "train/labels.h"
#include "train/power_sgd.h"
#include "train/trainer.h"

namespace remuda::train {
namespace {

using job::Compression;

/// Steps by which compression = "auto" is chosen: after the first few, which are slow; the times of the last one come
/// with the next.
constexpr int kLeastWarmSteps = 3, kWarmSteps = 13;

/// Of what the ranks of a host add up in its memory: 4 MiB.
constexpr size_t kHostTrial = 1 << 20;
constexpr int kHostTrials = 3;

/// Collective. Of a value that the ranks of a host add up, and hand out again; the longest of all hosts.
Result<double> seconds_per_value_here(comm::Communicator& communicator) {
  double here_s = 0;
  for (const std::vector<int>& host : communicator.hosts()) {
    if (host.size() == 1) continue;
    REMUDA_ASSIGN(const auto here, communicator.split(host, label::kCompression));
    if (!here) continue;
    REMUDA_ASSIGN(const std::span<std::byte> room, here->allocate(kHostTrial * sizeof(float)));
    const comm::Parts all_to_leader(std::vector<size_t>(host.size(), kHostTrial));
    const double start = monotonic_s();
    for (int trial = 0; trial < kHostTrials; ++trial) {
      REMUDA_TRY(here->reduce_scatter(comm::Values(comm::Element::float32, room), all_to_leader, label::kCompression));
      REMUDA_TRY(here->broadcast(room, 0, label::kCompression));
    }
    here_s = (monotonic_s() - start) / (kHostTrials * double(kHostTrial));
  }
  REMUDA_ASSIGN(const std::vector<double> all, gather_all(communicator, here_s, label::kCompression));
  return std::ranges::max(all);
}

/// On the device of this rank.
double rounding_s_per_value(const DeviceOps& ops) {
  const auto values = torch::ones({int64_t(kHostTrial)}, torch::TensorOptions().device(ops.device()));
  torch::Tensor rounded = values.to(torch::kBFloat16);
  const auto round = [&] {
    rounded.copy_(values);
    (void)ops.wait(ops.here(), "a trial", comm::ConnectOptions().timeout_s);
  };
  return measure::median_s(0, [&] { return measure::time_s(round); }) / double(kHostTrial);
}

Compression kind_of(compress::Packing packing) {
  if (packing == compress::Packing::powersgd) return Compression::powersgd;
  return packing == compress::Packing::one_bit ? Compression::one_bit : Compression::none;
}

}  // namespace

std::string Trainer::why_no_compression() const {
  return communicator_.hosts().size() > 1 ? "" : "all devices are on one host, whose memory needs no compression";
}

/// Where the run goes on from one that chose, as there. A usage error where the job has since changed.
Result<void> Trainer::keep_compression() {
  const Compression kept = checkpoints_.compression();
  if (job_.train.compression != Compression::automatic || kept == Compression::none) return {};
  if (const std::string what = job::conflict_with(kept, job_); !what.empty())
    return usage_error(
        fmt::format("the run to go on from was one with train.compression = \"{}\", which does not go together with {}",
                    job::name_of(kept), what));
  report_.compression->kind = kept;
  report_.compression->chosen = "as in the run that this one goes on from";
  return {};
}

/// Where steps so far are to say what is best: after so many of them it is chosen.
int Trainer::choice_step() const {
  const int warm_up = warm_up_of(job_.train, Compression::powersgd, steps_in_all());
  return first_step_ + std::clamp(warm_up - first_step_, kLeastWarmSteps, kWarmSteps);
}

/// Collective, between two steps. Rank 0 chooses for all.
Result<void> Trainer::choose_compression() {
  CompressionReport& report = *report_.compression;
  REMUDA_TRY(parallel_->arrive());
  REMUDA_ASSIGN(const compress::Exchange exchange, measure_exchange());
  report.expected = compress::predict(exchange);
  report.packing = compress::choose(report.expected);
  report.chosen_after = report_.steps;
  REMUDA_TRY(communicator_.broadcast(std::as_writable_bytes(std::span(&report.packing, 1)), 0, label::kCompression));
  report.chosen = compress::reason(exchange, report.expected);
  report.kind = kind_of(report.packing);
  if (report.packing == compress::Packing::none) report.why_not = "it would make a step hardly shorter";
  if (report.packing == compress::Packing::bf16) {
    report.why_not = "gradients in bf16 are enough";
    report_.gradients_sent_as = torch::kBFloat16;
    REMUDA_TRY(parallel_->send_gradients_as(torch::kBFloat16));
  }
  if (report.kind == Compression::none) exchange_in_another_way();
  report_compression();
  return {};
}

/// Collective. Forward and backward of what each rank has of the next step, all at once and again and again, while
/// nothing is sent: the longest median.
Result<double> Trainer::pass_by_itself_s() {
  std::vector<uint64_t> samples(size_t(batches_.parts(position_, shares_)[size_t(communicator_.rank())]));
  std::iota(samples.begin(), samples.end(), uint64_t{0});
  REMUDA_ASSIGN(const Batch batch, train_.gather(samples));
  start_.keep();
  REMUDA_TRY(communicator_.barrier(label::kCompression));
  const auto pass_s = [&] {
    pace_.start();
    (void)local_.run_alone(batch);  // with as much memory as the steps
    return pace_.stop();
  };
  const double mine_s = samples.empty() ? 0 : measure::median_s(0, pass_s);
  start_.restore();
  REMUDA_ASSIGN(const std::vector<double> all, gather_all(communicator_, mine_s, label::kCompression));
  return std::ranges::max(all);
}

/// Collective. What steps took so far is the same on all ranks except for this one's clock; what rank 0 measures
/// counts.
Result<compress::Exchange> Trainer::measure_exchange() {
  const job::TrainSpec& spec = job_.train;
  const FlatParameters& flat = parallel_->flat();
  const std::vector<std::vector<int>> hosts = communicator_.hosts();
  const bool is_float = model_->parameters().at(0).scalar_type() == torch::kFloat;
  const bool alone_on_hosts = std::ranges::all_of(hosts, [](const auto& host) { return host.size() == 1; });
  const auto may_be = [&](Compression one) { return is_float && job::conflict_with(one, job_).empty(); };
  std::vector<int> leaders;
  for (const std::vector<int>& host : hosts) leaders.push_back(host.front());
  REMUDA_ASSIGN(const double here_s, seconds_per_value_here(communicator_));
  REMUDA_ASSIGN(const auto between, communicator_.split(leaders, label::kCompression));
  compress::Trial trial;
  if (between) {
    const std::vector<compress::Shape> shapes = PowerSgd::shapes_of(flat);
    const compress::TrialOptions options{.shapes = shapes,
                                         .rank = size_t(spec.compression_rank),
                                         .powersgd = may_be(Compression::powersgd),
                                         .one_bit = may_be(Compression::one_bit)};
    REMUDA_ASSIGN(trial, compress::try_exchanges(*between, options, label::kCompression));
  }
  REMUDA_TRY(communicator_.barrier(label::kCompression));
  const double values = double(flat.layout().count());
  for (std::optional<double>* packed_s : {&trial.powersgd_s, &trial.one_bit_s})
    if (*packed_s) **packed_s += values * here_s + trial.latency_s;  // and what the ranks report of a step
  const ExchangeCosts steps = exchanges_.costs().value_or(ExchangeCosts());
  REMUDA_ASSIGN(const double pass_s, pass_by_itself_s());
  return compress::Exchange{.step_s = steps.step_s,
                            .wait_s = steps.wait_s,
                            .gradient_wait_s = steps.gradient_wait_s,
                            .data_s = steps.data_s,
                            .pass_s = pass_s,
                            .seconds_per_byte = trial.seconds_per_byte,
                            .values = values,
                            .gradient_bytes = double(flat.sent_gradients().host().element_size()),
                            .may_round = is_float && alone_on_hosts,
                            .rounding_s_per_value = rounding_s_per_value(ops_),
                            .powersgd_s = trial.powersgd_s,
                            .one_bit_s = trial.one_bit_s};
}

/// What steps took so far stands in the report beside what they take from here on.
void Trainer::exchange_in_another_way() {
  report_.compression->before = exchanges_.costs();
  exchanges_.begin_again();
  report_.compression->has_begun = true;
}

/// At the end of the run.
void Trainer::report_exchange() {
  if (!report_.compression || communicator_.hosts().size() == 1) return;
  CompressionReport& report = *report_.compression;
  (report.has_begun ? report.since : report.before) = exchanges_.costs();
  if (report.kind == Compression::automatic) report.why_not = "the run was over before steps had shown what is best";
}

/// Collective. From here on hosts pack what they send each other.
Result<void> Trainer::compress() {
  mine_.memory.optimizer = double(parallel_->state().state_bytes());  // until now, on the device
  exchange_in_another_way();
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
  if (report.kind == Compression::automatic) {
    text = fmt::format("what hosts send each other is chosen after step {}, by what steps have taken until then",
                       choice_step());
  } else if (!report.why_not.empty()) {
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

/// Collective. What is due before a step, where there are several hosts: to choose, and once the warm-up is over, to
/// begin.
Result<void> Trainer::compress_when_due() {
  if (!report_.compression || !report_.compression->why_not.empty() || parallel_->is_compressed()) return {};
  if (report_.compression->kind == Compression::automatic) {
    if (report_.steps < choice_step()) return {};
    REMUDA_TRY(choose_compression());
    if (!report_.compression->why_not.empty()) return {};
  }
  if (parallel_->state().steps() < warm_up_of(job_.train, report_.compression->kind, steps_in_all())) return {};
  REMUDA_TRY(compress());
  report_compression();
  return {};
}

}  // namespace remuda::train
