#include "place/where.h"

#include <gmock/gmock.h>

#include "place/where_attributes.h"

namespace remuda::place {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Inventory machine() {
  Inventory inventory;
  inventory.drivers.push_back({.vendor = "NVIDIA", .version = "580.65.06", .runtime_version = "13.0"});
  Device gpu{.id = "GPU-1", .kind = DeviceKind::gpu, .index = 2, .vendor = "NVIDIA", .model = "NVIDIA A100-SXM4-40GB"};
  gpu.uuid = "GPU-1";
  gpu.compute_capability = "8.0";
  gpu.memory_bytes = int64_t{40} << 30;
  gpu.pcie_root = "pci0000:20";
  inventory.devices.push_back(gpu);
  return inventory;
}

Where::Verdict test(const std::string& condition) {
  const Inventory inventory = machine();
  const auto where = Where::parse(condition);
  EXPECT_TRUE(where) << where.error().message;
  return where ? where->test(inventory, inventory.devices.front()) : Where::Verdict{};
}

std::string wrong(const std::string& condition) {
  const auto where = Where::parse(condition);
  EXPECT_FALSE(where) << condition;
  if (where) return "";
  EXPECT_EQ(where.error().kind, ErrorKind::usage);
  return where.error().message;
}

TEST(Where, ComparesByType) {
  for (const char* holds :
       {"memory >= 40Gi", "memory < 43G", "memory == 42949672960", "index == 2", "index != 3", "index in [1, 2]",
        "cudaComputeCapability >= 8", "cudaComputeCapability < 8.6", "driverVersion > '580.9'",
        "cudaDriverVersion == 13.0", "productName =~ \"*a100*\"", "productName != 'A100'", "vendor == 'NVIDIA'",
        "pcieRoot in ['pci0000:00', 'pci0000:20']", "type == 'gpu'", "kind == 'gpu'", "uuid == 'GPU-1'"})
    EXPECT_TRUE(test(holds).holds) << holds;
  for (const char* fails : {"memory > 40Gi", "index in [1]", "cudaComputeCapability > 8.0", "productName =~ 'A100*'",
                            "productName == 'nvidia a100-sxm4-40gb'"})
    EXPECT_FALSE(test(fails).holds) << fails;
}

TEST(Where, BindsAsUsual) {
  EXPECT_TRUE(test("index == 9 && index == 9 || index == 2").holds);
  EXPECT_FALSE(test("index == 9 && (index == 9 || index == 2)").holds);
  EXPECT_TRUE(test("!(index == 9) && !index == 8").holds);
  EXPECT_TRUE(test("!!(index == 2)").holds);
}

MATCHER_P2(IsUnknown, attribute, why, "") { return arg.attribute == attribute && arg.why == why; }

TEST(Where, AMissingReadingNeverHoldsAndIsReported) {
  const auto verdict = test("numaNode == 0 || numaNode != 0");
  EXPECT_FALSE(verdict.holds);
  EXPECT_THAT(verdict.unknown, ElementsAre(IsUnknown("numaNode", "not read")));
  EXPECT_TRUE(test("numaNode == 0 || index == 2").holds);
  EXPECT_THAT(test("index == 2 || numaNode == 0").unknown, IsEmpty());
}

TEST(Where, NotKnownStaysNotKnownWhenNegated) {
  for (const char* text : {"!(numaNode == 0)", "!(numaNode == 0 && index == 2)", "!!(numaNode in [0, 1])",
                           "!(numaNode < 4 || index == 5)"}) {
    EXPECT_FALSE(test(text).holds) << text;
    EXPECT_THAT(test(text).unknown, ElementsAre(IsUnknown("numaNode", "not read"))) << text;
  }
}

TEST(Where, WhatIsKnownDecidesWhereItCan) {
  for (const char* text : {"numaNode == 0 && index == 5", "!(numaNode == 0 || index == 2)"}) {
    EXPECT_FALSE(test(text).holds) << text;
    EXPECT_THAT(test(text).unknown, IsEmpty()) << text;
  }
  EXPECT_TRUE(test("!(numaNode == 0 && index == 5)").holds);
}

TEST(Where, AVersionThatIsNoneIsReported) {
  Inventory inventory = machine();
  inventory.devices.front().compute_capability = "new";
  const auto verdict = Where::parse("cudaComputeCapability > 1").value().test(inventory, inventory.devices.front());
  EXPECT_FALSE(verdict.holds);
  EXPECT_THAT(verdict.unknown, ElementsAre(IsUnknown("cudaComputeCapability", "it is not a version number")));
}

TEST(Where, NamesThePlaceOfWhatIsWrong) {
  EXPECT_THAT(wrong("memory >="), HasSubstr("character 10: expected an amount such as 40Gi"));
  EXPECT_THAT(wrong("memory >= 'x'"), HasSubstr("character 11"));
  EXPECT_THAT(wrong("memory 40Gi"), HasSubstr("character 8: expected == or another comparison, found '40Gi'"));
  EXPECT_THAT(wrong("(index == 1"), HasSubstr("expected ')', found the end"));
  EXPECT_THAT(wrong("index == 1 index == 2"), HasSubstr("character 12"));
  EXPECT_THAT(wrong("productName < 'a'"), HasSubstr("productName is a text: '<' does not compare it"));
  EXPECT_THAT(wrong("index =~ 1"), HasSubstr("index is a number"));
  EXPECT_THAT(wrong("productName == A100"), HasSubstr("a text in quotes"));
  EXPECT_THAT(wrong("productName == 'A100"), HasSubstr("never closed"));
  EXPECT_THAT(wrong("index in 1"), HasSubstr("expected '['"));
  EXPECT_THAT(wrong("index in [1 2]"), HasSubstr("expected ']'"));
  EXPECT_THAT(wrong("index == 4Gi"), HasSubstr("a number, as for index"));
  EXPECT_THAT(wrong("index = 1"), HasSubstr("'=' means nothing here"));
  EXPECT_THAT(wrong(""), HasSubstr("the name of an attribute"));
  EXPECT_THAT(wrong("\x1b[31m"), HasSubstr("'?' means nothing here"));
}

TEST(Where, KnowsTheNearestName) {
  EXPECT_THAT(wrong("memroy > 1Gi"), HasSubstr("is 'memory' meant?"));
  EXPECT_THAT(wrong("zzzzzzzzzzzzz > 1"), HasSubstr("there are type, uuid, productName"));
}

TEST(Where, IsBounded) {
  EXPECT_THAT(wrong(std::string(Where::kLongest + 1, ' ')), HasSubstr("at most 4096"));
  EXPECT_THAT(wrong(std::string(1000, '(')), HasSubstr("more than 32 levels"));
  EXPECT_THAT(wrong(std::string(1000, '!')), HasSubstr("more than 32 levels"));
  std::string list = "index in [0";
  for (int i = 0; i < 300; ++i) list += ",1";
  EXPECT_THAT(wrong(list + "]"), HasSubstr("at most 256 values"));
}

TEST(Where, AsInTheHeader) {
  Inventory inventory = machine();
  const Where where = Where::parse("memory >= 40Gi && !(numaNode == 1)").value();
  const bool suits = where.test(inventory, inventory.devices[0]).holds;
  EXPECT_FALSE(suits) << "its NUMA node is not known";
}

TEST(Where, KnowsWhatItAsksFor) {
  const Where where = Where::parse("!(index == 1) || memory > 1Gi && type == 'gpu'").value();
  EXPECT_TRUE(where.names("type"));
  EXPECT_FALSE(where.names("profile"));
}

TEST(Attributes, AllCanBeRead) {
  const Inventory inventory = machine();
  for (const Attribute& attribute : attributes()) {
    const auto value = attribute.read(inventory, inventory.devices.front());
    if (!value.has_value()) continue;
    const bool is_number = attribute.type == AttributeType::number || attribute.type == AttributeType::amount;
    EXPECT_EQ(std::holds_alternative<double>(value.value()), is_number) << attribute.name;
  }
}

}  // namespace
}  // namespace remuda::place
