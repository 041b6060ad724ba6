#include "cli/jobs/request_flags.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/quantity.h"
#include "base/text.h"

namespace remuda::cli {
namespace {

tl::unexpected<Error> wrong(const char* flag, const std::string& what) {
  return usage_error(fmt::format("{}: {}", flag, what));
}

/// Reads `flag` with `parse` unless it is empty; an error names the flag.
template <typename T, typename Parse>
Result<void> read(const char* flag, const std::string& text, const Parse& parse, std::optional<T>& into) {
  if (text.empty()) return {};
  auto value = parse(text);
  if (!value) return wrong(flag, value.error().message);
  into = std::move(*value);
  return {};
}

/// A number without a unit is refused: 24 means GiB to one user, MiB to another, and bytes to none.
Result<double> memory(const std::string& text) {
  if (text.find_first_not_of("0123456789.") == std::string::npos)
    return usage_error(fmt::format("'{0}' has no unit; write {0}GiB or {0}MiB", printable(text)));
  if (const auto bytes = parse_amount(text)) return *bytes;
  return usage_error(fmt::format("'{}' is no amount of memory; write 24GiB", printable(text)));
}

Result<double> share(const std::string& text) {
  if (const auto part = parse_part(text)) return *part;
  return usage_error(fmt::format("'{}' is no part of a device; write 30% or 0.3", printable(text)));
}

}  // namespace

void add_request_options(CLI::App& command, RequestFlags& flags) {
  const auto add = [&](const char* name, auto& value, const char* type, const char* meaning) {
    CLI::Option* option = command.add_option(name, value, meaning)->group(kWhichDevices);
    if (*type != '\0') option->type_name(type);
    return option;
  };
  add("-n,--gpus", flags.gpus, "N", "How many; 1 unless given")->check(CLI::Range(1, place::Request::kMostDevices));
  const CLI::Validator is_text(
      [](const std::string& text) { return text.empty() ? "an empty text asks for nothing" : ""; }, "");
  add("--mem", flags.memory, "AMOUNT", "Memory that is free on each, as in 24GiB");
  add("--model", flags.model, "NAME", "Model, where * is any text: 'A100*'")->check(is_text);
  add("--cap", flags.capability, "WHAT", "What each must be able to do: fp16, bf16, fp8, fp4, sm_80, gfx90a");
  add("--link", flags.link, "", "What must join them in a ring: nvlink (or xGMI), p2p or any")
      ->check(CLI::IsMember({"any", "p2p", "nvlink"}));
  CLI::Option* same = command.add_flag("--same-model", flags.same_model, "All of one model (the default)");
  command.add_flag("--any-model", flags.any_model, "Unlike devices may be taken together")
      ->excludes(same)
      ->group(kWhichDevices);
  same->group(kWhichDevices);
  add("--device", flags.devices, "DEVICE", "Only these: UUID, index or PCI address")
      ->delimiter(',')
      ->allow_extra_args(false);
  add("--share", flags.share, "PART", "Part of each device, as in 30%; reports which of its limits are hard");
  add("--where", flags.where, "CONDITION", "As in 'memory >= 40Gi && numaNode == 0'")->check(is_text);
  command.add_flag("--cpu", flags.cpu, "CPU devices may be taken too, where GPUs do not suffice")->group(kWhichDevices);
  add("--cpus", flags.cores, "N", "Cores of the host for this job alone, next to its devices where they are free")
      ->check(CLI::Range(1, place::Request::kMostCores));
  add("--host-mem", flags.host_memory, "AMOUNT", "Memory of the host, as in 64GiB; more it cannot take");
}

Result<place::Request> make_request(const RequestFlags& flags) {
  place::Request request{
      .model = flags.model, .any_model = flags.any_model, .devices = flags.devices, .cpu = flags.cpu};
  const int named = static_cast<int>(std::min<size_t>(flags.devices.size(), place::Request::kMostDevices + 1));
  request.count = flags.gpus > 0 ? flags.gpus : std::max(1, named);
  request.link = from_word<place::LinkNeed>(flags.link).value_or(place::LinkNeed::any);
  std::optional<double> bytes, host_bytes, part;
  REMUDA_TRY(read("--mem", flags.memory, memory, bytes));
  REMUDA_TRY(read("--host-mem", flags.host_memory, memory, host_bytes));
  REMUDA_TRY(read("--share", flags.share, share, part));
  REMUDA_TRY(read("--cap", flags.capability, place::Capability::parse, request.capability));
  REMUDA_TRY(read("--where", flags.where, place::Where::parse, request.where));
  request.memory_bytes = static_cast<int64_t>(bytes.value_or(0));
  request.cores = flags.cores;
  request.host_memory_bytes = static_cast<int64_t>(host_bytes.value_or(0));
  request.share = part.value_or(1);
  REMUDA_TRY(check(request));
  return request;
}

std::vector<std::string> words_of(const RequestFlags& flags) {
  std::vector<std::string> words;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) words.push_back(fmt::format("{}={}", name, value));
  };
  const auto add_flag = [&](const char* name, bool is_set) {
    if (is_set) words.emplace_back(name);
  };
  add("--gpus", flags.gpus > 0 ? std::to_string(flags.gpus) : "");
  add("--mem", flags.memory);
  add("--model", flags.model);
  add("--cap", flags.capability);
  add("--link", flags.link);
  add_flag("--same-model", flags.same_model);
  add_flag("--any-model", flags.any_model);
  for (const std::string& device : flags.devices) add("--device", device);
  add("--share", flags.share);
  add("--where", flags.where);
  add_flag("--cpu", flags.cpu);
  add("--cpus", flags.cores > 0 ? std::to_string(flags.cores) : "");
  add("--host-mem", flags.host_memory);
  return words;
}

}  // namespace remuda::cli
