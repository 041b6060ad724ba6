#include "cli/train/train_outputs.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "base/testing/scratch_folder.h"

namespace remuda::cli {
namespace {

class TrainOutputs : public testing::Test {
 protected:
  std::string refusal(const std::vector<job::Setting>& written) const {
    const auto before = folder_.names();
    auto checked = check_distinct(written, read_);
    if (checked) checked = check_writable(written);
    EXPECT_EQ(folder_.names(), before) << "nothing is left behind";
    if (checked) return "none";
    EXPECT_EQ(checked.error().kind, ErrorKind::usage);
    return checked.error().message;
  }

  const ScratchFolder folder_;
  const std::vector<std::string> read_{folder_.write("job.toml", "job"), "",
                                       folder_.write("in.safetensors", "weights")};
};

TEST_F(TrainOutputs, MayBeNewFilesOrNone) {
  EXPECT_EQ(refusal({{"output.weights", folder_.path("out.safetensors")}}), "none");
}

TEST_F(TrainOutputs, DoNotReplaceWhatIsRead) {
  const std::string in = folder_.path("in.safetensors");
  EXPECT_EQ(refusal({{"output.weights", in}}), "output.weights " + in + " would replace what the run reads");
  std::filesystem::create_symlink("job.toml", folder_.path("link"));
  EXPECT_EQ(refusal({{"--json", folder_.path("link")}}),
            "--json " + folder_.path("link") + " would replace what the run reads");
}

TEST_F(TrainOutputs, DoNotReplaceEachOther) {
  EXPECT_EQ(refusal({{"output.weights", folder_.path("out")}, {"--json", folder_.path("./out")}}),
            "output.weights and --json name the same file");
}

TEST_F(TrainOutputs, DoNotReplaceEachOtherByARelativeName) {
  const std::string file = "no file of the tests";
  const std::vector<job::Setting> written{{"output.weights", std::filesystem::absolute(file)}, {"--json", file}};
  const auto checked = check_distinct(written, read_);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message, "output.weights and --json name the same file");
}

TEST_F(TrainOutputs, WithoutANameAreNoFiles) {
  EXPECT_TRUE(check_distinct(std::vector<job::Setting>{{"--json", ""}, {"--step-times", ""}}, read_));
}

TEST_F(TrainOutputs, HaveAFolder) {
  const std::string file = folder_.path("nowhere/out.safetensors");
  EXPECT_EQ(refusal({{"output.weights", file}}),
            "cannot write " + file + ": there is no folder " + folder_.path("nowhere"));
}

}  // namespace
}  // namespace remuda::cli
