#include "probe/nvml/watched.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/env.h"
#include "base/number.h"
#include "device/packed.h"
#include "probe/sysfs.h"

namespace remuda::probe::nvml {
namespace {

using Received = process::GuardedChild::Received;

constexpr std::string_view kOpen = "open ", kProcesses = "processes";

/// The GPU of a step: 3 of "read 3".
std::optional<int> gpu_of(const std::string& step) {
  const size_t space = step.find(' ');
  const auto index = space == std::string::npos ? std::nullopt : parse_number<int64_t>(step.substr(space + 1));
  return index ? std::optional(static_cast<int>(*index)) : std::nullopt;
}

/// Copies the readings that stay valid while a GPU cannot be read.
void recall(const Device& seen, Device& gpu) {
  gpu.id = seen.id;
  gpu.model = seen.model;
  gpu.uuid = seen.uuid;
  gpu.serial = seen.serial;
  gpu.pci = seen.pci;
  gpu.minor = seen.minor;
  gpu.architecture = seen.architecture;
  gpu.compute_capability = seen.compute_capability;
  gpu.cores = seen.cores;
  gpu.numa_node = seen.numa_node;
}

void rename(std::vector<Link>& links, const std::string& from, const std::string& to) {
  for (Link& link : links)
    for (std::string* end : {&link.a, &link.b})
      if (*end == from) *end = to;
}

}  // namespace

Watched::Watched(NvmlOptions options, std::function<Result<Lib>()> load, Clock& clock)
    : options_(std::move(options)), files_{options_.proc, options_.sys}, load_(std::move(load)), clock_(clock) {}

/// Ends the child, and returns what went wrong.
std::string Watched::drop(Received received, double waited_s) {
  const bool gone = child_->end();
  std::string fate = child_->fate();
  if (!gone) dying_.push_back(std::move(*child_));
  child_.reset();
  if (received == Received::nothing) return fmt::format("did not answer within {:g} s", waited_s);
  return fmt::format("made the driver's library fail: its process {}", gone ? fate : "does not answer");
}

/// Starts a child where none runs. Returns nothing when one is ready, otherwise why not.
std::optional<std::string> Watched::start() {
  std::erase_if(dying_, [](process::GuardedChild& child) { return child.end(); });
  if (child_ && !child_->is_there()) drop(Received::end, 0);  // another process ended it
  if (child_) return std::nullopt;
  auto started = process::GuardedChild::start([this](int socket) { serve(socket, load_, files_, avoid_); });
  blind_ = true;  // until it is known to be otherwise
  if (!started) return "NVML has " + started.error().message;
  child_.emplace(std::move(*started));
  lists_ = {};
  std::string line;
  const auto received = child_->receive(options_.start_s, line);
  blind_ = received != Received::line || line.starts_with(kBlind);
  if (received == Received::line && line == kReady) return std::nullopt;
  const std::string failure = drop(received, options_.start_s);
  if (received == Received::line)
    for (const std::string_view word : {kAbsent, kBlind})
      if (line.starts_with(word)) return line.substr(word.size());
  return "NVML " + failure;
}

Result<Inventory> Watched::unpack(std::string_view changes, std::string_view found) {
  constexpr const char* kWhere = "the answer of the NVML process";
  REMUDA_ASSIGN(Inventory inventory, unpack_inventory(found, kWhere));
  auto changed = packed::read<ProcessLists::Changes>(changes);
  if (!changed || !lists_.put(std::move(*changed), inventory.devices))
    return failed(fmt::format("{}: these are no changes of its processes", kWhere));
  return inventory;
}

Watched::Answer Watched::ask() {
  Answer answer;
  child_->send("?");
  for (std::string line, changes;;) {
    const double patience_s = answer.step.starts_with(kOpen) ? options_.start_s : options_.step_s;
    const auto received = child_->receive(patience_s, line);
    if (received != Received::line) {
      answer.failure = drop(received, patience_s);
      return answer;
    }
    if (line.starts_with(kChanged)) {
      changes = std::exchange(line, {});
      continue;
    }
    if (!line.starts_with(kFound)) {
      answer.step = line;
      continue;
    }
    auto found = unpack(std::string_view(changes).substr(std::min(changes.size(), kChanged.size())),
                        std::string_view(line).substr(kFound.size()));
    if (found) return answer.found = std::move(*found), answer;
    drop(Received::end, 0);
    return {.failure = fmt::format("gave an answer that is none: {}", found.error().message)};
  }
}

/// Whether the next child may succeed: it does not access what made this one fail.
bool Watched::blame(const Answer& answer) {
  forgive_s_ = clock_.now_s() + options_.retry_s;
  if (answer.step == kProcesses && avoid_.processes.empty()) {
    avoid_.processes = fmt::format("asking the system whose process this is {}",
                                   answer.failure.starts_with("did not") ? answer.failure : "failed");
    return true;
  }
  const auto gpu = gpu_of(answer.step);
  return gpu && avoid_.gpus.emplace(*gpu, fmt::format("GPU {} {}", *gpu, answer.failure)).second;
}

void Watched::forgive() {
  if ((avoid_.gpus.empty() && avoid_.processes.empty()) || clock_.now_s() < forgive_s_) return;
  avoid_ = {};
  if (child_ && !child_->end()) dying_.push_back(std::move(*child_));
  child_.reset();
}

/// A GPU that cannot be read keeps its name, and the last fatal error is kept when the child that saw it ends.
Finding Watched::remember(Inventory found) {
  for (Device& gpu : found.devices) {
    if (gpu.kind != DeviceKind::gpu) continue;
    const auto seen = seen_.find(gpu.index);
    if (!gpu.uuid.has_value() && seen != seen_.end()) {
      rename(found.links, gpu.id, seen->second.id);
      recall(seen->second, gpu);
    } else if (gpu.uuid.has_value()) {
      if (seen != seen_.end() && seen->second.uuid == gpu.uuid && gpu.status.xid.value_or(-1) == 0)
        gpu.status.xid = seen->second.status.xid.value_or(0);
      auto processes = std::exchange(gpu.status.processes, {});  // nobody asks for those of the past
      seen_[gpu.index] = gpu;
      gpu.status.processes = std::move(processes);
    }
  }
  return {.devices = std::move(found.devices),
          .links = std::move(found.links),
          .drivers = std::move(found.drivers),
          .reason = found.notes.empty() ? "" : found.notes.front(),
          .blind = !found.probes.empty() && found.probes.front().blind};
}

Finding Watched::all_lost(const std::string& why) const {
  Finding finding{.reason = why, .blind = blind_ && seen_.empty()};
  const Missing missing{MissingReason::lost, why};
  for (const auto& [index, seen] : seen_) {
    Device gpu{.kind = DeviceKind::gpu, .index = index, .vendor = seen.vendor};
    recall(seen, gpu);
    sysfs::FillUnread visitor{missing};
    Device::fields(gpu, visitor);
    finding.devices.push_back(std::move(gpu));
  }
  return finding;
}

std::optional<std::string> Watched::unviable() {
  if (!seen_.empty()) return std::nullopt;  // then find() reports them as lost
  return start();
}

Result<Finding> Watched::find() {
  forgive();
  for (;;) {
    if (const auto why = start()) return all_lost(*why);
    Answer answer = ask();
    if (answer.found) return remember(std::move(*answer.found));
    blind_ = true;
    if (!blame(answer)) return all_lost("NVML " + answer.failure);
  }
}

}  // namespace remuda::probe::nvml

namespace remuda::probe {
namespace {

constexpr double kStepSeconds = 5;
constexpr double kStartSteps = 4;

/// Takes the place of the probe when an environment variable is wrong: find() returns that error.
class Refused final : public Probe {
 public:
  explicit Refused(Error error) : error_(std::move(error)) {}
  const char* name() const override { return "nvml"; }
  std::optional<std::string> unviable() override { return std::nullopt; }
  Result<Finding> find() override { return tl::unexpected(error_); }

 private:
  const Error error_;
};

Result<double> step_seconds() {
  if (!env::get(env::probe_timeout)) return kStepSeconds;
  return env::get_int(env::probe_timeout, 1, 3600);
}

}  // namespace

std::unique_ptr<Probe> make_nvml_probe(NvmlOptions options) {
  if (options.step_s <= 0) {
    const auto step_s = step_seconds();
    if (!step_s) return std::make_unique<Refused>(step_s.error());
    options.step_s = *step_s;
  }
  if (options.start_s <= 0) options.start_s = kStartSteps * options.step_s;
  const std::string library = options.library;
  return std::make_unique<nvml::Watched>(std::move(options), [library] { return nvml::load_lib(library); });
}

}  // namespace remuda::probe
