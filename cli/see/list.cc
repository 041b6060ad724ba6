#include "cli/see/list.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <memory>

#include "base/clock.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/machine.h"
#include "cli/subcommands.h"
#include "cli/terminal.h"
#include "device/fields.h"
#include "snapshot/short_text.h"

namespace remuda::cli {
namespace {

constexpr const char* kListExamples =
    "Examples:\n"
    "  remuda list                          the devices of this machine\n"
    "  remuda list gpu:0                    everything known of one\n"
    "  remuda list --json                   as JSON; docs/inventory.md explains every field\n"
    "  remuda list --machine recorded.json  a recorded machine\n"
    "A CPU device is a set of whole cores; there is one per NUMA node unless --cpu-devices is given.\n";

struct ListFlags {
  MachineFlags machine;
  std::string device;
  bool json = false;
};

/// The reading, or one word for why it is missing: "-" where it is not available.
template <typename T, typename Format>
std::string cell(const Reading<T>& reading, Format format) {
  if (reading.has_value()) return format(reading.value());
  switch (reading.missing().reason) {
    case MissingReason::unsupported:
      return "-";
    case MissingReason::no_driver:
      return "no driver";
    default:
      return to_string(reading.missing().reason);
  }
}

std::string memory_cell(const Device& device) {
  std::string total = cell(device.memory_bytes, [](int64_t bytes) { return human_bytes(static_cast<double>(bytes)); });
  if (!device.status.memory_used_bytes.has_value()) return total;
  return fmt::format("{} of {}", human_bytes(static_cast<double>(device.status.memory_used_bytes.value())), total);
}

/// Empty where no process uses it.
std::string users_cell(const Device& device) {
  constexpr size_t kMostNamed = 4;
  if (!device.status.processes.has_value()) return cell(device.status.processes, [](const auto&) { return ""; });
  const std::vector<Process>& all = device.status.processes.value();
  std::map<std::string, int> processes;
  for (const Process& process : all) ++processes[process.user.value_or(fmt::format("pid {}", process.pid))];
  if (processes.size() > kMostNamed) {
    const bool are_users = std::ranges::all_of(all, [](const Process& process) { return process.user.has_value(); });
    return are_users ? fmt::format("{} processes of {} users", all.size(), processes.size())
                     : fmt::format("{} processes", all.size());
  }
  std::string text;
  for (const auto& [user, count] : processes)
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", user, count > 1 ? fmt::format(" ({})", count) : "");
  return text;
}

/// What no process shows: who has leased it all the same.
std::string idle_user(const Device& device, const Leases& leases) {
  const auto holder = leases.holders.find(device.id);
  if (holder != leases.holders.end()) return holder->second;
  return leases.is_known ? "nobody" : "no process";
}

struct Column {
  const char* name;
  std::string (*gpu)(const Device&);
  std::string (*cpu)(const Device&);
};

std::string nothing(const Device&) { return ""; }
std::string busy_text(double share) { return fmt::format("{:.0f} %", 100 * share); }
std::string numa_cell(const Device& device) {
  return cell(device.numa_node, [](int node) { return std::to_string(node); });
}
std::string plain_text(const std::string& text) { return text; }

constexpr Column kColumns[] = {
    {"DEVICE", [](const Device& d) { return d.label(); }, [](const Device& d) { return d.label(); }},
    {"MODEL", [](const Device& d) { return d.profile.has_value() ? d.profile.value() : model_text(d); },
     [](const Device& d) { return model_text(d); }},
    {"MEMORY", memory_cell, memory_cell},
    {"BUSY", [](const Device& d) { return cell(d.status.busy, busy_text); }, nothing},
    {"POWER",
     [](const Device& d) { return cell(d.status.power_watts, [](double w) { return fmt::format("{:.0f} W", w); }); },
     nothing},
    {"TEMP",
     [](const Device& d) { return cell(d.status.temperature_c, [](double c) { return fmt::format("{:.0f} C", c); }); },
     nothing},
    {"NUMA", numa_cell, numa_cell},
    {"CORES", nothing,
     [](const Device& d) { return cell(d.cores, [](const auto& cores) { return index_ranges(cores); }); }},
    {"PCI", [](const Device& d) { return cell(d.pci, plain_text); }, nothing},
    {"USED BY", users_cell, nothing},
};

/// In this order, where all columns together are wider than the terminal: `remuda list DEVICE` has them.
constexpr const char* kLeftOutFirst[] = {"PCI", "NUMA", "TEMP", "POWER"};

bool says_nothing(const std::string& text) { return text.empty() || text == "-"; }

using Cells = std::vector<std::string>;

/// The name of each column, and its cells. Not those in which no device has a value.
std::vector<Cells> columns_of(const std::vector<Device>& devices, const Leases& leases) {
  std::vector<Cells> columns;
  for (const Column& column : kColumns) {
    Cells cells{column.name};
    for (const Device& device : devices) {
      const auto make_cell = device.kind == DeviceKind::cpu ? column.cpu : column.gpu;
      cells.push_back(make_cell(device));
      if (make_cell == users_cell && cells.back().empty()) cells.back() = idle_user(device, leases);
    }
    const bool silent = std::all_of(cells.begin() + 1, cells.end(), says_nothing);
    if (columns.size() < 2 || !silent) columns.push_back(std::move(cells));
  }
  return columns;
}

Table table_of(const std::vector<Cells>& columns) {
  const auto row = [&](size_t i) {
    Cells cells;
    for (const auto& column : columns) cells.push_back(column[i]);
    return cells;
  };
  Table table(row(0));
  for (size_t i = 1; i < columns.front().size(); ++i) table.add(row(i));
  table.cut_first(columns.back().front() == "USED BY" ? columns.size() - 1 : 1);
  return table;
}

/// Where the table is too wide still: without what all models of a vendor share, unless two would be alike then.
void shorten_models(const std::vector<Device>& devices, size_t width, std::vector<Cells>& columns) {
  if (table_of(columns).width() <= width) return;
  Cells& models = columns.at(1);
  std::map<std::string, std::string> whole;  // by its short form
  Cells shortened = models;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].kind != DeviceKind::gpu || devices[i].model.empty() || devices[i].profile.has_value()) continue;
    std::string& text = shortened[i + 1];
    text = snapshot::short_model(text, devices[i].vendor);
    if (whole.try_emplace(text, models[i + 1]).first->second != models[i + 1]) return;
  }
  models = std::move(shortened);
}

