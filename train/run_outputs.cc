#include "train/run_outputs.h"

#include "base/clock.h"
#include "train/generate.h"

namespace remuda::train {
namespace {

/// Says from time to time that an output is being made: others wait for this rank.
std::function<void()> reporter(const Events& events, const char* what) {
  constexpr double kEvery_s = 0.5;
  const auto report = [&events, what] { events.send({{"event", "output"}, {"output", what}}); };
  report();
  return [report, last_s = monotonic_s()]() mutable {
    if (monotonic_s() - last_s < kEvery_s) return;
    last_s = monotonic_s();
    report();
  };
}

/// A model that came as TorchScript goes as TorchScript, where the file is named so.
bool as_script(const job::TrainJob& job) { return !job.model.path.empty() && job.output.weights.ends_with(".pt"); }

}  // namespace

Result<RunOutputs> RunOutputs::create(const job::TrainJob& job, Model& model, double pause_s) {
  RunOutputs outputs(job, pause_s);
  if (job.output.weights.empty()) return outputs;
  if (!as_script(job)) REMUDA_TRY(weights_header(model));
  REMUDA_ASSIGN(PendingFile file, PendingFile::create(job.output.weights));
  outputs.weights_.emplace(std::move(file));
  return outputs;
}

/// The one that is open since the start, and for each further attempt a new one.
Result<PendingFile> RunOutputs::weights_file() {
  if (!weights_) return PendingFile::create(job_.output.weights);
  PendingFile file = std::move(*weights_);
  weights_.reset();
  return file;
}

Result<void> RunOutputs::keep_weights(Model& model, RunReport& report, const Events& events,
                                      const ValuesOf& values_of) {
  const auto report_piece = reporter(events, "weights");
  auto written = write_again(
      [&]() -> Result<void> {
        REMUDA_ASSIGN(PendingFile file, weights_file());
        REMUDA_ASSIGN(report.weights,
                      as_script(job_) ? write_script(model, std::move(file), report_piece)
                                      : write_weights(model, std::move(file), report.steps, report_piece, values_of));
        return {};
      },
      pause_s_,
      [&](const Error& error, double pause_s) {
        events.send({{"event", "note"}, {"text", tries_again_text(error, pause_s)}});
      });
  if (written) return {};
  if (written.error().kind == ErrorKind::lost_peer) return written;
  report.unwritten.push_back(
      job::unwritten("weights", written.error().message, job_.output.weights, bytes_of(named_tensors(model))));
  return {};
}

Result<void> RunOutputs::write(Model& model, RunReport& report, const Events& events, const ValuesOf& values_of) {
  const bool is_of_use = report.not_finite().empty();
  if (!job_.output.weights.empty() && report.steps > 0 && is_of_use)
    REMUDA_TRY(keep_weights(model, report, events, values_of));
  if (job_.output.sample == 0 || report.stopped) return {};
  if (!is_of_use)
    report.sample_missing = report.not_finite();
  else if (auto text = generate(model, job_.output, job_.data.context, job_.train.seed, reporter(events, "sample")))
    report.sample = std::move(*text);
  else
    report.sample_missing = text.error().message;
  return {};
}

}  // namespace remuda::train
