#include <gmock/gmock.h>

#include "recorded/import.h"

namespace remuda::recorded {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Inventory import_xml(const std::string& gpus) {
  return import_machine(
             "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>"
             "<driver_version>550.54.15</driver_version><cuda_version>12.4</cuda_version>" +
                 gpus + "</nvidia_smi_log>\n",
             "box.xml")
      .value();
}

constexpr const char* kWhole = R"(<attached_gpus>1</attached_gpus>
<gpu id="00000000:27:00.0">
  <product_name>NVIDIA A100-SXM4-80GB</product_name><product_architecture>Ampere</product_architecture>
  <persistence_mode>Enabled</persistence_mode>
  <mig_mode><current_mig>Disabled</current_mig></mig_mode><mig_devices>None</mig_devices>
  <serial>1560000000001</serial><uuid>GPU-5a1b2c3d-0000-1111-2222-333344445555</uuid><minor_number>3</minor_number>
  <pci><pci_bus_id>00000000:27:00.0</pci_bus_id><pci_gpu_link_info>
    <pcie_gen><max_link_gen>4</max_link_gen><current_link_gen>1</current_link_gen><max_device_link_gen>5</max_device_link_gen></pcie_gen>
    <link_widths><max_link_width>16x</max_link_width><current_link_width>8x</current_link_width></link_widths>
  </pci_gpu_link_info></pci>
  <clocks_event_reasons>
    <clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>
    <clocks_event_reason_hw_thermal_slowdown>Active</clocks_event_reason_hw_thermal_slowdown>
    <clocks_event_reason_sw_power_cap>Not Active</clocks_event_reason_sw_power_cap>
  </clocks_event_reasons>
  <fb_memory_usage><total>81920 MiB</total><reserved>600 MiB</reserved><used>1024 MiB</used></fb_memory_usage>
  <compute_mode>Exclusive_Process</compute_mode>
  <utilization><gpu_util>25 %</gpu_util><memory_util>0 %</memory_util></utilization>
  <ecc_mode><current_ecc>Enabled</current_ecc></ecc_mode>
  <ecc_errors><volatile><sram_correctable>1</sram_correctable><sram_uncorrectable_parity>2</sram_uncorrectable_parity>
    <sram_uncorrectable_secded>N/A</sram_uncorrectable_secded><dram_correctable>4</dram_correctable>
    <dram_uncorrectable>8</dram_uncorrectable></volatile></ecc_errors>
  <remapped_rows><remapped_row_corr>1</remapped_row_corr><remapped_row_unc>2</remapped_row_unc>
    <remapped_row_pending>Yes</remapped_row_pending><remapped_row_failure>No</remapped_row_failure></remapped_rows>
  <temperature><gpu_temp>41 C</gpu_temp></temperature>
  <gpu_power_readings><instant_power_draw>85.50 W</instant_power_draw><current_power_limit>400.00 W</current_power_limit>
    <max_power_limit>450.00 W</max_power_limit></gpu_power_readings>
  <clocks><sm_clock>210 MHz</sm_clock><mem_clock>1593 MHz</mem_clock></clocks>
  <max_clocks><sm_clock>1410 MHz</sm_clock><mem_clock>1593 MHz</mem_clock></max_clocks>
  <processes>
    <process_info><pid>42</pid><type>C</type><process_name>python train.py</process_name><used_memory>512 MiB</used_memory></process_info>
    <process_info><pid>43</pid><type>M+C</type><process_name>[Not Found]</process_name><used_memory>N/A</used_memory></process_info>
  </processes>
</gpu>)";

