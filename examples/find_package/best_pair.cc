// best_pair [FILE]: the two GPUs that are joined best, of this machine or of a recorded one.
#include <cstdio>
#include <variant>

#include "place/place.h"
#include "probe/live_machine.h"
#include "recorded/import.h"

int main(int argc, char** argv) {
  const auto machine = argc > 1 ? remuda::recorded::read_machine_file(argv[1]) : remuda::probe::LiveMachine({}).read();
  if (!machine) return std::fprintf(stderr, "%s\n", machine.error().message.c_str()), 1;
  const auto held = remuda::place::held_by_processes(*machine);
  const auto answer = remuda::place::place(remuda::place::Layout(*machine), {.count = 2}, held);
  if (!answer) return std::fprintf(stderr, "%s\n", answer.error().message.c_str()), 2;
  if (const auto* refusal = std::get_if<remuda::place::Refusal>(&*answer))
    return std::printf("%s\n", refusal->sentence.c_str()), 3;
  std::printf("%s", explanation_text(std::get<remuda::place::Placement>(*answer)).c_str());
}