std::string device_table(const std::vector<Device>& devices, size_t width, const Leases& leases) {
  std::vector<Cells> columns = columns_of(devices, leases);
  std::string left_out;
  for (const char* name : kLeftOutFirst) {
    if (table_of(columns).width() <= width) break;
    const auto is_it = [&](const Cells& column) { return column.front() == name; };
    if (std::erase_if(columns, is_it) > 0) left_out += (left_out.empty() ? "" : ", ") + std::string(name);
  }
  shorten_models(devices, width, columns);
  std::string text = table_of(columns).text(width);
  if (!left_out.empty()) text += fmt::format("No room for {}: remuda list DEVICE shows all\n", left_out);
  return text;
}

/// Collects the reasons of missing readings that the table shows, except those that only mean that a device has no such
/// reading.
struct Reasons {
  struct Reason {
    std::string sentence, key;
    int readings = 0;
  };
  std::vector<Reason> all;
  template <typename T>
  void operator()(const char* key, const T& field, const char*, bool = false) {
    if constexpr (fields::kIsReading<T>) {
      if (field.has_value() || field.missing().reason == MissingReason::unsupported || !is_shown(key)) return;
      const std::string& sentence = field.missing().detail;
      const auto same = std::ranges::find(all, sentence, &Reason::sentence);
      ++(same == all.end() ? all.emplace_back(Reason{sentence, key}) : *same).readings;
    } else if constexpr (fields::Listed<T>) {
      T::fields(field, *this);
    }
  }
  /// One that is of a single reading names it.
  std::vector<std::string> sentences() const {
    std::vector<std::string> texts;
    for (const auto& [sentence, key, readings] : all) {
      const bool is_named = readings > 1 || sentence.find(": ") != std::string::npos;
      texts.push_back(is_named ? sentence : fmt::format("{}: {}", key, sentence));
    }
    return texts;
  }

 private:
  static bool is_shown(std::string_view key) {
    constexpr std::string_view kShown[] = {"memory_bytes",  "memory_used_bytes", "busy", "power_watts",
                                           "temperature_c", "numa_node",         "pci",  "processes"};
    return std::ranges::find(kShown, key) != std::end(kShown);
  }
};

/// "gpu:0, gpu:3: sentence" for each sentence.
std::string reasons_text(const std::vector<Device>& devices) {
  std::vector<std::pair<std::string, std::string>> whose;
  for (const Device& device : devices) {
    Reasons reasons;
    Device::fields(device, reasons);
    for (const std::string& sentence : reasons.sentences()) {
      const auto same = std::ranges::find(whose, sentence, &std::pair<std::string, std::string>::first);
      if (same == whose.end())
        whose.emplace_back(sentence, device.label());
      else
        same->second += ", " + device.label();
    }
  }
  std::string text;
  for (const auto& [sentence, labels] : whose) text += fmt::format("{}: {}\n", labels, sentence);
  return text;
}

/// Why models are unknown; empty when none is.
std::string no_model_text(const Inventory& inventory) {
  std::string labels;
  for (const Device& device : inventory.devices)
    if (device.model.empty()) labels += (labels.empty() ? "" : ", ") + device.label();
  if (labels.empty()) return "";
  if (inventory.source.empty() || inventory.source == Inventory::kLive)
    return fmt::format("{}: nothing on this machine names the model\n", labels);
  return fmt::format("{}: the recording does not name the model ({})\n", labels, inventory.source);
}

