// What a claim and its release cost: a job is submitted and started in one change of the pool, and ended in another.
//
//   alone     by a process that has the pool open
//   opening   by one that opens it for that, as `remuda run` does
//   queue     while 200 jobs of other users wait, which the scheduler looks at each time
//   wake      from the end of a job until a process that waits for the pool has read the new state
//
// The limit is the time of two syncs of 4 KiB in the same folder: what a claim and a release would cost at least that
// wait for the disk. The pool does not (pool/sqlite.cc says why), so it may be below.
#include "pool/pool.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <thread>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/testing/scratch_folder.h"
#include "bench/figure.h"
#include "bench/repeat.h"
#include "pool/transitions.h"
#include "recorded/import.h"

namespace remuda::bench {
namespace {

constexpr const char* kMachine = REMUDA_MACHINES "/nv-dgx1-v100-8gpu-4nic.json";
constexpr int kWaiting = 200;

struct Setting {
  std::string folder;
  Inventory machine;
  int rounds = 0;
};

double quantile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values[std::min(values.size() - 1, static_cast<size_t>(part * static_cast<double>(values.size())))];
}

pool::Job job_for(const std::string& user, int count) {
  pool::Job job;
  job.user = user;
  job.request.count = count;
  job.keeper = own_process_id();
  job.command = {"python", "train.py", "--epochs", "90"};
  return job;
}

Result<int64_t> claim(pool::Pool& pool, const Setting& setting) {
  int64_t id = 0;
  REMUDA_TRY(pool.change([&](pool::PoolState& state) -> Result<void> {
    REMUDA_ASSIGN(id, submit(state, job_for("ada", 2), setting.machine, wall_s()));
    schedule(state, setting.machine, {}, {}, wall_s());
    if (state.find(id)->state != pool::JobState::running) return failed("the machine has no room");
    return {};
  }));
  return id;
}

Result<void> release(pool::Pool& pool, const Setting& setting, int64_t id) {
  return pool.change([&](pool::PoolState& state) -> Result<void> {
    end(state, id, {}, {}, wall_s());
    schedule(state, setting.machine, {}, {}, wall_s());
    return {};
  });
}

using Round = std::function<Result<void>()>;

Result<std::vector<double>> time_rounds(int rounds, const Round& round) {
  std::vector<double> seconds;
  for (int i = 0; i < rounds; ++i) {
    const double start = now_s();
    REMUDA_TRY(round());
    seconds.push_back(now_s() - start);
  }
  return seconds;
}

Result<std::vector<double>> time_alone(const Setting& setting) {
  REMUDA_ASSIGN(pool::Pool pool, pool::Pool::open(setting.folder + "/alone"));
  return time_rounds(setting.rounds, [&]() -> Result<void> {
    REMUDA_ASSIGN(const int64_t id, claim(pool, setting));
    return release(pool, setting, id);
  });
}

Result<std::vector<double>> time_opening(const Setting& setting) {
  return time_rounds(setting.rounds, [&]() -> Result<void> {
    REMUDA_ASSIGN(pool::Pool pool, pool::Pool::open(setting.folder + "/opening"));
    REMUDA_ASSIGN(const int64_t id, claim(pool, setting));
    return release(pool, setting, id);
  });
}

/// Six of eight devices are held, so the waiting, who ask for four, stay.
Result<std::vector<double>> time_queue(const Setting& setting) {
  REMUDA_ASSIGN(pool::Pool pool, pool::Pool::open(setting.folder + "/queue"));
  REMUDA_TRY(pool.change([&](pool::PoolState& state) -> Result<void> {
    REMUDA_TRY(submit(state, job_for("eve", 6), setting.machine, wall_s()));
    schedule(state, setting.machine, {}, {}, wall_s());
    for (int i = 0; i < kWaiting; ++i)
      REMUDA_TRY(submit(state, job_for(fmt::format("user{}", i % 10), 4), setting.machine, wall_s()));
    return {};
  }));
  return time_rounds(setting.rounds, [&]() -> Result<void> {
    REMUDA_ASSIGN(const int64_t id, claim(pool, setting));
    return release(pool, setting, id);
  });
}

Result<std::vector<double>> time_wake(const Setting& setting) {
  REMUDA_ASSIGN(pool::Pool pool, pool::Pool::open(setting.folder + "/wake"));
  std::vector<double> seconds;
  std::atomic<double> ended_s = 0;
  for (int i = 0; i < std::min(setting.rounds, 300); ++i) {
    REMUDA_ASSIGN(const int64_t id, claim(pool, setting));
    std::atomic<bool> waits = false;
    Result<void> outcome;
    std::thread waiter([&] {
      outcome = [&]() -> Result<void> {
        REMUDA_ASSIGN(pool::Pool other, pool::Pool::open(setting.folder + "/wake"));
        waits = true;
        REMUDA_TRY(other.wait({}, 10));
        REMUDA_TRY(other.read());
        return {};
      }();
      seconds.push_back(now_s() - ended_s);
    });
    while (!waits) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ended_s = now_s();
    const auto released = release(pool, setting, id);
    waiter.join();
    REMUDA_TRY(released);
    REMUDA_TRY(outcome);
  }
  return seconds;
}

Result<std::vector<double>> time_syncs(const Setting& setting) {
  const std::string path = setting.folder + "/sync", page(4096, 'x');
  const Fd fd(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  if (!fd) return failed(fmt::format("cannot write {}: {}", path, errno_text(errno)));
  return time_rounds(std::min(setting.rounds, 300), [&]() -> Result<void> {
    REMUDA_TRY(write_all(fd.get(), page, path));
    if (::fdatasync(fd.get()) != 0) return failed(fmt::format("cannot sync {}: {}", path, errno_text(errno)));
    return {};
  });
}

Result<std::vector<Figure>> measure(const Setting& setting) {
  using Measure = Result<std::vector<double>> (*)(const Setting&);
  REMUDA_ASSIGN(const auto syncs, time_syncs(setting));
  std::vector<Figure> figures;
  for (const auto& [name, measure] : {std::pair<const char*, Measure>{"pool_claim_release", time_alone},
                                      {"pool_claim_release_opening", time_opening},
                                      {"pool_claim_release_queue", time_queue},
                                      {"pool_wake", time_wake}}) {
    REMUDA_ASSIGN(const auto seconds, measure(setting));
    for (const auto& [part, word] : {std::pair{0.5, "p50"}, std::pair{0.99, "p99"}})
      figures.push_back({.name = name,
                         .parameters = {{"rounds", seconds.size()}, {"part", word}},
                         .value = quantile(seconds, part) * 1e6,
                         .unit = "us",
                         .limit = 2 * quantile(syncs, part) * 1e6});
  }
  return figures;
}

Result<std::vector<Figure>> run(const std::string& within, int rounds) {
  Setting setting{.rounds = rounds};
  REMUDA_ASSIGN(setting.machine, read_machine_file(kMachine));
  try {
    const ScratchFolder folder(within);
    setting.folder = folder.path();
    return measure(setting);
  } catch (const std::filesystem::filesystem_error& error) {
    return usage_error(error.what());
  }
}

}  // namespace
}  // namespace remuda::bench

int main(int argc, char** argv) {
  using namespace remuda;
  CLI::App app("Times claims and releases of devices in a pool.");
  bool json = false;
  int rounds = 2000;
  std::string folder = std::filesystem::temp_directory_path().string();
  app.add_flag("--json", json, "print one JSON object per figure, a line each");
  app.add_option("--rounds", rounds, "claims and releases per figure")->check(CLI::Range(10, 1000000));
  app.add_option("--folder", folder, "on the disk to be measured");
  CLI11_PARSE(app, argc, argv);
  const auto figures = bench::run(folder, rounds);
  if (!figures) {
    fmt::print(stderr, "bench_pool: {}\n", figures.error().message);
    return exit_status(figures.error().kind);
  }
  fmt::print("{}", json ? bench::as_json_lines(*figures) : bench::as_table(*figures));
}
