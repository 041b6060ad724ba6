#include "recorded/import.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "base/testing/scratch_folder.h"

namespace remuda::recorded {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr const char* kMatrix = "# source: a/b#1\n\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\t X \n";

std::string refusal(const Result<Inventory>& inventory) {
  EXPECT_FALSE(inventory);
  if (inventory) return "";
  EXPECT_EQ(inventory.error().kind, ErrorKind::usage);
  EXPECT_EQ(inventory.error().message.find('\n'), std::string::npos);
  return inventory.error().message;
}

TEST(ImportMachine, TakesOurOwnInventories) {
  const Inventory inventory = import_machine(kMatrix, "dir/box.b.txt").value();
  EXPECT_EQ(inventory.host, "box.b");
  EXPECT_EQ(inventory.source, "nvidia-smi topo -m: a/b#1");
  EXPECT_EQ(import_machine(" \n" + to_pretty(to_json(inventory)), "x").value(), inventory);
  EXPECT_THAT(refusal(import_machine("{\"devices\": 1}", "x.json")), HasSubstr("x.json"));
}

TEST(ImportMachine, SaysWhatItExpected) {
  EXPECT_THAT(refusal(import_machine("", "x")),
              StartsWith("x is empty; expected an inventory, or what nvidia-smi topo -m"));
  EXPECT_THAT(refusal(import_machine(" \n\t", "x")), StartsWith("x is empty"));
  EXPECT_THAT(refusal(import_machine("Hello\n", "x")), StartsWith("x has no rows of a link matrix; expected"));
  EXPECT_THAT(refusal(import_machine("<topology/>", "x")), StartsWith("x is XML of another program, with <topology>"));
  EXPECT_THAT(refusal(import_machine(std::string(1000, '\0'), "x")), StartsWith("x has no rows"));
  EXPECT_THAT(refusal(import_machine("", "a\x1b[2J\nb")), StartsWith("a?[2J?b is empty"));
}

class ImportFile : public ::testing::Test {
 protected:
  const ScratchFolder folder_;
};

TEST_F(ImportFile, IsAMachineNamedByTheFile) {
  const Inventory inventory = read_machine_file(folder_.write("box.txt", kMatrix)).value();
  EXPECT_EQ(inventory.host, "box");
  EXPECT_THAT(inventory.devices, SizeIs(2));
}

TEST_F(ImportFile, ThatCannotBeReadIsOneSentence) {
  const std::string path = folder_.path("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(refusal(read_machine_file(path)), "cannot read " + path + ": it is not a regular file");
  EXPECT_EQ(refusal(read_machine_file(folder_.path())),
            "cannot read " + folder_.path() + ": it is a directory, not a file");
  EXPECT_EQ(refusal(read_machine_file("/no/such")), "cannot read /no/such: No such file or directory");
  EXPECT_EQ(refusal(read_machine_file("/dev/zero")), "cannot read /dev/zero: it is not a regular file");
}

TEST_F(ImportFile, ThatIsHugeIsRefused) {
  const std::string path = folder_.write("huge", "");
  std::filesystem::resize_file(path, (64 << 20) + 1);
  EXPECT_EQ(refusal(read_machine_file(path)), "cannot read " + path + ": it is larger than 64.0 MiB");
}

}  // namespace
}  // namespace remuda::recorded
