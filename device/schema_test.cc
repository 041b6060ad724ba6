#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/env.h"
#include "base/file.h"
#include "device/inventory.h"

namespace remuda {
namespace {

/// Compares with a file of docs/; REMUDA_UPDATE_GOLDEN=1 writes it instead.
void expect_document(const std::string& name, const std::string& text) {
  const std::string path = std::string(REMUDA_DOCS) + "/" + name;
  if (env::get(env::update_golden) == "1") {
    auto file = PendingFile::create(path);
    ASSERT_TRUE(file && file->commit(text)) << path;
  }
  const auto kept = read_text(path);
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(*kept, text) << "REMUDA_UPDATE_GOLDEN=1 rewrites docs/" << name;
}

TEST(InventorySchema, IsKeptInTheDocs) { expect_document("inventory.schema.json", to_pretty(inventory_schema())); }

TEST(InventoryReference, IsKeptInTheDocs) { expect_document("inventory.md", inventory_reference()); }

TEST(InventorySchema, DescribesEveryField) {
  const Json schema = inventory_schema();
  for (const auto& [name, definition] : schema["$defs"].items()) {
    EXPECT_TRUE(name == "missing" || !definition["properties"].empty()) << name;
    if (name == "missing") continue;
    for (const auto& [key, property] : definition["properties"].items())
      EXPECT_NE(property.value("description", ""), "") << name << "." << key;
  }
}

}  // namespace
}  // namespace remuda
