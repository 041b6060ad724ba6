// What a claim and its release cost: a job is submitted and started in one change of the pool, and ended in another.
//
//   alone     by a process that has the pool open
//   opening   by one that opens it for that, as `remuda run` does
//   queue     while 200 jobs of other users wait, which the scheduler looks at each time
//   submit    of a job that has to wait, while 3,000 of 24 kinds do, for 16 devices; half of them for longer than
//             others may pass them. `opening`: by a process that opens the pool for that. `starts`: of one that starts
//             at once. `schedule`: the part of it that looks at the queue
//   wake      from the end of a job until a process that waits for the pool has read the new state
//
// The limit is the time of two syncs of 4 KiB in the same folder: what a claim and a release would cost at least that
// wait for the disk. The pool does not (sqlite/database.cc says why), so it may be below.
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
constexpr int kWaiting = 200, kManyWaiting = 3000;

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
  job.keeper = process::own_process_id();
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

/// Sixteen GPUs, joined in pairs.
Inventory machine_of_16() {
  Inventory machine;
  machine.host = "sixteen";
  for (int i = 0; i < 16; ++i) {
    Device device;
    device.id = fmt::format("gpu:{}", i);
    device.kind = DeviceKind::gpu;
    device.index = i;
    device.model = "Test 1000";
    device.numa_node = i / 8;
    device.memory_bytes = int64_t{80} << 30;
    for (int j = 0; j < i; ++j) {
      Link link{.a = fmt::format("gpu:{}", j), .b = device.id, .path = i / 8 == j / 8 ? Path::phb : Path::sys};
      if (i / 2 == j / 2) link.fabric = Fabric::nvlink;
      machine.links.push_back(link);
    }
    machine.devices.push_back(device);
  }
  return machine;
}

/// 12 of the 16 devices are held, the last 4 are kept for nobody: no waiting job asks for fewer than 5.
Result<void> fill_queue(pool::PoolState& state, const Inventory& machine) {
  REMUDA_TRY(submit(state, job_for("eve", 12), machine, wall_s() - 7200));
  schedule(state, machine, {}, {}, wall_s() - 7200);
  for (int i = 0; i < kManyWaiting; ++i) {
    pool::Job job = job_for(fmt::format("user{}", i % 40), 5 + i % 4);
    job.request.memory_bytes = (int64_t{8} << 30) * (i % 3);
    job.request.any_model = i % 2 == 0;
    REMUDA_TRY(submit(state, std::move(job), machine, wall_s() - (i % 2 == 0 ? 3600 : 0)));
  }
  return {};
}

/// `count` devices for the job that comes; 0: it is only looked at the queue.
Result<std::vector<double>> time_many(const Setting& setting, const std::string& name, int count, double patience_s,
                                      bool opening = false) {
  const Inventory machine = machine_of_16();
  const pool::Policy policy{.patience_s = patience_s};
  REMUDA_ASSIGN(pool::Pool pool, pool::Pool::open(setting.folder + "/" + name));
  REMUDA_TRY(pool.change([&](pool::PoolState& state) -> Result<void> {
    REMUDA_TRY(fill_queue(state, machine));
    schedule(state, machine, {}, policy, wall_s());
    return {};
  }));
  std::vector<double> seconds;
  for (int i = 0; i < std::min(setting.rounds, 100); ++i) {
    int64_t id = 0;
    double look_s = 0;
    const double start = now_s();
    if (opening) {
      REMUDA_ASSIGN(pool, pool::Pool::open(setting.folder + "/" + name));
    }
    REMUDA_TRY(pool.change([&](pool::PoolState& state) -> Result<void> {
      if (count > 0) {
        REMUDA_ASSIGN(id, submit(state, job_for("ada", count), machine, wall_s()));
      }
      const double before = now_s();
      schedule(state, machine, {}, policy, wall_s());
      look_s = now_s() - before;
      return {};
    }));
    seconds.push_back(count > 0 ? now_s() - start : look_s);
    if (count == 0) continue;
    REMUDA_TRY(pool.change([&](pool::PoolState& state) -> Result<void> {
      end(state, id, {}, policy, wall_s());
      schedule(state, machine, {}, policy, wall_s());
      return {};
    }));
  }
  return seconds;
}

constexpr double kPatience_s = 900, kNever_s = 1e9;
Result<std::vector<double>> time_many_wait(const Setting& setting) {
  return time_many(setting, "many-wait", 8, kPatience_s);
}
Result<std::vector<double>> time_many_opening(const Setting& setting) {
  return time_many(setting, "many-opening", 8, kPatience_s, true);
}
Result<std::vector<double>> time_many_start(const Setting& setting) {
  return time_many(setting, "many-start", 1, kNever_s);
}
Result<std::vector<double>> time_many_look(const Setting& setting) {
  return time_many(setting, "many-look", 0, kPatience_s);
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
                                      {"pool_submit_3000_wait", time_many_wait},
                                      {"pool_submit_3000_opening", time_many_opening},
                                      {"pool_submit_3000_starts", time_many_start},
                                      {"pool_schedule_3000", time_many_look},
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
  REMUDA_ASSIGN(setting.machine, recorded::read_machine_file(kMachine));
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
