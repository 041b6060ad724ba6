#include "measure/store.h"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <unistd.h>
#include <vector>

#include "base/file.h"
#include "base/state_folder.h"
#include "base/text.h"
#include "device/fields.h"

namespace remuda::measure {
namespace {

constexpr int kVersion = 1;

/// A device as the store knows it.
struct Key {
  std::string host, id, cores;

  static constexpr const char* kName = "key";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("host", self.host, "name of the machine", kRequired);
    visit("id", self.id, "id of the device", kRequired);
    visit("cores", self.cores, "of a CPU device: its cores");
  }
  bool operator==(const Key&) const = default;
};

struct StoredDevice {
  Key key;
  MeasuredDevice measured;

  static constexpr const char* kName = "stored_device";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("key", self.key, "which device", kRequired);
    visit("measured", self.measured, "what was measured of it", kRequired);
  }
};

struct StoredLink {
  Key a, b;
  MeasuredLink measured;

  static constexpr const char* kName = "stored_link";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("a", self.a, "one device", kRequired);
    visit("b", self.b, "the other", kRequired);
    visit("measured", self.measured, "what was measured of the pair", kRequired);
  }
};

struct Stored {
  int version = kVersion;
  std::vector<StoredDevice> devices;
  std::vector<StoredLink> links;

  static constexpr const char* kName = "stored";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("version", self.version, "version of this file", kRequired);
    visit("devices", self.devices, "by device", kRequired);
    visit("links", self.links, "by pair", kRequired);
  }
};

Result<std::string> store_folder() {
  if (auto folder = state_folder()) return *std::move(folder);
  if (::geteuid() == 0) return "/var/lib/remuda";
  return usage_error("there is no place for what is measured: neither HOME nor XDG_STATE_HOME names a folder");
}

Result<std::string> store_path() {
  REMUDA_ASSIGN(const std::string folder, store_folder());
  return folder + "/measured.json";
}

tl::unexpected<Error> useless(const std::string& path, const std::string& why) {
  return usage_error(
      fmt::format("{} does not hold what `remuda bench links` stored ({}); delete it and measure anew", path, why));
}

Result<Stored> read_store(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) return Stored{};
  REMUDA_ASSIGN(const std::string text, read_text(path));
  const auto json = parse_json(text, "it");
  if (!json) return useless(path, json.error().message);
  Stored stored;
  if (const auto outcome = fields::read(*json, "it", stored); !outcome) return useless(path, outcome.error().message);
  if (stored.version == kVersion) return stored;
  return useless(path, fmt::format("it is of version {}, this remuda reads version {}", stored.version, kVersion));
}

Key key_of(const Inventory& inventory, const Device& device) {
  Key key{inventory.host, device.id, {}};
  if (device.kind == DeviceKind::cpu) key.cores = index_ranges(device.cores.value_or({}));
  return key;
}

/// The key of a device that is there.
std::optional<Key> key_of(const Inventory& inventory, std::string_view id) {
  const Device* device = inventory.find(id);
  return device ? std::optional(key_of(inventory, *device)) : std::nullopt;
}

bool same_pair(const std::string& a, const std::string& b, const MeasuredLink& link) {
  return (link.a == a && link.b == b) || (link.a == b && link.b == a);
}

bool same_pair(const StoredLink& one, const StoredLink& other) {
  return (one.a == other.a && one.b == other.b) || (one.a == other.b && one.b == other.a);
}

void load_device(Inventory& inventory, StoredDevice& stored) {
  if (key_of(inventory, stored.key.id) != stored.key) return;
  stored.measured.id = stored.key.id;
  std::erase_if(inventory.measured_devices, [&](const auto& known) { return known.id == stored.key.id; });
  inventory.measured_devices.push_back(std::move(stored.measured));
}

void load_link(Inventory& inventory, StoredLink& stored) {
  if (key_of(inventory, stored.a.id) != stored.a || key_of(inventory, stored.b.id) != stored.b) return;
  if (stored.a == stored.b) return;
  stored.measured.a = stored.a.id;
  stored.measured.b = stored.b.id;
  std::erase_if(inventory.measured_links,
                [&](const auto& known) { return same_pair(stored.a.id, stored.b.id, known); });
  inventory.measured_links.push_back(std::move(stored.measured));
}

void add(Stored& stored, const Inventory& inventory, const MeasuredDevice& measured) {
  const auto key = key_of(inventory, measured.id);
  if (!key) return;
  std::erase_if(stored.devices, [&](const auto& known) { return known.key == *key; });
  stored.devices.push_back({*key, measured});
}

void add(Stored& stored, const Inventory& inventory, const MeasuredLink& measured) {
  const auto a = key_of(inventory, measured.a), b = key_of(inventory, measured.b);
  if (!a || !b) return;
  StoredLink link{*a, *b, measured};
  std::erase_if(stored.links, [&](const auto& known) { return same_pair(known, link); });
  stored.links.push_back(std::move(link));
}

}  // namespace

Result<void> load_measured(Inventory& inventory) {
  if (!store_folder()) return {};  // no place, so nothing was stored
  REMUDA_ASSIGN(const std::string path, store_path());
  REMUDA_ASSIGN(Stored stored, read_store(path));
  for (auto& device : stored.devices) load_device(inventory, device);
  for (auto& link : stored.links) load_link(inventory, link);
  return {};
}

Result<void> check_measured_store() {
  REMUDA_ASSIGN(const std::string folder, store_folder());
  if (const auto made = make_folder(folder); !made) return usage_error(made.error().message);
  REMUDA_ASSIGN(const std::string path, store_path());
  REMUDA_TRY(PendingFile::create(path));
  REMUDA_TRY(read_store(path));
  return {};
}

Result<std::string> store_measured(const Inventory& inventory) {
  REMUDA_TRY(check_measured_store());
  REMUDA_ASSIGN(std::string path, store_path());
  REMUDA_ASSIGN(Stored stored, read_store(path));
  for (const auto& measured : inventory.measured_devices) add(stored, inventory, measured);
  for (const auto& measured : inventory.measured_links) add(stored, inventory, measured);
  REMUDA_ASSIGN(PendingFile file, PendingFile::create(path));
  REMUDA_TRY(file.commit(to_pretty(fields::write(stored))));
  return path;
}

}  // namespace remuda::measure
