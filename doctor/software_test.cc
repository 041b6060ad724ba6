#include "doctor/software.h"

#include <gmock/gmock.h>

#include "base/testing/scratch_folder.h"

namespace remuda::doctor {
namespace {

using namespace std::string_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Packages : public ::testing::Test {
 protected:
  void write_torch(const std::string& cuda, const std::string& hip) {
    tree_.write("site/torch/version.py",
                "__version__ = '2.5.1'\ncuda: Optional[str] = " + cuda + "\nhip: Optional[str] = " + hip + "\n");
  }
  Software find() const { return find_software({tree_.path("none"), tree_.path("site")}, {tree_.path("lib")}); }

  ScratchFolder tree_;
};

TEST_F(Packages, NoPyTorchIsASentence) {
  const Software software = find();
  ASSERT_FALSE(software.torch.has_value());
  EXPECT_EQ(software.torch.missing().detail, "python3 finds no PyTorch");
  ASSERT_FALSE(software.nccl.has_value());
  EXPECT_EQ(software.nccl.missing().detail, "no libnccl.so.2 was found");
}

TEST_F(Packages, ABuildForCpusHasNoTargets) {
  write_torch("None", "None");
  const Software software = find();
  ASSERT_TRUE(software.torch.has_value());
  const Torch& torch = software.torch.value();
  EXPECT_EQ(torch.version, "2.5.1");
  EXPECT_EQ(torch.folder, tree_.path("site/torch"));
  EXPECT_THAT(torch.targets.missing().detail, HasSubstr("for CPUs alone"));
}

TEST_F(Packages, TargetsStandInTheHeader) {
  write_torch("'12.4'", "None");
  tree_.write("site/torch/include/ATen/cuda/CUDAConfig.h",
              "#define NVCC_FLAGS_EXTRA \"-gencode;arch=compute_80,code=sm_80\"\n");
  const Torch torch = find().torch.value();
  EXPECT_EQ(torch.cuda, "12.4");
  EXPECT_THAT(torch.targets.value(), ElementsAre("sm_80"));
}

TEST_F(Packages, TargetsStandInTheLibrary) {
  write_torch("None", "'6.2.41133-dd7f95766'");
  // Builds for HIP hold this header too, with figures that mean nothing.
  tree_.write("site/torch/include/ATen/cuda/CUDAConfig.h", "code=sm_75\n");
  tree_.write("site/torch/lib/libtorch_python.so",
              "\x7f"
              "ELF\0gfx90a gfx942\0"s);
  const Torch torch = find().torch.value();
  EXPECT_EQ(torch.hip, "6.2.41133-dd7f95766");
  EXPECT_THAT(torch.targets.value(), ElementsAre("gfx90a", "gfx942"));
}

TEST_F(Packages, TargetsThatDoNotStandAnywhereAreMissing) {
  write_torch("'12.4'", "None");
  EXPECT_THAT(find().torch.value().targets.missing().detail, HasSubstr("libtorch_python.so: No such file"));
  tree_.write("site/torch/lib/libtorch_python.so", "");
  EXPECT_THAT(find().torch.value().targets.missing().detail, HasSubstr("does not report its targets"));
}

TEST_F(Packages, AVersionFileThatTellsNothing) {
  tree_.write("site/torch/version.py", "import os\n");
  EXPECT_THAT(find().torch.missing().detail, HasSubstr("version.py has no version"));
}

TEST_F(Packages, CollectivesOfAPackage) {
  tree_.write("site/nvidia/nccl/lib/libnccl.so.2", "");
  EXPECT_FALSE(find().nccl.value().version.has_value());
  tree_.make_folder("site/nvidia_nccl_cu12-2.21.5.dist-info");
  EXPECT_EQ(find().nccl.value().version.value(), "2.21.5");
  EXPECT_EQ(find().nccl.value().path, tree_.path("site/nvidia/nccl/lib/libnccl.so.2"));
}

TEST_F(Packages, CollectivesOfTheSystemAndBesidePyTorch) {
  tree_.write("lib/libnccl.so.2.18.3", "");
  tree_.link("lib/libnccl.so.2", "libnccl.so.2.18.3");
  tree_.write("site/torch/lib/librccl.so", "");
  EXPECT_EQ(find().nccl.value().version.value(), "2.18.3");
  EXPECT_THAT(find().rccl.value().version.missing().detail, HasSubstr("does not have the version"));
}

TEST_F(Packages, TravelAsText) {
  write_torch("'12.4'", "None");
  tree_.write("lib/libnccl.so.2", "");
  const Software before = find();
  const auto after = parse_software(to_text(before));
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after->torch.value().cuda, "12.4");
  EXPECT_EQ(after->torch.value().targets.missing().detail, before.torch.value().targets.missing().detail);
  EXPECT_EQ(after->nccl.value().path, before.nccl.value().path);
  EXPECT_EQ(after->rccl.missing().detail, before.rccl.missing().detail);
  EXPECT_FALSE(parse_software("{"));
  EXPECT_FALSE(parse_software("[]"));
}

TEST(NoSoftware, GivesTheReasonEverywhere) {
  const Software software = no_software("python3 did not answer within 2.7 s");
  EXPECT_EQ(software.torch.missing().detail, "python3 did not answer within 2.7 s");
  EXPECT_EQ(software.nccl.missing().detail, "python3 did not answer within 2.7 s");
  EXPECT_EQ(software.rccl.missing().detail, "python3 did not answer within 2.7 s");
}

TEST_F(Packages, PythonTellsItsFolders) {
  tree_.write("python3", "#!/bin/sh\nprintf '\\n/a\\nrelative\\n/b c\\n'\n");
  std::filesystem::permissions(tree_.path("python3"), std::filesystem::perms::owner_all);
  EXPECT_THAT(python_folders(tree_.path("python3")).value(), ElementsAre("/a", "/b c"));
  EXPECT_THAT(python_folders(tree_.path("nothing")).error().message, HasSubstr("cannot be run"));
}

}  // namespace
}  // namespace remuda::doctor