/// Why there is no GPU, from the probes that looked for one; empty when there is one, or no probe did.
std::string no_gpu_text(const Inventory& inventory) {
  if (std::ranges::any_of(inventory.devices, [](const Device& d) { return d.kind != DeviceKind::cpu; })) return "";
  std::string why;
  for (const ProbeReport& probe : inventory.probes) {
    if (probe.devices > 0) continue;
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", probe.name,
                       probe.reason.empty() ? "found none" : probe.reason);
  }
  const char* none = inventory.unseen().empty() ? "No GPU" : "No GPU can be seen";
  return why.empty() ? "" : fmt::format("{} ({})\n", none, why);
}

/// Why the probes that found devices could not read all.
std::string partial_text(const Inventory& inventory) {
  std::string text;
  for (const ProbeReport& probe : inventory.probes)
    if (probe.devices > 0 && !probe.reason.empty()) text += fmt::format("{}: {}\n", probe.name, probe.reason);
  for (const std::string& note : inventory.notes) text += fmt::format("note: {}\n", note);
  return text;
}

/// One line per field: "temperature_c  54".
struct FieldLines {
  Table table{{"FIELD", "VALUE"}};
  template <typename T>
  void operator()(const char* key, const T& field, const char*, bool = false) {
    if constexpr (fields::Listed<T>) {
      T::fields(field, *this);
    } else if constexpr (fields::kIsReading<T>) {
      if (!field.was_read()) return;
      if constexpr (std::is_same_v<T, Reading<std::vector<Process>>>)
        if (field.has_value() && !field.value().empty()) return add_processes(field.value());
      table.add({key, field.has_value()
                          ? value_text(fields::write(field.value()))
                          : fmt::format("{}: {}", to_string(field.missing().reason), field.missing().detail)});
    } else {
      const std::string text = value_text(fields::write(field));
      if (!text.empty()) table.add({key, text});
    }
  }
  /// A line each, of those there is room for.
  void add_processes(const std::vector<Process>& processes) {
    constexpr size_t kShown = 20;
    for (size_t i = 0; i < std::min(processes.size(), kShown); ++i)
      table.add({i == 0 ? "processes" : "", value_text(fields::write(processes[i]))});
    if (processes.size() > kShown)
      table.add({"", fmt::format("and {} more; --json has all", processes.size() - kShown)});
  }
  static std::string value_text(const Json& json) { return json.is_string() ? json.get<std::string>() : to_line(json); }
};

/// Of one live device, profiling counters too: they are what came between two readings.
Result<Inventory> read_for(const ListFlags& flags) {
  constexpr double kBetween_s = 0.15;
  if (flags.device.empty() || !flags.machine.file.empty()) return read_machine(flags.machine);
  MachineReader reader(flags.machine);
  REMUDA_ASSIGN(Inventory first, reader.read());
  const auto device = first.resolve(flags.device);
  const bool is_all = !device || !(*device)->status.sm_active.was_read() || (*device)->status.sm_active.has_value();
  if (is_all) return first;
  steady_clock().sleep_s(kBetween_s);
  return reader.read();
}

Result<int> list(const ListFlags& flags) {
  REMUDA_ASSIGN(const Inventory inventory, read_for(flags));
  const SeenPool pool = see_pool(flags.machine);
  if (flags.device.empty()) {
    Json json = to_json(inventory);
    add_pool(pool, "", json);
    if (flags.json)
      fmt::print("{}", to_pretty(json));
    else
      print_fitted(inventory_text(inventory, table_width(), leases_of(pool)) + pool_notes(pool, inventory));
    return 0;
  }
  REMUDA_ASSIGN(const Device* device, inventory.resolve(flags.device));
  Json json = fields::write(*device);
  add_pool(pool, device->id, json);
  fmt::print("{}", flags.json ? to_pretty(json) : device_text(*device) + pool_notes(pool, inventory, device->id));
  return 0;
}

}  // namespace

std::string inventory_text(const Inventory& inventory, size_t width, const Leases& leases) {
  return device_table(inventory.devices, width, leases) + reasons_text(inventory.devices) + no_model_text(inventory) +
         no_gpu_text(inventory) + partial_text(inventory);
}

std::string device_text(const Device& device) {
  FieldLines lines;
  Device::fields(device, lines);
  return lines.table.text();
}

void add_list(Program& program) {
  auto flags = std::make_shared<ListFlags>();
  CLI::App& command =
      program.add("list", "Show the devices of a machine and who uses them", [flags] { return list(*flags); });
  command.add_option("DEVICE", flags->device, "One device: gpu:0, a UUID or its beginning, a PCI address");
  command.add_flag("--json", flags->json, "Print the inventory as JSON");
  add_machine_options(command, flags->machine);
  command.footer(kListExamples);
}

}  // namespace remuda::cli
