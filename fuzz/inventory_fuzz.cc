// Any bytes are an inventory or a usage error of one line that names the file; and an inventory reads back from its
// JSON as the same one.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "device/inventory.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto inventory = remuda::parse_inventory(text, "dir/box.json");
  if (!inventory) {
    const std::string& message = inventory.error().message;
    REMUDA_CHECK(inventory.error().kind == remuda::ErrorKind::usage, "a wrong file is the user's error");
    REMUDA_CHECK(message.find('\n') == std::string::npos, "an error is one line");
    REMUDA_CHECK(message.starts_with("dir/box.json"), "an error names the file");
    return 0;
  }
  const auto again = remuda::parse_inventory(remuda::to_line(remuda::to_json(*inventory)), "again");
  REMUDA_CHECK(again, "an inventory's JSON is an inventory");
  REMUDA_CHECK(*again == *inventory, "an inventory's JSON is the same inventory");
  for (const remuda::Device& device : inventory->devices)
    REMUDA_CHECK(inventory->resolve(device.id), "a device is found by its id");
  return 0;
}
