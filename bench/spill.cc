// What it costs that training needs more memory than the device has: twice as much. Of one mlp parameters, gradients
// and the optimizer's state lie in memory of the host, and the device holds two blocks at a time; of another,
// activations do.
//
// The device is the stand-in accelerator of the tests: its memory is apart from the host's and capped, its copies are
// real and queued, and its arithmetic is the CPU's. So the figures say whether the cost is predicted, not what a GPU
// would pay: there a copy goes over a link while the device computes, here both take the time of the same cores.
//
// parameters   samples/s of the first one, beside the same model on a device with room for it. The limit is what was
//              predicted before the first step: the speed that was measured alone
// activations  likewise of the other one, with a large batch
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <iostream>

#include "bench/figure.h"
#include "comm/testing/run_ranks.h"
#include "train/testing/data_files.h"
#include "train/testing/standin/standin.h"
#include "train/trainer.h"

namespace remuda::bench {
namespace {

constexpr int kSide = 28, kClasses = 10;
const torch::Device kDevice(torch::kXPU, 0);

struct Workload {
  int width = 1024, blocks = 16, batch = 256, steps = 40;
  bool json = false;
};

job::TrainJob job_of(const Workload& work, const ScratchFolder& folder) {
  job::TrainJob job;
  const train::testing::ModelCase model_case{
      .spec = {.name = "mlp", .hidden = std::vector<int>(size_t(work.blocks), work.width)},
      .input = {1, kSide, kSide, kClasses, 0}};
  job.data = train::testing::write_samples(folder, model_case, 4 * work.batch);
  job.model = model_case.spec;
  job.train = {.epochs = work.steps, .global_batch = work.batch, .optimizer = job::Optimizer::adamw};
  job.train.learning_rate = 0.0001;
  job.train.max_steps = work.steps;
  job.devices = {{"cpu:0"}};
  job.balance.policy = balance::BalancePolicy::fixed;
  job.balance.shares = {1};
  return job;
}

/// Of a device with so much room for tensors; 0: it does not say.
Result<train::RunReport> run(const job::TrainJob& job, double room_bytes = 0) {
  Result<train::RunReport> report = failed("it was not run");
  const std::atomic<bool> leave = false;
  const train::Events events(-1);
  comm::run_ranks(1, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    auto trainer =
        train::Trainer::create(job, communicator, events, leave, {.device = kDevice, .room_bytes = room_bytes});
    report = trainer ? (*trainer)->run() : tl::unexpected(trainer.error());
  });
  return report;
}

/// What the device holds while it trains the whole model: values, gradients and AdamW's two states.
size_t bytes_to_train(const job::TrainJob& job) {
  size_t count = 0;
  for (const auto& one : train::make_model(job.model, {1, kSide, kSide, kClasses, 0}).value()->parameters())
    count += size_t(one.numel());
  return 16 * count;
}

/// On a device of `cap` bytes.
Figure figure_of(const char* name, const Workload& work, size_t cap, const train::RunReport& whole,
                 const train::RunReport& spilled) {
  return {.name = name,
          .parameters = {{"needed_bytes", 2 * cap}, {"device_bytes", cap}, {"batch", work.batch}},
          .value = spilled.samples_per_s(),
          .unit = "samples/s",
          .peer = whole.samples_per_s(),
          .ratio = spilled.samples_per_s() / whole.samples_per_s(),
          .limit = spilled.devices.at(0).alone_measurements.front()};
}

void set_cap(size_t bytes) {
  train::testing::configure_standin(0, {.memory_cap = train::testing::standin_memory(0) + bytes});
}

Result<Figure> measure_parameters(const Workload& work) {
  const ScratchFolder folder;
  job::TrainJob job = job_of(work, folder);
  REMUDA_ASSIGN(const train::RunReport whole, run(job));
  const size_t cap = bytes_to_train(job) / 2;
  set_cap(cap);
  if (run(job)) return failed("the model trains whole on a device of half its size: nothing is measured");
  job.memory.parameters = job::Held::sharded;
  job.memory.optimizer = job::UpdatesOn::host;
  REMUDA_ASSIGN(const train::RunReport spilled, run(job));
  return figure_of("parameters", work, cap, whole, spilled);
}

Result<Figure> measure_activations(const Workload& work) {
  const ScratchFolder folder;
  job::TrainJob job = job_of(work, folder);
  train::testing::configure_standin(0, {});
  REMUDA_ASSIGN(const train::RunReport whole, run(job));
  const auto cap = size_t(whole.devices.at(0).memory.peak / 2);
  set_cap(cap);
  job.memory.activations = job::Activations::automatic;
  REMUDA_ASSIGN(const train::RunReport spilled, run(job, double(cap)));
  if (!spilled.spills || spilled.devices.at(0).pieces > 1)
    return failed("activations did not go to the host, or that was not enough: nothing is measured");
  return figure_of("activations", work, cap, whole, spilled);
}

Result<std::vector<Figure>> measure(const Workload& work) {
  REMUDA_ASSIGN(Figure parameters, measure_parameters(work));
  Workload deep = work;
  deep.width /= 4;
  deep.batch *= 16;
  REMUDA_ASSIGN(Figure activations, measure_activations(deep));
  return std::vector<Figure>{std::move(parameters), std::move(activations)};
}

int main(int argc, char** argv) {
  Workload work;
  CLI::App app("What it costs that training needs more memory than the device has.");
  app.add_option("--width", work.width, "of the mlp's layers")->capture_default_str();
  app.add_option("--blocks", work.blocks, "so many layers")->capture_default_str();
  app.add_option("--batch", work.batch, "samples of a step")->capture_default_str();
  app.add_option("--steps", work.steps)->capture_default_str();
  app.add_flag("--json", work.json, "one JSON object per figure, a line each");
  CLI11_PARSE(app, argc, argv);
  const auto figures = measure(work);
  if (!figures) {
    std::cerr << figures.error().message << '\n';
    return 1;
  }
  std::cout << (work.json ? as_json_lines(*figures) : as_table(*figures));
  return 0;
}

}  // namespace
}  // namespace remuda::bench

int main(int argc, char** argv) { return remuda::bench::main(argc, argv); }
