// How long one placement takes, of every size, on recorded machines and on full ones made for it.
#pragma once

#include <string>
#include <vector>

#include "bench/placement_machine.h"

namespace remuda::bench {

struct TimedMachine {
  std::string name;
  Inventory inventory;
  std::vector<std::string> gpus;  ///< their ids
};

/// Those of the replay, and three of 16 GPUs: all links alike, fast links within pairs only, each link of another
/// speed.
std::vector<TimedMachine> timed_machines(const std::vector<ReplayMachine>& recorded);

/// Prints a table. Each size is placed `repeats` times: every other time with nothing held, else with a random half of
/// the other GPUs. Processor time, from the request to the answer with its explanation: once with a Layout prepared
/// beforehand, once from an Inventory alone. A line per machine, of its slowest size, or with `each_size` one per size.
void print_times(const std::vector<TimedMachine>& machines, int repeats, bool each_size);

/// A line of JSON for each placement that print_times() would time: what must be the same after a change that is about
/// time alone.
void print_answers(const std::vector<TimedMachine>& machines, int repeats);

}  // namespace remuda::bench
