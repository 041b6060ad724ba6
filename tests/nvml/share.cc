#include "tests/nvml/share.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/env.h"
#include "base/file.h"
#include "base/text.h"

namespace remuda::tests::nvml {
namespace {

constexpr int64_t kShareGiB = int64_t{1} << 30;

constexpr const char* kStandIn = R"sh(#!/bin/sh
pipe=$CUDA_MPS_PIPE_DIRECTORY
case "$1" in
-d)
  echo "start $CUDA_VISIBLE_DEVICES [$REMUDA_JOB$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE] $(stat -c %a "$pipe/..") $pipe" >>"$OUT/calls"
  test -e "$OUT/fail" && { echo "no such luck"; exit 7; }
  test -e "$OUT/hang" && { setsid sleep 1000 & sleep 1000; }
  test -e "$pipe/pid" && kill -0 "$(cat "$pipe/pid")" && { echo "one runs"; exit 1; }
  setsid "$0" serve </dev/null >/dev/null 2>&1 &
  while ! test -e "$pipe/pid"; do sleep 0.01; done
  ;;
serve)
  trap '' HUP
  echo $$ >"$pipe/pid.new" && mv "$pipe/pid.new" "$pipe/pid"
  while test -d "$pipe" && ! test -e "$pipe/quit"; do sleep 0.02; done
  echo "end $CUDA_VISIBLE_DEVICES" >>"$OUT/calls"
  rm "$pipe/pid"
  ;;
*)
  read -r line
  test -e "$pipe/pid" && kill -0 "$(cat "$pipe/pid")" || { echo "cannot find the daemon"; exit 1; }
  test -e "$OUT/deaf" && sleep 1000
  echo "$line" >>"$OUT/commands"
  test "$line" = quit && touch "$pipe/quit"
  exit 0
  ;;
esac
)sh";

Device instance(int index, const std::string& profile, int64_t gib) {
  Device device = gpu(0);
  device.kind = DeviceKind::partition;
  device.index = index;
  device.id = fmt::format("MIG-0000000{}", index);
  device.uuid = device.id;
  device.parent = gpu(1).id;
  device.profile = profile;
  device.memory_bytes = gib * kShareGiB;
  device.pci = Reading<std::string>{};
  device.compute_capability = Reading<std::string>{};
  device.partitioned = Reading<bool>{};
  return device;
}

}  // namespace

Device gpu(int index) {
  Device device{.id = fmt::format("GPU-0000000{}", index), .kind = DeviceKind::gpu, .index = index, .vendor = "NVIDIA"};
  device.model = "NVIDIA A100-SXM4-40GB";
  device.uuid = device.id;
  device.pci = fmt::format("0000:0{}:00.0", index + 1);
  device.compute_capability = "8.0";
  device.memory_bytes = 40 * kShareGiB;
  device.partitioned = false;
  device.status.processes = std::vector<Process>{};
  device.status.memory_used_bytes = 0;
  return device;
}

std::vector<Device> cut_machine() {
  Device cut = gpu(1);
  cut.partitioned = true;
  return {gpu(0), cut, instance(0, "3g.20gb", 20), instance(1, "1g.5gb", 5), instance(2, "2g.10gb", 10)};
}

Share::Share() {
  play({gpu(0), gpu(1)});
  ::mkdir(folder_.path("bin").c_str(), 0700);
  folder_.write("bin/nvidia-cuda-mps-control", kStandIn);
  ::chmod(folder_.path("bin/nvidia-cuda-mps-control").c_str(), 0700);
}

void Share::TearDown() {
  EXPECT_TRUE(eventually([&] { return leases().empty() && daemons().empty(); }, kPatience_s)) << "something is left";
}

void Share::play(const std::vector<Device>& devices) const {
  folder_.write("machine.json", to_pretty(to_json(Inventory{.host = "test", .devices = devices})));
}

std::unique_ptr<RunningProgram> Share::begin(std::vector<std::string> flags, const std::string& script) const {
  flags.insert(flags.begin(), {REMUDA_PROGRAM, "run"});
  std::ranges::copy(std::vector<std::string>{"--", "/bin/sh", "-c", script}, std::back_inserter(flags));
  return std::make_unique<RunningProgram>(flags, environment());
}

Finished Share::run(std::vector<std::string> flags, const std::string& script) const {
  return begin(std::move(flags), script)->finish();
}

process::Environment Share::environment() const {
  return {{"LD_LIBRARY_PATH", library_folder("current")},
          {env::test_nvml.name, folder_.path("machine.json")},
          {env::test_nvml_faults.name, ""},
          {env::probe_timeout.name, "1"},
          {"XDG_STATE_HOME", folder_.path("state")},
          {"OUT", folder_.path("")},
          {env::claims.name, folder_.path("")},
          {"PATH", folder_.path("bin") + ":/usr/bin:/bin"}};
}

Json Share::leases() const {
  const Finished ps = tests::run({REMUDA_PROGRAM, "ps", "--json"}, environment());
  return parse_json(ps.out, "ps").value_or(Json{})["leases"];
}

bool Share::comes(const std::string& file) const {
  return eventually([&] { return folder_.has(file); }, kPatience_s);
}

std::vector<std::string> Share::calls() const {
  std::vector<std::string> lines = split(folder_.read("calls"), '\n');
  std::erase(lines, "");
  return lines;
}

std::vector<pid_t> Share::daemons() const {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto environment = read_text(entry.path().string() + "/environ");
    if (!environment || environment->find("OUT=" + folder_.path("")) == std::string::npos) continue;
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (environment->find("REMUDA_DAEMON=") != std::string::npos && is_running(pid)) found.push_back(pid);
  }
  return found;
}

}  // namespace remuda::tests::nvml
