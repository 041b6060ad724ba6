#include "cli/train/train_request.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <unistd.h>

#include "base/file.h"
#include "cli/jobs/kept_line.h"

namespace remuda::cli {
namespace {

/// The flags of this group that were given.
std::vector<std::string> given(const CLI::App& command, const char* group) {
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options())
    if (option->get_group() == group) std::ranges::move(words_of(*option), std::back_inserter(words));
  return words;
}

/// The command of the job: the run itself, on whatever devices it will be granted.
std::vector<std::string> train_line(const TrainFlags& flags, const std::string& self) {
  std::vector<std::string> words{self, "train", flags.file};
  for (const std::string& setting : flags.settings) words.push_back("--set=" + setting);
  for (const std::string& setting : flags.compare) words.push_back("--compare=" + setting);
  if (!flags.compare.empty()) words.push_back(fmt::format("--repeats={}", flags.repeats));
  if (!flags.json.empty()) words.push_back("--json=" + flags.json);
  if (!flags.step_times.empty()) words.push_back("--step-times=" + flags.step_times);
  if (flags.transport != TrainFlags{}.transport) words.push_back("--transport=" + flags.transport);
  if (!flags.join.empty()) words.push_back("--join=" + flags.join);
  if (flags.port != 0) words.push_back(fmt::format("--port={}", flags.port));
  if (flags.job.quiet) words.emplace_back("--quiet");
  if (!flags.job.machine.file.empty()) words.push_back("--machine=" + flags.job.machine.file);
  return words;
}

RequestFlags flags_of(const job::PlacementSpec& file) {
  return {.gpus = file.gpus,
          .memory = file.mem,
          .model = file.model,
          .capability = file.cap,
          .link = file.link,
          .share = file.share,
          .where = file.where,
          .devices = file.device,
          .same_model = file.same_model,
          .any_model = file.any_model,
          .cpu = file.cpu};
}

}  // namespace

RequestFlags merged(const job::PlacementSpec& file, const RequestFlags& line) {
  RequestFlags flags = flags_of(file);
  const auto replace = [](auto& value, const auto& by) {
    if (by != std::decay_t<decltype(by)>{}) value = by;
  };
  replace(flags.gpus, line.gpus);
  replace(flags.memory, line.memory);
  replace(flags.model, line.model);
  replace(flags.capability, line.capability);
  replace(flags.link, line.link);
  replace(flags.share, line.share);
  replace(flags.where, line.where);
  replace(flags.devices, line.devices);
  replace(flags.cpu, line.cpu);
  replace(flags.cores, line.cores);
  replace(flags.host_memory, line.host_memory);
  if (line.same_model || line.any_model) {
    flags.same_model = line.same_model;
    flags.any_model = line.any_model;
  }
  return flags;
}

Result<bool> asks_for_devices(const TrainFlags& flags, const job::PlacementSpec& file,
                              const std::optional<CallersLease>& lease, const std::optional<LaunchedRank>& rank) {
  const std::vector<std::string> request = given(*flags.job.app, kWhichDevices);
  const std::vector<std::string> how = given(*flags.job.app, kHowItRuns);
  const auto& asking = request.empty() ? how : request;
  if (lease && !asking.empty())
    return usage_error(
        fmt::format("{} asks for devices, but this runs within job {}, which holds {}: leave it out, and the "
                    "run uses those",
                    asking.front(), lease->job, fmt::join(lease->devices, ", ")));
  if (rank && !asking.empty())
    return usage_error(
        fmt::format("{0} asks for devices, but {1} has started this as rank {2} of {3}: ask for all of them "
                    "with `remuda run -n {3} -- {1} ...`",
                    asking.front(), rank->launcher, rank->rank, rank->size));
  if (lease || rank) return false;
  if (!request.empty() && !flags.devices.empty())
    return usage_error(
        fmt::format("--devices takes devices without a lease, and {} asks for a lease: give one of them; --device says "
                    "which ones a lease may have",
                    request.front()));
  if (!request.empty() || (file.asks() && flags.devices.empty())) return true;
  if (!how.empty())
    return usage_error(
        fmt::format("{} is for a run that asks for its devices: add -n, or [placement] to the job", how.front()));
  return false;
}

Result<place::Request> train_request(const TrainFlags& flags, const job::PlacementSpec& file) {
  if (const auto request = make_request(flags_of(file)); !request) {
    const std::string& message = request.error().message;
    const bool has_flag = message.starts_with("--");
    return usage_error(
        fmt::format("{}: placement{}{}", flags.file, has_flag ? "." : ": ", has_flag ? message.substr(2) : message));
  }
  return make_request(merged(file, flags.job.request));
}

std::vector<std::string> run_line(const TrainFlags& flags, const job::PlacementSpec& file, const std::string& self) {
  std::vector<std::string> words{"remuda", "run"};
  std::ranges::move(words_of(merged(file, flags.job.request)), std::back_inserter(words));
  std::ranges::move(given(*flags.job.app, kHowItRuns), std::back_inserter(words));
  if (flags.job.quiet) words.emplace_back("--quiet");
  if (!flags.job.machine.file.empty()) words.push_back("--machine=" + flags.job.machine.file);
  if (flags.job.machine.cpu_devices > 0)
    words.push_back(fmt::format("--cpu-devices={}", flags.job.machine.cpu_devices));
  words.emplace_back("--");
  std::ranges::move(train_line(flags, self), std::back_inserter(words));
  return words;
}

Result<int> submit(const TrainFlags& flags, const job::PlacementSpec& file) {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return failed(fmt::format("cannot find remuda itself: /proc/self/exe: {}", error.message()));
  std::vector<std::string> words = run_line(flags, file, self);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(self.c_str(), argv.data());
  return failed(fmt::format("cannot start {}: {}", self, errno_text(errno)));
}

}  // namespace remuda::cli
