// Any bytes are a machine or a usage error of one line that names the file; and a machine reads back from its JSON as
// the same one.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "recorded/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto inventory = remuda::recorded::import_machine(text, "dir/box.txt");
  if (!inventory) {
    const std::string& message = inventory.error().message;
    REMUDA_CHECK(inventory.error().kind == remuda::ErrorKind::usage, "a wrong file is the user's error");
    REMUDA_CHECK(message.find('\n') == std::string::npos, "an error is one line");
    REMUDA_CHECK(message.starts_with("dir/box.txt"), "an error names the file");
    return 0;
  }
  const auto again = remuda::parse_inventory(remuda::to_line(remuda::to_json(*inventory)), "again");
  REMUDA_CHECK(again, "a machine's JSON is an inventory");
  REMUDA_CHECK(*again == *inventory, "a machine's JSON is the same machine");
  return 0;
}
