// Files as real machines print them that were once misread: testdata/cases, where each README says what is right.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/file.h"
#include "recorded/import.h"

namespace remuda::recorded {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

std::string path_of(const std::string& file) { return std::string(REMUDA_TESTDATA) + "/cases/" + file; }

Inventory machine(const std::string& file) {
  auto inventory = read_machine_file(path_of(file));
  EXPECT_TRUE(inventory) << inventory.error().message;
  return inventory.value_or(Inventory{});
}

/// The file with one part in place of another.
Inventory changed(const std::string& file, const std::string& from, const std::string& to) {
  std::string text = read_text(path_of(file)).value();
  EXPECT_NE(text.find(from), std::string::npos) << from;
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  auto inventory = import_machine(text, "changed");
  EXPECT_TRUE(inventory) << inventory.error().message;
  return inventory.value_or(Inventory{});
}

std::string refused(const std::string& text) {
  const auto inventory = import_machine(text, "x");
  EXPECT_FALSE(inventory);
  return inventory ? "" : inventory.error().message;
}

constexpr const char* kSensor = "smi-one-sensor-error/power-err.xml";

TEST(Cases, OneSensorsErrorIsNoLostCard) {
  for (const char* error : {"[Unknown Error]", "ERR!", "Unknown Error"}) {
    const Device gpu = changed(kSensor, "[Unknown Error]", error).devices.at(0);
    EXPECT_EQ(gpu.status.power_watts.missing(),
              (Missing{MissingReason::unsupported, fmt::format("nvidia-smi says {}", error)}));
    EXPECT_EQ(gpu.status.temperature_c.value_or(0), 29);
  }
  const Device gpu = changed(kSensor, "29 C", "[Unknown Error]").devices.at(0);
  EXPECT_EQ(gpu.status.temperature_c.missing().reason, MissingReason::unsupported);
}

TEST(Cases, OneThatSaysItIsLostIsLost) {
  for (const char* error : {"[GPU is lost]", "GPU requires reset"}) {
    const Device gpu = changed(kSensor, "[Unknown Error]", error).devices.at(0);
    EXPECT_EQ(gpu.status.temperature_c.missing().reason, MissingReason::lost) << "what it said before";
    EXPECT_EQ(gpu.status.power_watts.missing().detail, fmt::format("nvidia-smi says {}", error));
  }
}

TEST(Cases, OneWhoseSensorsAllFailIsLost) {
  const auto inventory = import_machine(
      "<nvidia_smi_log><gpu id=\"0:1:0.0\"><product_name>Tesla</product_name><temperature><gpu_temp>Unknown Error"
      "</gpu_temp></temperature><utilization><gpu_util>ERR!</gpu_util></utilization></gpu></nvidia_smi_log>",
      "x");
  ASSERT_TRUE(inventory);
  EXPECT_EQ(inventory->devices.at(0).status.temperature_c.missing().reason, MissingReason::lost);
}

TEST(Cases, ValuesThatCannotBeAreMissing) {
  EXPECT_EQ(changed(kSensor, "[Unknown Error]", "3700000.00 W").devices.at(0).status.power_watts.missing().detail,
            "power_watts: 3700000 W makes no sense");
  const Device hot = changed(kSensor, "29 C", "4294967 C").devices.at(0);
  EXPECT_FALSE(hot.status.temperature_c.has_value());
  const Device full = changed(kSensor, "<used>593 MiB", "<used>593000 MiB").devices.at(0);
  EXPECT_FALSE(full.status.memory_used_bytes.has_value());
}

TEST(Cases, TextAroundXmlIsSaid) {
  const std::string corrupted = "the source says: WARNING: infoROM is corrupted at gpu 0000:65:00.0";
  for (const char* file : {"inforom-head.xml", "inforom-tail.xml"}) {
    const Inventory inventory = machine(std::string("smi-text-around-xml/") + file);
    EXPECT_THAT(inventory.devices, SizeIs(2));
    EXPECT_THAT(inventory.notes, Contains(corrupted));
  }
  EXPECT_THAT(machine("smi-text-around-xml/lost-one.xml").notes,
              Contains("the source says: Unable to determine the device handle for GPU 0000:65:00.0: GPU is lost.  "
                       "Reboot the system to recover this GPU"));
}

TEST(Cases, ASecondReportIsSaid) {
  const std::string text = read_text(path_of("smi-text-around-xml/inforom-tail.xml")).value();
  const Inventory inventory = import_machine(text + text, "x").value();
  EXPECT_THAT(inventory.devices, SizeIs(2));
  EXPECT_THAT(inventory.notes, Contains("the source holds 1 report after the first, left unread"));
}

TEST(Cases, BytesInAProcesssNameHideNoMachine) {
  const Inventory inventory = machine("smi-bytes-in-process-name/ff-process.xml");
  ASSERT_THAT(inventory.devices, SizeIs(2));
  EXPECT_THAT(inventory.devices[1].status.processes.value().at(0).command.value(), Not(HasSubstr("\xff")));
  for (const char* name : {"a & b", "<defunct>", "x\x01y", "python </b>"})
    EXPECT_THAT(changed("smi-process-twice/twice.xml", "game.exe", name).devices.at(0).status.processes.value(),
                SizeIs(1));
}

TEST(Cases, AProcessThatComputesAndDrawsIsOne) {
  const auto processes = machine("smi-process-twice/twice.xml").devices.at(0).status.processes.value();
  ASSERT_THAT(processes, SizeIs(1));
  EXPECT_EQ(processes[0].pid, 199237);
  EXPECT_EQ(processes[0].type, "compute");
  EXPECT_EQ(processes[0].memory_bytes.value(), int64_t{2254} << 20);
}

TEST(Cases, NvidiaSmisOwnFailureIsQuoted) {
  EXPECT_EQ(
      refused(read_text(path_of("smi-says-error/mismatch.txt")).value()),
      "x describes no machine: it says \"Failed to initialize NVML: Driver/library version mismatch; NVML library "
      "version: 550.54\"");
  EXPECT_THAT(refused(read_text(path_of("smi-says-error/lost-only.txt")).value()),
              HasSubstr("\"Unable to determine the device handle for GPU 0000:65:00.0: Unknown Error\""));
}

TEST(Cases, WarningsBesideAMatrixAreSaid) {
  const Inventory inventory =
      import_machine(
          "WARNING: infoROM is corrupted at gpu 0000:65:00.0\n\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\t X \n", "x")
          .value();
  EXPECT_THAT(inventory.notes, Contains("the source says: WARNING: infoROM is corrupted at gpu 0000:65:00.0"));
}

TEST(Cases, TheNodeOfAGpusMemoryStandsAfterTwoTabs) {
  const Device gpu = machine("topo-gpu-numa-id/gh200-1.txt").devices.at(0);
  EXPECT_EQ(gpu.cores.value_or({}).size(), 72);
  EXPECT_EQ(gpu.numa_node.value_or(-1), 0);
  const Inventory two =
      import_machine(
          "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tNV18\t0-71\t0\t\t4\nGPU1\tNV18\t X "
          "\t72-143\t1\t\t12\n",
          "x")
          .value();
  EXPECT_EQ(two.devices.at(1).numa_node.value_or(-1), 1);
  EXPECT_EQ(two.devices.at(1).cores.value_or({}).size(), 72);
  const Inventory blank =
      import_machine("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-71\t\t\t1\n", "x").value();
  EXPECT_FALSE(blank.devices.at(0).numa_node.has_value());
  EXPECT_EQ(blank.devices.at(0).cores.value_or({}).size(), 72);
}

TEST(Cases, WithoutGpuElementsPciClassesSayWhatIsAGpu) {
  const Inventory inventory = machine("nccl-file-without-gpu-elements/cloud-topo.xml");
  ASSERT_THAT(inventory.devices, SizeIs(2));
  EXPECT_EQ(inventory.devices[0].pci.value_or(""), "0001:00:00.0");
  EXPECT_EQ(inventory.devices[1].numa_node.value_or(-1), 1);
  EXPECT_THAT(inventory.nics, SizeIs(2));
  EXPECT_THAT(inventory.notes, Contains(HasSubstr("has no <gpu>")));
  const std::string bridges =
      "<system><cpu numaid=\"0\"><pci busid=\"0001:00:00.0\" class=\"0x060400\"/></cpu></system>";
  EXPECT_THAT(refused(bridges), AllOf(HasSubstr("x names no GPU"), HasSubstr("NCCL_TOPO_DUMP_FILE")));
  EXPECT_THAT(refused("<system></system>"), HasSubstr("x names no GPU"));
}

TEST(Cases, LinksThatLeadToNoOtherGpuAreSaid) {
  const Inventory inventory = machine("nccl-nvlink-to-itself/self-link.xml");
  EXPECT_THAT(inventory.notes,
              Contains("12 links of gpu:0 (0001:00:00.0) lead to itself, and so to no other GPU of the source"));
  EXPECT_THAT(inventory.notes, Contains(HasSubstr("12 links of gpu:1 (0002:00:00.0) lead to itself")));
  const Link* link = inventory.link("0001:00:00.0", "0002:00:00.0");
  ASSERT_NE(link, nullptr);
  EXPECT_FALSE(link->fabric.has_value());
  const Inventory elsewhere =
      changed("nccl-nvlink-to-itself/self-link.xml", "target=\"0001:00:00.0\"", "target=\"0009:00:00.0\"");
  EXPECT_THAT(elsewhere.notes, Contains("12 links of gpu:0 (0001:00:00.0) lead to what is no GPU of the source"));
}

}  // namespace
}  // namespace remuda::recorded
