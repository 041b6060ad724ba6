#include <algorithm>
#include <gmock/gmock.h>

#include "base/file.h"
#include "base/testing/scratch_folder.h"
#include "cli/subcommands.h"
#include "device/inventory.h"

namespace remuda::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr const char* kMatrix = "\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tSYS\t X \n";

class Import : public ::testing::Test {
 protected:
  /// `remuda import` with these arguments; its output is in out_ and notes_ afterwards.
  Result<int> run(const std::vector<std::string>& arguments) {
    Program program;
    add_import(program);
    std::vector<std::string> line{"import"};
    line.insert(line.end(), arguments.begin(), arguments.end());
    std::ranges::reverse(line);
    program.app.parse(line);
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    Result<int> status = program.chosen();
    out_ = ::testing::internal::GetCapturedStdout();
    notes_ = ::testing::internal::GetCapturedStderr();
    return status;
  }

  const ScratchFolder folder_;
  std::string out_, notes_;
};

TEST_F(Import, PrintsAnInventoryAndItsNotes) {
  ASSERT_EQ(run({folder_.write("box.txt", kMatrix)}).value(), 0);
  const Inventory inventory = parse_inventory(out_, "out").value();
  EXPECT_EQ(inventory.host, "box");
  EXPECT_THAT(inventory.devices, SizeIs(2));
  EXPECT_EQ(notes_, "remuda: note: the two directions differ for GPU0-GPU1\n");
}

TEST_F(Import, WritesAFile) {
  ASSERT_EQ(run({folder_.write("box.txt", kMatrix), "-o", folder_.path("out.json")}).value(), 0);
  EXPECT_EQ(out_, "");
  const std::string written = read_text(folder_.path("out.json")).value();
  EXPECT_THAT(parse_inventory(written, "out").value().devices, SizeIs(2));
  ASSERT_EQ(run({folder_.path("out.json")}).value(), 0);
  EXPECT_EQ(out_, written) << "an inventory is imported as it is";
}

TEST_F(Import, LeavesNoFileBehindWhenItFails) {
  const auto status = run({folder_.write("box.txt", "hello\n"), "-o", folder_.path("out.json")});
  ASSERT_FALSE(status);
  EXPECT_EQ(exit_status(status.error().kind), 2);
  EXPECT_THAT(status.error().message, HasSubstr("box.txt has no rows of a link matrix; expected"));
  EXPECT_FALSE(folder_.has("out.json"));
}

TEST_F(Import, RefusesAnOutputThatCannotBeWrittenBeforeItReads) {
  const auto status = run({folder_.path("none.txt"), "-o", folder_.path("no/such/out.json")});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, StartsWith("cannot write"));
}

TEST_F(Import, LeavesOutSerialsUnlessAskedFor) {
  const std::string file =
      folder_.write("box.xml", "<nvidia_smi_log><gpu><serial>1234</serial></gpu></nvidia_smi_log>");
  ASSERT_EQ(run({file}).value(), 0);
  EXPECT_EQ(out_.find("1234"), std::string::npos);
  ASSERT_EQ(run({file, "--with-serials"}).value(), 0);
  EXPECT_THAT(out_, HasSubstr("1234"));
}

}  // namespace
}  // namespace remuda::cli
