#include "probe/nvml/session.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/file.h"
#include "device/packed.h"
#include "probe/nvml/ask.h"
#include "probe/nvml/process_lists.h"
#include "probe/sysfs.h"

namespace remuda::probe::nvml {
namespace {

constexpr unsigned kMaxGpus = 256;

Device unread_gpu(const Missing& missing) {
  Device device{.kind = DeviceKind::gpu, .vendor = "NVIDIA"};
  sysfs::FillUnread visitor{missing};
  Device::fields(device, visitor);
  device.profile = {};  // a whole GPU has none
  device.offers = {};
  device.pcie_root = {};
  return device;
}

/// UUID, else PCI address, else gpu:N, and never the id of another device.
std::string id_of(const Device& device, const std::vector<Device>& others) {
  for (const Reading<std::string>* name : {&device.uuid, &device.pci})
    if (name->has_value() && std::ranges::find(others, name->value(), &Device::id) == others.end())
      return name->value();
  return device.label();
}

std::string reason_of(const std::map<unsigned, Missing>& unread, unsigned count) {
  if (count == 0) return "the driver is there and finds no GPU";
  if (unread.empty()) return "";
  const std::string& first = unread.begin()->second.detail;
  return unread.size() == 1 ? first : fmt::format("{}; {} more cannot be read", first, unread.size() - 1);
}

}  // namespace

Session::Session(const Lib& lib, const KernelFiles& files, const Avoid& avoid, Announce announce)
    : lib_(lib), files_(files), avoid_(avoid), announce_(std::move(announce)), processes_(files.proc) {}

/// A handle that answers: without this check, dozens of calls would be made for a lost GPU.
Reading<Handle> Session::open(unsigned index) {
  const std::string name = fmt::format("GPU {}", index);
  if (const auto avoided = avoid_.gpus.find(static_cast<int>(index)); avoided != avoid_.gpus.end())
    return Missing{MissingReason::lost, avoided->second};
  Handle& handle = open_[index].handle;
  if (!handle) {
    announce_(fmt::format("open {}", index));
    const auto opened = ask<Handle>(name, lib_.handle_by_index, index);
    if (!opened.has_value() || !opened.value()) {
      Missing missing = opened.has_value() ? why(kUnknown, name) : opened.missing();
      if (missing.reason == MissingReason::unsupported) missing.reason = MissingReason::lost;
      return missing;
    }
    handle = opened.value();
  }
  announce_(fmt::format("read {}", index));
  const auto alive = ask_text(name, lib_.uuid, handle);
  if (!alive.has_value() && alive.missing().reason == MissingReason::lost) return alive.missing();
  return handle;
}

Device Session::read_gpu(unsigned index, Inventory& found) {
  const auto handle = open(index);
  if (!handle.has_value()) unread_[index] = handle.missing();
  const Context context{lib_, files_, monotonic_s()};
  Device device = handle.has_value() ? nvml::read_gpu(context, open_[index]) : unread_gpu(handle.missing());
  device.index = static_cast<int>(index);
  if (!handle.has_value()) return device;
  device.id = id_of(device, found.devices);
  for (Device& partition : read_partitions(context, open_[index], device)) {
    partition.index = static_cast<int>(partitions_.size());
    partition.id = id_of(partition, partitions_);
    partitions_.push_back(std::move(partition));
  }
  return device;
}

/// The library counts GPUs in the order of their PCI addresses: addresses that the kernel module drives and that no
/// read GPU has belong to the GPUs that did not answer, if there are as many of them.
void Session::place_unread(std::vector<Device>& gpus) const {
  std::set<std::string> free;
  for (const std::string& address : driven_addresses(files_)) free.insert(address);
  for (const Device& gpu : gpus)
    if (gpu.pci.has_value()) free.erase(gpu.pci.value());
  auto next = free.begin();
  for (const auto& [index, _] : unread_) {
    Device& gpu = gpus[index];
    if (free.size() == unread_.size()) gpu.pci = *next++;
    fill_place(files_, gpu);
    gpu.id = id_of(gpu, gpus);
  }
}

void Session::read_links(Inventory& found, size_t gpus) {
  std::set<std::string> addresses;
  for (const Device& device : found.devices)
    if (device.pci.has_value()) addresses.insert(device.pci.value());
  std::vector<LinkEnd> ends;
  for (unsigned i = 0; i < gpus; ++i) {
    LinkEnd end{.id = found.devices[i].id, .pci = found.devices[i].pci};
    if (const auto unread = unread_.find(i); unread != unread_.end()) {
      end.ports = unread->second;
    } else {
      announce_(fmt::format("links {}", i));
      end.handle = open_[i].handle;
      const auto chip = read_capability(lib_, end.handle);
      if (chip.has_value()) end.chip = chip.value();
      end.ports = read_ports(lib_, end.handle, addresses, files_);
    }
    ends.push_back(std::move(end));
  }
  for (size_t a = 0; a < gpus; ++a) {
    if (ends[a].handle) announce_(fmt::format("links {}", a));
    for (size_t b = a + 1; b < gpus; ++b) found.links.push_back(read_link(lib_, ends[a], ends[b]));
  }
}

void Session::describe(Process& process) {
  const auto tell = [&process](const auto& user, const auto& command, const auto& start_time_s) {
    process.user = user, process.command = command, process.start_time_s = start_time_s;
  };
  if (const Missing missing{MissingReason::lost, avoid_.processes}; !avoid_.processes.empty())
    return tell(missing, missing, missing);
  const Process& known = processes_.describe(process.pid);
  tell(known.user, known.command, known.start_time_s);
}

void Session::describe_processes(Inventory& found) {
  announce_("processes");
  for (Device& device : found.devices) {
    auto processes = device.status.processes.value_or({});
    if (processes.empty()) continue;
    for (Process& process : processes) describe(process);
    device.status.processes = std::move(processes);
  }
  processes_.forget_others();
}

Driver Session::read_driver() const {
  return {.vendor = "NVIDIA",
          .version = ask_text("driver version", lib_.driver_version),
          .module_version = module_version(files_),
          .library_version = ask_text("library version", lib_.library_version),
          .runtime_version = then(ask<int>("runtime version", lib_.runtime_version), runtime_version_of)};
}

Inventory Session::read() {
  Inventory found;
  unread_.clear();
  partitions_.clear();
  const auto counted = ask<unsigned>("number of GPUs", lib_.device_count);
  const unsigned count = std::min(counted.value_or(0), kMaxGpus);
  for (unsigned i = 0; i < count; ++i) found.devices.push_back(read_gpu(i, found));
  place_unread(found.devices);
  read_links(found, count);
  std::ranges::move(partitions_, std::back_inserter(found.devices));
  describe_processes(found);
  found.drivers.push_back(read_driver());
  std::string reason = counted.has_value() ? reason_of(unread_, count) : counted.missing().detail;
  if (!reason.empty()) found.notes.push_back(std::move(reason));
  if (!counted.has_value()) found.probes.push_back({.name = "nvml", .blind = true});
  return found;
}

void serve(int socket, const std::function<Result<Lib>()>& load, const KernelFiles& files, const Avoid& avoid) {
  bool heard = true;
  const auto say = [&](const std::string& line) {
    heard = heard && write_all(socket, line + "\n", "parent").has_value();
  };
  const auto lib = load();
  if (!lib) return say(std::string(lib.error().kind == ErrorKind::never ? kAbsent : kBlind) + lib.error().message);
  if (const Code code = lib->init(); code != kSuccess) return say(std::string(kBlind) + why(code, "NVML").detail);
  say(std::string(kReady));
  Session session(*lib, files, avoid, say);
  ProcessLists lists;
  char request = 0;
  while (heard && ::recv(socket, &request, 1, 0) == 1) {
    Inventory found = session.read();
    say(std::string(kChanged) + packed::write(lists.take(found.devices)));
    say(std::string(kFound) + pack(found));
  }
}

}  // namespace remuda::probe::nvml
