#include "snapshot/short_text.h"

#include <gtest/gtest.h>

namespace remuda::snapshot {
namespace {

TEST(SnapshotShortText, SpansOfTime) {
  EXPECT_EQ(brief_time(42), "42s");
  EXPECT_EQ(brief_time(3900), "1h 5m");
  EXPECT_EQ(brief_time(172800), "2d");
  EXPECT_EQ(brief_time(200000), "2d 7h");
}

TEST(SnapshotShortText, Models) {
  EXPECT_EQ(short_model("NVIDIA GeForce RTX 3090", "NVIDIA"), "RTX 3090");
  EXPECT_EQ(short_model("NVIDIA A100-SXM4-40GB", "NVIDIA"), "A100");
  EXPECT_EQ(short_model("Tesla V100-PCIE-16GB", "NVIDIA"), "V100");
  EXPECT_EQ(short_model("NVIDIA H100 80GB HBM3", "NVIDIA"), "H100");
  EXPECT_EQ(short_model("AMD Instinct MI100", "AMD"), "MI100");
  EXPECT_EQ(short_model("NVIDIA RTX A6000", "NVIDIA"), "RTX A6000");
  EXPECT_EQ(short_model("AMD EPYC 7543", "AMD"), "EPYC 7543");
  EXPECT_EQ(short_model("", ""), "model unknown");
  EXPECT_EQ(short_model("NVIDIA", "NVIDIA"), "model unknown");
}

}  // namespace
}  // namespace remuda::snapshot
