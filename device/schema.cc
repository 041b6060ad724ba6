#include "device/schema.h"

#include <algorithm>

#include "device/inventory.h"

namespace remuda {
namespace {

constexpr const char* kReferenceHead =
    "# The inventory: one format, live and recorded\n"
    "\n"
    "`remuda list --json`, `remuda record` and `remuda import` write it; `--machine FILE` reads it in place of the "
    "live\n"
    "machine. It is JSON, version 1: fields may be added within a version, and readers ignore those they do not know.\n"
    "[inventory.schema.json](inventory.schema.json) is its JSON Schema. Both files are made from the field lists in\n"
    "`device/`. `remuda list --json` adds what the machine's pool says: `leases` and `drains`, or `leases_unknown`, "
    "why\n"
    "that is not known; recordings have none of these.\n"
    "\n"
    "A type marked * is a reading: the value itself; or `{\"value\": ..., \"time_s\": ...}` when it was taken at "
    "another\n"
    "time than the inventory; or `{\"missing\": reason, \"detail\": sentence}`. Reasons are `unsupported` (the device, "
    "its\n"
    "driver or the recording does not offer it), `denied` (this process may not read it), `lost` (the device no "
    "longer\n"
    "answers), `stale` (read too long ago to be believed) and `no_driver` (nothing drives the device). A field that "
    "was\n"
    "not read, or is empty, is left out. Unknown is never zero. Bold fields are always there.\n";

Json missing_schema() {
  Json reasons = Json::array();
  for (const auto& [_, word] : Words<MissingReason>::table) reasons.push_back(word);
  return {{"type", "object"},
          {"description", "why a reading is missing"},
          {"properties", {{"missing", {{"enum", std::move(reasons)}}}, {"detail", {{"type", "string"}}}}},
          {"required", {"missing", "detail"}}};
}

fields::Catalogue catalogue() {
  fields::Catalogue catalogue;
  catalogue.schema<Inventory>();
  return catalogue;
}

std::string section(const fields::Catalogue::Entry& entry) {
  std::string text = fmt::format("\n## {}\n\n| field | type | meaning |\n|---|---|---|\n", entry.name);
  for (const fields::Row& row : entry.rows)
    text += fmt::format("| {0}{1}{0} | {2} | {3} |\n", row.required ? "**" : "", row.key, row.type, row.meaning);
  return text;
}

}  // namespace

Json inventory_schema() {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "remuda inventory, version 1"},
                 {"$ref", "#/$defs/inventory"},
                 {"$defs", {{"missing", missing_schema()}}}};
  for (auto& entry : catalogue().entries) schema["$defs"][entry.name] = entry.schema;
  return schema;
}

std::string inventory_reference() {
  std::string text = kReferenceHead;
  for (const auto& entry : catalogue().entries) text += section(entry);
  return text;
}

}  // namespace remuda
