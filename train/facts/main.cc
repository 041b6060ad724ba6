// gpu_facts [--json]: asserts what remuda takes for granted of libtorch on an accelerator, a line each. Exits 1 when a
// fact does not hold. Where libtorch sees no accelerator it says so of each, and exits 0.
#include <fmt/format.h>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "train/error_text.h"
#include "train/facts/fact.h"

namespace remuda::train::facts {
namespace {

const char* word(Answer::Kind kind) {
  switch (kind) {
    case Answer::Kind::holds:
      return "holds";
    case Answer::Kind::does_not_hold:
      return "does not hold";
    default:
      return "cannot be asked";
  }
}

/// The device type of that name stands for the GPUs of several vendors.
std::optional<at::Device> accelerator() {
  if (!torch::cuda::is_available()) return std::nullopt;
  return at::Device(at::kCUDA, 0);
}

Answer ask(const Fact& fact, const std::optional<at::Device>& device) {
  if (!device) return cannot_be_asked(fmt::format("libtorch {} finds no GPU here", TORCH_VERSION));
  try {
    return fact.ask(*device);
  } catch (const std::exception& error) {
    return does_not_hold("it throws: " + sentence_of(error));
  }
}

int run(bool as_json) {
  const auto device = accelerator();
  nlohmann::json list = nlohmann::json::array();
  bool all_hold = true;
  for (const auto& facts : {backward_facts(), stream_facts(), memory_facts(), collectives_facts()}) {
    for (const Fact& fact : facts) {
      const Answer answer = ask(fact, device);
      all_hold = all_hold && answer.kind != Answer::Kind::does_not_hold;
      list.push_back(
          {{"fact", fact.name}, {"claim", fact.claim}, {"answer", word(answer.kind)}, {"seen", answer.seen}});
      if (!as_json) std::cout << fmt::format("{}: {}: {}", fact.name, word(answer.kind), answer.seen) << std::endl;
    }
  }
  if (as_json) std::cout << nlohmann::json{{"torch", TORCH_VERSION}, {"facts", list}}.dump(2) << "\n";
  return all_hold ? 0 : 1;
}

}  // namespace
}  // namespace remuda::train::facts

int main(int argc, char** argv) {
  const std::string argument = argc > 1 ? argv[1] : "";
  if (argc > 2 || (argc == 2 && argument != "--json")) {
    std::cerr << "usage: gpu_facts [--json]\n";
    return 2;
  }
  return remuda::train::facts::run(argument == "--json");
}
