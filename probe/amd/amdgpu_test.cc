#include "probe/amd/amdgpu.h"

#include <gmock/gmock.h>

#include "base/testing/scratch_folder.h"

namespace remuda::probe::amd {
namespace {

using ::testing::HasSubstr;

Device read(const ScratchFolder& tree) {
  Device device;
  read_amdgpu(tree.path(), device);
  return device;
}

TEST(ReadAmdgpu, TellsUsePowerHeatAndClocks) {
  const ScratchFolder tree;
  tree.write("product_name", "AMD Instinct MI210\n");
  tree.write("serial_number", "PCB0123\n");
  tree.write("mem_info_vram_total", "68702699520\n");
  tree.write("mem_info_vram_used", "10801152\n");
  tree.write("gpu_busy_percent", "37\n");
  tree.write("mem_busy_percent", "5\n");
  tree.write("pp_dpm_sclk", "0: 500Mhz\n1: 800Mhz *\n2: 1700Mhz\n");
  tree.write("pp_dpm_mclk", "0: 400Mhz\n1: 1600Mhz *\n");
  tree.write("ras/umc_err_count", "ue: 1\nce: 12\n");
  tree.write("hwmon/hwmon4/power1_average", "41000000\n");
  tree.write("hwmon/hwmon4/power1_cap", "300000000\n");
  tree.write("hwmon/hwmon4/power1_cap_max", "310000000\n");
  tree.write("hwmon/hwmon4/temp1_input", "36500\n");
  tree.write("hwmon/hwmon4/freq1_input", "800000000\n");
  tree.write("hwmon/hwmon4/freq2_input", "1600000000\n");
  const Device device = read(tree);
  EXPECT_EQ(device.model, "AMD Instinct MI210");
  EXPECT_EQ(device.serial.value(), "PCB0123");
  EXPECT_EQ(device.memory_bytes.value(), 68702699520);
  EXPECT_EQ(device.status.memory_used_bytes.value(), 10801152);
  EXPECT_DOUBLE_EQ(device.status.busy.value(), 0.37);
  EXPECT_DOUBLE_EQ(device.status.memory_busy.value(), 0.05);
  EXPECT_EQ(device.sm_clock_max_mhz.value(), 1700);
  EXPECT_EQ(device.memory_clock_max_mhz.value(), 1600);
  EXPECT_EQ(device.status.ecc_uncorrected.value(), 1);
  EXPECT_EQ(device.status.ecc_corrected.value(), 12);
  EXPECT_EQ(device.ecc.value(), true);
  EXPECT_DOUBLE_EQ(device.status.power_watts.value(), 41);
  EXPECT_DOUBLE_EQ(device.power_limit_watts.value(), 300);
  EXPECT_DOUBLE_EQ(device.power_limit_max_watts.value(), 310);
  EXPECT_DOUBLE_EQ(device.status.temperature_c.value(), 36.5);
  EXPECT_EQ(device.status.sm_clock_mhz.value(), 800);
  EXPECT_EQ(device.status.memory_clock_mhz.value(), 1600);
}

TEST(ReadAmdgpu, TakesTheSecondFileWhereAChipLacksTheFirst) {
  const ScratchFolder tree;
  tree.write("hwmon/hwmon0/power1_input", "140000000");
  tree.write("hwmon/hwmon0/temp2_input", "41000");
  const Device device = read(tree);
  EXPECT_DOUBLE_EQ(device.status.power_watts.value(), 140);
  EXPECT_DOUBLE_EQ(device.status.temperature_c.value(), 41);
}

TEST(ReadAmdgpu, SaysWhichFileIsMissing) {
  const ScratchFolder tree;
  const Device device = read(tree);
  EXPECT_EQ(device.model, "");
  const std::string sentence = "there is no " + tree.path();
  EXPECT_EQ(device.status.busy.missing().detail, sentence + "/gpu_busy_percent");
  EXPECT_EQ(device.status.power_watts.missing().detail, sentence + "/hwmon/hwmon0/power1_average");
  EXPECT_EQ(device.ecc.missing().detail, sentence + "/ras/umc_err_count");
  EXPECT_EQ(device.sm_clock_max_mhz.missing().detail, sentence + "/pp_dpm_sclk");
}

TEST(ReadAmdgpu, BelievesNoImpossibleValue) {
  const ScratchFolder tree;
  tree.write("gpu_busy_percent", "65535");
  tree.write("mem_info_vram_total", "0");
  tree.write("mem_info_vram_used", "-4");
  tree.write("pp_dpm_sclk", "S: 4294967296Mhz\nMhz -5Mhz 0Mhz\n");
  tree.write("ras/umc_err_count", "ue: none\nce: -1\n");
  tree.make_folder("mem_busy_percent");
  tree.write("hwmon/hwmon0/freq1_input", "99999999999999999");
  const Device device = read(tree);
  EXPECT_THAT(device.status.busy.missing().detail, HasSubstr("holds 65535, which cannot be"));
  EXPECT_FALSE(device.memory_bytes.has_value());
  EXPECT_FALSE(device.status.memory_used_bytes.has_value());
  EXPECT_THAT(device.sm_clock_max_mhz.missing().detail, HasSubstr("pp_dpm_sclk holds no clocks"));
  EXPECT_THAT(device.status.ecc_uncorrected.missing().detail, HasSubstr("umc_err_count holds no count"));
  EXPECT_FALSE(device.status.ecc_corrected.has_value());
  EXPECT_FALSE(device.ecc.has_value());
  EXPECT_THAT(device.status.memory_busy.missing().detail, HasSubstr("is not a regular file"));
  EXPECT_FALSE(device.status.sm_clock_mhz.has_value());
}

TEST(HighestClock, IsOfAllLines) {
  EXPECT_EQ(highest_clock_mhz("0: 500Mhz *\n1: 1700Mhz \n"), 1700);
  EXPECT_EQ(highest_clock_mhz("1: 1700Mhz\n0: 500MHz *"), 1700);
  EXPECT_EQ(highest_clock_mhz(""), std::nullopt);
  EXPECT_EQ(highest_clock_mhz("0: fastMhz 1700"), std::nullopt);
}

}  // namespace
}  // namespace remuda::probe::amd
