// Any line is a packed inventory or an error of one line; and an inventory is packed and unpacked as the same one.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "device/inventory.h"
#include "device/packed.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace remuda;
  const auto inventory = unpack_inventory(std::string_view(reinterpret_cast<const char*>(data), size), "the driver");
  if (!inventory) {
    REMUDA_CHECK(inventory.error().message.find('\n') == std::string::npos, "an error is one line");
    return 0;
  }
  const auto again = unpack_inventory(pack(*inventory), "again");
  REMUDA_CHECK(again && *again == *inventory, "a packed inventory is the same inventory");
  return 0;
}
