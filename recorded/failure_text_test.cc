#include "recorded/failure_text.h"

#include <gmock/gmock.h>

namespace remuda::recorded {
namespace {

std::optional<std::string> failure(const std::string& text) { return failure_in(read_lines(text, "x").value()); }

TEST(FailureText, IsWhatProgramsSayInsteadOfTheirReport) {
  EXPECT_EQ(failure("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54\n"),
            "Failed to initialize NVML: Driver/library version mismatch; NVML library version: 550.54");
  const std::string without_driver =
      "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA "
      "driver is installed and running.";
  EXPECT_EQ(failure(without_driver + "\n"), without_driver);
  for (const char* said : {"NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.", "No devices were found",
                           "Failed to initialize NVML: Insufficient Permissions", "bash: nvidia-smi: command not found",
                           "Unable to determine the device handle for GPU 0000:65:00.0: Unknown Error",
                           "ERROR:root:Driver not initialized (amdgpu not found in modules)"})
    EXPECT_EQ(failure(std::string(said) + "\n"), said);
}

TEST(FailureText, IsNoOtherText) {
  EXPECT_EQ(failure("Hello\n"), std::nullopt);
  EXPECT_EQ(failure(""), std::nullopt);
  std::string book;
  for (int i = 0; i < 100; ++i) book += "it failed\n";
  EXPECT_EQ(failure(book), std::nullopt);
}

}  // namespace
}  // namespace remuda::recorded
