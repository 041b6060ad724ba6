#include "doctor/torch_files.h"

#include <gmock/gmock.h>

namespace remuda::doctor {
namespace {

using namespace std::string_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kVersionFile =
    "from typing import Optional\n"
    "\n"
    "__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'xpu']\n"
    "__version__ = '2.5.1+cu124'\n"
    "debug = False\n"
    "cuda: Optional[str] = '12.4'\n"
    "git_version = \"a8d6afb511a6\"\n"
    "hip: Optional[str] = None\n";

TEST(VersionValue, ReadsBothWaysOfWriting) {
  EXPECT_EQ(version_value(kVersionFile, "__version__"), "2.5.1+cu124");
  EXPECT_EQ(version_value(kVersionFile, "cuda"), "12.4");
  EXPECT_EQ(version_value(kVersionFile, "git_version"), "a8d6afb511a6");
  EXPECT_EQ(version_value(kVersionFile, "hip"), "");
  EXPECT_EQ(version_value("cuda = None\n", "cuda"), "");
}

TEST(VersionValue, SurvivesOddText) {
  EXPECT_EQ(version_value("", "cuda"), "");
  EXPECT_EQ(version_value("cuda", "cuda"), "");
  EXPECT_EQ(version_value("cuda = '12.4", "cuda"), "");
  EXPECT_EQ(version_value("cuda '12.4'", "cuda"), "");
  EXPECT_EQ(version_value("cudart = '9'\n", "cuda"), "");
  EXPECT_EQ(version_value("cuda = '" + std::string(1000, '1') + "'", "cuda"), "");
  EXPECT_EQ(version_value("cuda = '12\x1b[2J'", "cuda"), "12?[2J");
}

TEST(GencodeTargets, AreThoseOfTheCode) {
  EXPECT_THAT(gencode_targets("#define NVCC_FLAGS_EXTRA "
                              "\"-gencode;arch=compute_50,code=sm_50;-gencode;arch=compute_90,code=sm_90;"
                              "-gencode;arch=compute_90,code=compute_90\"\n"),
              ElementsAre("sm_50", "sm_90", "compute_90"));
  EXPECT_THAT(gencode_targets("code=[sm_70,compute_70]"), ElementsAre("sm_70", "compute_70"));
  EXPECT_THAT(gencode_targets("code=native;code="), IsEmpty());
  EXPECT_THAT(gencode_targets(""), IsEmpty());
}

TEST(ListedTargets, StandAloneBetweenNuls) {
  EXPECT_THAT(listed_targets("x\0sm_80\0sm_70 sm_80 compute_80\0y"s), ElementsAre("sm_70", "sm_80", "compute_80"));
  EXPECT_THAT(listed_targets("\0gfx90a gfx942:xnack-\0"s), ElementsAre("gfx90a", "gfx942:xnack-"));
  EXPECT_THAT(listed_targets("\0sm_86\0"s), ElementsAre("sm_86"));
}

TEST(ListedTargets, AreNoneWhereItCouldBeAnotherWord) {
  EXPECT_THAT(listed_targets("\0sm_80\0sm_90\0"s), IsEmpty());
  EXPECT_THAT(listed_targets("\0gfx90a\0gfx942\0gfx90a\0"s), IsEmpty());
  EXPECT_THAT(listed_targets("\0sm_count is %d\0"s), IsEmpty());
  EXPECT_THAT(listed_targets("an sm_80 sm_90\0"s), IsEmpty());
  EXPECT_THAT(listed_targets("\0sm_80 sm_90"s), IsEmpty()) << "cut off";
  EXPECT_THAT(listed_targets(""), IsEmpty());
}

}  // namespace
}  // namespace remuda::doctor
