// What it costs to keep what devices did (monitor/history.h), for 8 devices:
//
//   file     after so many days of a reading each second; the limit is what its values alone take
//   add      one reading of all devices, with its part of the writing every 10 seconds
//   read     a day of one device, in 600 slots; the limit is a copy of as many bytes in memory
//
// Values are those of a random walk, so that nothing compresses.
#include "monitor/history.h"

#include <CLI/CLI.hpp>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <random>

#include "base/clock.h"
#include "base/testing/scratch_folder.h"

namespace remuda::bench {
namespace {

constexpr int kDevices = 8;
constexpr double kStart_s = 1'800'000'000;

class Readings {
 public:
  const std::vector<monitor::DeviceSlot>& next() {
    for (monitor::DeviceSlot& one : slots_)
      for (float& value : one.slot.values) value = std::isnan(value) ? 0 : value + step_(random_);
    return slots_;
  }
  Readings() {
    for (int i = 0; i < kDevices; ++i) slots_.push_back({fmt::format("GPU-{}", i), {}});
  }

 private:
  std::mt19937 random_{1};
  std::uniform_real_distribution<float> step_{-0.01F, 0.01F};
  std::vector<monitor::DeviceSlot> slots_;
};

uint64_t bytes_of(const std::string& folder) {
  uint64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) bytes += file.file_size();
  return bytes;
}

double copy_s(size_t bytes) {
  const std::string from(bytes, 'x');
  std::string to(bytes, 'y');
  const double begin_s = monotonic_s();
  std::memcpy(to.data(), from.data(), bytes);
  return monotonic_s() - begin_s;
}

Result<void> measure(int days) {
  const ScratchFolder folder;
  REMUDA_ASSIGN(monitor::History history, monitor::History::open(folder.path()));
  Readings readings;
  // Days before the last one are written a chunk at a time, to be there sooner.
  const int seconds = days * 86400, last_day = seconds - 86400;
  double begin_s = 0;
  for (int i = 0; i < seconds; ++i) {
    if (i == last_day) begin_s = monotonic_s();
    REMUDA_TRY(history.add(kStart_s + i, readings.next()));
    if (i % (i < last_day ? 600 : 10) == 0) REMUDA_TRY(history.write());
  }
  const double took_s = monotonic_s() - begin_s;
  int64_t slots = 0;
  for (const monitor::Level& level : monitor::kLevels) slots += std::min<int64_t>(level.kept_s, seconds) / level.step_s;
  const auto values = static_cast<double>(slots * kDevices * static_cast<int64_t>(sizeof(monitor::Slot)));
  const auto bytes = static_cast<double>(bytes_of(folder.path()));
  fmt::print("file   {:6.1f} MB for {} devices and {} days; limit {:.1f} MB, {:.2f} of it\n", bytes / 1e6, kDevices,
             days, values / 1e6, values / bytes);
  fmt::print("add    {:6.1f} us for each reading of {} devices: {:.3f} % of a core at one a second\n",
             took_s / 86400 * 1e6, kDevices, took_s / 86400 * 100);
  double best_s = 1e9;
  for (int repeat = 0; repeat < 20; ++repeat) {
    const double read_s = monotonic_s();
    REMUDA_TRY(history.read("GPU-3", kStart_s + seconds - 86400, kStart_s + seconds, 600));
    best_s = std::min(best_s, monotonic_s() - read_s);
  }
  const double limit_s = copy_s(8640 * sizeof(monitor::Slot));
  fmt::print("read   {:6.2f} ms for a day of one device; limit {:.2f} ms\n", best_s * 1e3, limit_s * 1e3);
  return {};
}

}  // namespace
}  // namespace remuda::bench

int main(int argc, char** argv) {
  CLI::App app{"What it costs to keep what devices did"};
  int days = 6;
  app.add_option("--days", days, "How long devices are watched")->check(CLI::Range(1, 60))->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (const auto outcome = remuda::bench::measure(days); !outcome) {
    fmt::print(stderr, "{}\n", outcome.error().message);
    return 1;
  }
}
