#include "bench/placement_times.h"

#include <algorithm>
#include <ctime>
#include <fmt/format.h>
#include <functional>
#include <random>

#include "place/place.h"

namespace remuda::bench {
namespace {

using Loads = std::vector<std::vector<place::Held>>;

struct Times {
  double p50_ms = 0, p99_ms = 0;
};

/// Of this thread: placement waits for nothing, and what else the machine does is not its doing.
double processor_ms() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

template <typename Work>
Times time_of(const Loads& loads, const Work& work) {
  std::vector<double> ms;
  for (const auto& held : loads) {
    const double start = processor_ms();
    work(held);
    ms.push_back(processor_ms() - start);
  }
  std::ranges::sort(ms);
  const auto at = [&](double part) { return ms[static_cast<size_t>(part * static_cast<double>(ms.size() - 1))]; };
  return {at(0.5), at(0.99)};
}

Loads loads_for(const TimedMachine& machine, int count, int repeats) {
  std::mt19937_64 draw(1);
  Loads loads(static_cast<size_t>(repeats));
  for (size_t i = 0; i < loads.size(); i += 2)
    for (const std::string& gpu : machine.gpus)
      if (static_cast<size_t>(count) + loads[i].size() < machine.gpus.size() && draw() % 2 == 0)
        loads[i].push_back({.device = gpu});
  return loads;
}

struct OfSize {
  int count = 0;
  Times prepared, scratch;
};

OfSize time_size(const TimedMachine& machine, const place::Layout& layout, int count, int repeats) {
  const Loads loads = loads_for(machine, count, repeats);
  const place::Request request{.count = count, .any_model = true};
  return {
      count, time_of(loads, [&](const auto& held) { return place::place(layout, request, held); }),
      time_of(loads, [&](const auto& held) { return place::place(place::Layout(machine.inventory), request, held); })};
}

TimedMachine made_of_16(const std::string& name, const std::function<double(size_t, size_t)>& gbps) {
  TimedMachine machine{.name = name};
  for (size_t i = 0; i < topology::RingTable::kMaxDevices; ++i) {
    Device gpu{.id = fmt::format("gpu:{}", i), .kind = DeviceKind::gpu, .index = static_cast<int>(i)};
    gpu.vendor = "Bench";
    gpu.model = "Bench 1";
    gpu.numa_node = static_cast<int>(i / 8);
    machine.gpus.push_back(gpu.id);
    machine.inventory.devices.push_back(std::move(gpu));
  }
  for (size_t b = 0; b < machine.gpus.size(); ++b)
    for (size_t a = 0; a < b; ++a)
      machine.inventory.measured_links.push_back({machine.gpus[a], machine.gpus[b], 0, gbps(a, b), {}});
  return machine;
}

}  // namespace

std::vector<TimedMachine> timed_machines(const std::vector<ReplayMachine>& recorded) {
  std::vector<TimedMachine> machines;
  for (const ReplayMachine& machine : recorded) {
    TimedMachine timed{.name = machine.name, .inventory = machine.inventory};
    for (const size_t gpu : machine.gpus) timed.gpus.push_back(machine.inventory.devices[gpu].id);
    machines.push_back(std::move(timed));
  }
  machines.push_back(made_of_16("16 GPUs, links alike", [](size_t, size_t) { return 300; }));
  machines.push_back(made_of_16("16 GPUs, in pairs", [](size_t a, size_t b) { return a / 2 == b / 2 ? 100 : 10; }));
  std::mt19937_64 draw(1);
  machines.push_back(made_of_16("16 GPUs, links all different",
                                [&](size_t, size_t) { return 1 + static_cast<double>(draw() % 1'000'000) / 1e4; }));
  return machines;
}

void print_times(const std::vector<TimedMachine>& machines, int repeats, bool each_size) {
  fmt::print("\nProcessor time of one placement, explanation and all: p50 / p99 in ms, {} times each.\n\n", repeats);
  fmt::print("| machine | GPUs | {} | links prepared | from scratch |\n|---|---|---|---|---|\n",
             each_size ? "wanted" : "slowest when wanted");
  for (const TimedMachine& machine : machines) {
    place::Layout layout(machine.inventory);
    layout.prepare();
    std::vector<OfSize> sizes;
    for (int count = 1; count <= static_cast<int>(machine.gpus.size()); ++count)
      sizes.push_back(time_size(machine, layout, count, repeats));
    if (!each_size) sizes = {std::ranges::max(sizes, {}, [](const OfSize& size) { return size.scratch.p99_ms; })};
    for (const OfSize& size : sizes)
      fmt::print("| {} | {} | {} | {:.3f} / {:.3f} | {:.3f} / {:.3f} |\n", machine.name, machine.gpus.size(),
                 size.count, size.prepared.p50_ms, size.prepared.p99_ms, size.scratch.p50_ms, size.scratch.p99_ms);
    std::fflush(stdout);
  }
}

void print_answers(const std::vector<TimedMachine>& machines, int repeats) {
  for (const TimedMachine& machine : machines)
    for (int count = 1; count <= static_cast<int>(machine.gpus.size()); ++count)
      for (const auto& held : loads_for(machine, count, repeats)) {
        const auto answer = place::place(place::Layout(machine.inventory), {.count = count, .any_model = true}, held);
        const Json json = answer ? std::visit([](const auto& one) { return to_json(one); }, *answer) : Json();
        fmt::print("{} {} {}\n", machine.name, count, to_line(json));
      }
}

}  // namespace remuda::bench
