#include "cli/import.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <unistd.h>

#include "base/file.h"
#include "device/inventory.h"

namespace remuda {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr const char* kMatrix = "\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tSYS\t X \n";

class Import : public ::testing::Test {
 protected:
  Import() : folder_(::testing::TempDir() + "remuda-cli-import-" + std::to_string(::getpid())) {
    fs::create_directory(folder_);
  }
  ~Import() override { fs::remove_all(folder_); }

  std::string write(const char* name, std::string_view text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  std::string path(const char* name) const { return (folder_ / name).string(); }

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

  const fs::path folder_;
  std::string out_, notes_;
};

TEST_F(Import, PrintsAnInventoryAndItsNotes) {
  ASSERT_EQ(run({write("box.txt", kMatrix)}).value(), 0);
  const Inventory inventory = parse_inventory(out_, "out").value();
  EXPECT_EQ(inventory.host, "box");
  EXPECT_THAT(inventory.devices, SizeIs(2));
  EXPECT_EQ(notes_, "remuda: note: the two directions differ for GPU0-GPU1\n");
}

TEST_F(Import, WritesAFile) {
  ASSERT_EQ(run({write("box.txt", kMatrix), "-o", path("out.json")}).value(), 0);
  EXPECT_EQ(out_, "");
  const std::string written = read_text(path("out.json")).value();
  EXPECT_THAT(parse_inventory(written, "out").value().devices, SizeIs(2));
  ASSERT_EQ(run({path("out.json")}).value(), 0);
  EXPECT_EQ(out_, written) << "an inventory is imported as it is";
}

TEST_F(Import, LeavesNoFileBehindWhenItFails) {
  const auto status = run({write("box.txt", "hello\n"), "-o", path("out.json")});
  ASSERT_FALSE(status);
  EXPECT_EQ(exit_status(status.error().kind), 2);
  EXPECT_THAT(status.error().message, HasSubstr("box.txt has no rows of a link matrix; expected"));
  EXPECT_FALSE(fs::exists(path("out.json")));
}

TEST_F(Import, RefusesAnOutputThatCannotBeWrittenBeforeItReads) {
  const auto status = run({path("none.txt"), "-o", path("no/such/out.json")});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, StartsWith("cannot write"));
}

TEST_F(Import, LeavesOutSerialsUnlessAskedFor) {
  const std::string file = write("box.xml", "<nvidia_smi_log><gpu><serial>1234</serial></gpu></nvidia_smi_log>");
  ASSERT_EQ(run({file}).value(), 0);
  EXPECT_EQ(out_.find("1234"), std::string::npos);
  ASSERT_EQ(run({file, "--with-serials"}).value(), 0);
  EXPECT_THAT(out_, HasSubstr("1234"));
}

}  // namespace
}  // namespace remuda