TEST(SmiXml, ReadsWhatADeviceIs) {
  const Inventory inventory = import_xml(kWhole);
  EXPECT_THAT(inventory.notes, IsEmpty());
  EXPECT_EQ(inventory.drivers.at(0).version.value(), "550.54.15");
  EXPECT_EQ(inventory.drivers.at(0).runtime_version.value(), "12.4");
  ASSERT_THAT(inventory.devices, SizeIs(1));
  const Device& gpu = inventory.devices[0];
  EXPECT_EQ(gpu.id, "GPU-5a1b2c3d-0000-1111-2222-333344445555");
  EXPECT_EQ(gpu.model, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(gpu.architecture.value(), "Ampere");
  EXPECT_EQ(gpu.pci.value(), "0000:27:00.0");
  EXPECT_EQ(gpu.minor.value(), 3);
  EXPECT_EQ(gpu.memory_bytes.value(), 81920LL << 20);
  EXPECT_EQ(gpu.pcie_generation_max.value(), 4);
  EXPECT_EQ(gpu.pcie_generation_card.value(), 5);
  EXPECT_EQ(gpu.pcie_width_max.value(), 16);
  EXPECT_EQ(gpu.power_limit_watts.value(), 400);
  EXPECT_EQ(gpu.power_limit_max_watts.value(), 450);
  EXPECT_EQ(gpu.sm_clock_max_mhz.value(), 1410);
  EXPECT_EQ(gpu.partitioned.value(), false);
  EXPECT_EQ(gpu.persistence.value(), true);
  EXPECT_EQ(gpu.ecc.value(), true);
  EXPECT_EQ(gpu.compute_mode.value(), ComputeMode::exclusive);
}

TEST(SmiXml, ReadsHowADeviceIs) {
  const Status status = import_xml(kWhole).devices.at(0).status;
  EXPECT_EQ(status.memory_used_bytes.value(), 1024LL << 20);
  EXPECT_EQ(status.memory_reserved_bytes.value(), 600LL << 20);
  EXPECT_EQ(status.busy.value(), 0.25);
  EXPECT_EQ(status.memory_busy.value(), 0);
  EXPECT_EQ(status.power_watts.value(), 85.5);
  EXPECT_EQ(status.temperature_c.value(), 41);
  EXPECT_EQ(status.sm_clock_mhz.value(), 210);
  EXPECT_THAT(status.throttle.value(), ElementsAre("idle", "hardware_thermal"));
  EXPECT_EQ(status.ecc_corrected.value(), 5);
  EXPECT_EQ(status.ecc_uncorrected.value(), 10);
  EXPECT_EQ(status.remapped_rows.value(), 3);
  EXPECT_EQ(status.remap_pending.value(), true);
  EXPECT_EQ(status.remap_failed.value(), false);
  EXPECT_EQ(status.pcie_generation.value(), 1);
  EXPECT_EQ(status.pcie_width.value(), 8);
  EXPECT_FALSE(status.energy_joules.was_read());
}

TEST(SmiXml, ReadsProcesses) {
  const std::vector<Process> processes = import_xml(kWhole).devices.at(0).status.processes.value();
  ASSERT_THAT(processes, SizeIs(2));
  EXPECT_EQ(processes[0].pid, 42);
  EXPECT_EQ(processes[0].type, "compute");
  EXPECT_EQ(processes[0].command.value(), "python train.py");
  EXPECT_EQ(processes[0].memory_bytes.value(), 512LL << 20);
  EXPECT_EQ(processes[1].type, "shared");
  EXPECT_FALSE(processes[1].command.has_value());
  EXPECT_FALSE(processes[1].memory_bytes.has_value());
}

TEST(SmiXml, OldDriversPutThingsElsewhere) {
  const Inventory inventory = import_xml(
      "<gpu id=\"0:1:0\"><uuid>N/A</uuid><power_readings><power_draw>20 W</power_draw><enforced_power_limit>250 W"
      "</enforced_power_limit></power_readings><clocks_throttle_reasons><clocks_throttle_reason_hw_slowdown>Active"
      "</clocks_throttle_reason_hw_slowdown></clocks_throttle_reasons><ecc_errors><volatile><single_bit><total>7</"
      "total>"
      "</single_bit><double_bit><total>0</total></double_bit></volatile></ecc_errors><retired_pages>"
      "<multiple_single_bit_retirement><retired_count>2</retired_count></multiple_single_bit_retirement>"
      "<double_bit_retirement><retired_count>1</retired_count></double_bit_retirement>"
      "<pending_retirement>Yes</pending_retirement></retired_pages></gpu>");
  const Device& gpu = inventory.devices.at(0);
  EXPECT_EQ(gpu.id, "gpu:0");
  EXPECT_EQ(gpu.status.power_watts.value(), 20);
  EXPECT_EQ(gpu.power_limit_watts.value(), 250);
  EXPECT_THAT(gpu.status.throttle.value(), ElementsAre("hardware"));
  EXPECT_EQ(gpu.status.ecc_corrected.value(), 7);
  EXPECT_EQ(gpu.status.ecc_uncorrected.value(), 0);
  EXPECT_THAT(inventory.notes, ElementsAre("gpu:0 has 3 retired pages", "gpu:0 retires a page at the next reset"));
}

TEST(SmiXml, SaysWhyAReadingIsMissing) {
  const auto memory = [](const std::string& text) {
    return import_xml("<gpu><fb_memory_usage><total>" + text + "</total></fb_memory_usage></gpu>")
        .devices.at(0)
        .memory_bytes;
  };
  EXPECT_EQ(memory("N/A").missing().reason, MissingReason::unsupported);
  EXPECT_EQ(memory("N/A").missing().detail, "nvidia-smi says N/A");
  EXPECT_EQ(memory("[GPU is lost]").missing().reason, MissingReason::lost);
  EXPECT_EQ(memory("GPU is lost").missing().reason, MissingReason::lost);
  EXPECT_EQ(memory("[Unknown Error]").missing().reason, MissingReason::lost);
  EXPECT_EQ(memory("[Insufficient Permissions]").missing().reason, MissingReason::denied);
  for (const char* wrong : {"", "many", "5 stones", "-5 MiB", "1e300 MiB", "nan MiB", "1 MiBi"})
    EXPECT_FALSE(memory(wrong).has_value()) << wrong;
}

TEST(SmiXml, ALostGpuHidesNoOther) {
  const Inventory inventory = import_xml(
      "<attached_gpus>3</attached_gpus><gpu id=\"00000000:01:00.0\"><product_name>GPU is lost</product_name><uuid>GPU "
      "is lost"
      "</uuid><processes>GPU is lost</processes></gpu><gpu "
      "id=\"00000000:02:00.0\"><uuid>GPU-1234-5678</uuid><processes></processes></gpu>");
  ASSERT_THAT(inventory.devices, SizeIs(2));
  EXPECT_EQ(inventory.devices[0].id, "0000:01:00.0");
  EXPECT_EQ(inventory.devices[0].model, "");
  EXPECT_EQ(inventory.devices[0].status.processes.missing().reason, MissingReason::lost);
  EXPECT_EQ(inventory.devices[1].id, "GPU-1234-5678");
  EXPECT_THAT(inventory.devices[1].status.processes.value(), IsEmpty());
  EXPECT_THAT(inventory.notes, ElementsAre("3 GPUs are attached, and the source describes 2"));
}

TEST(SmiXml, PartitionsAreDevices) {
  const Inventory inventory =
      import_xml(R"(<gpu id="00000000:10:00.0"><product_name>A100</product_name><uuid>GPU-1111</uuid>
    <mig_mode><current_mig>Enabled</current_mig></mig_mode><mig_devices>
      <mig_device><index>0</index><gpu_instance_id>1</gpu_instance_id><compute_instance_id>0</compute_instance_id>
        <device_attributes><shared><multiprocessor_count>42</multiprocessor_count></shared></device_attributes>
        <fb_memory_usage><total>20096 MiB</total><used>37 MiB</used></fb_memory_usage></mig_device>
      <mig_device><index>1</index><gpu_instance_id>2</gpu_instance_id><compute_instance_id>0</compute_instance_id></mig_device>
    </mig_devices><processes>
      <process_info><gpu_instance_id>2</gpu_instance_id><compute_instance_id>0</compute_instance_id><pid>7</pid></process_info>
      <process_info><gpu_instance_id>N/A</gpu_instance_id><compute_instance_id>N/A</compute_instance_id><pid>8</pid></process_info>
    </processes></gpu><gpu id="00000000:11:00.0"><uuid>GPU-2222</uuid></gpu>)");
  ASSERT_THAT(inventory.devices, SizeIs(4));
  EXPECT_TRUE(inventory.devices[0].partitioned.value());
  EXPECT_THAT(inventory.devices[0].status.processes.value(), SizeIs(1));
  EXPECT_EQ(inventory.devices[1].id, "GPU-2222");
  const Device &first = inventory.devices[2], &second = inventory.devices[3];
  EXPECT_EQ(first.kind, DeviceKind::partition);
  EXPECT_EQ(first.id, "partition:0");
  EXPECT_EQ(first.parent, "GPU-1111");
  EXPECT_EQ(first.multiprocessors.value(), 42);
  EXPECT_EQ(first.memory_bytes.value(), 20096LL << 20);
  EXPECT_THAT(first.status.processes.value(), IsEmpty());
  ASSERT_THAT(second.status.processes.value(), SizeIs(1));
  EXPECT_EQ(second.status.processes.value()[0].pid, 7);
}

TEST(SmiXml, NamesDevicesApartWhateverTheSourceSays) {
  const Inventory inventory = import_xml(
      "<gpu id=\"1:00.0\"><uuid>gpu:1</uuid></gpu><gpu id=\"1:00.0\"><uuid>GPU-1</uuid></gpu>"
      "<gpu id=\"1:00.0\"><uuid>GPU-1</uuid></gpu>");
  EXPECT_EQ(inventory.devices.at(0).id, "0000:01:00.0");
  EXPECT_EQ(inventory.devices.at(1).id, "GPU-1");
  EXPECT_EQ(inventory.devices.at(2).id, "gpu:2");
  EXPECT_TRUE(parse_inventory(to_line(to_json(inventory)), "again"));
}

TEST(SmiXml, WarningsMayStandAround) {
  const auto inventory = import_machine(
      "WARNING: infoROM is corrupted\n<?xml version=\"1.0\" ?>\n<nvidia_smi_log><gpu/></nvidia_smi_log>\nbye\n", "a");
  ASSERT_TRUE(inventory);
  EXPECT_THAT(inventory->devices, SizeIs(1));
}

TEST(SmiXml, RefusesTooManyGpus) {
  std::string gpus;
  for (int i = 0; i < 1025; ++i) gpus += "<gpu/>";
  const auto inventory = import_machine("<nvidia_smi_log>" + gpus + "</nvidia_smi_log>", "box.xml");
  ASSERT_FALSE(inventory);
  EXPECT_THAT(inventory.error().message, HasSubstr("box.xml has 1025 GPUs"));
}

}  // namespace
}  // namespace remuda::recorded
