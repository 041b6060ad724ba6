#include "probe/sysfs.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "base/testing/scratch_folder.h"
#include "device/device.h"

namespace remuda::probe::sysfs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(SysfsRead, GivesTheTextWithoutWhiteSpaceAroundIt) {
  const ScratchFolder tree;
  tree.write("name", "  two\nlines \n\n");
  EXPECT_EQ(read(tree.path("name")), Reading<std::string>("two\nlines"));
  EXPECT_EQ(read_word(tree.path("name")), Reading<std::string>("two?lines"));
}

TEST(SysfsRead, SaysWhichFileIsNotThere) {
  const auto reading = read("/no/such/file");
  ASSERT_FALSE(reading.has_value());
  EXPECT_EQ(reading.missing(), (Missing{MissingReason::unsupported, "there is no /no/such/file"}));
}

TEST(SysfsRead, RefusesWhatIsNoFileAndWhatWouldMakeItWait) {
  const ScratchFolder tree;
  tree.make_folder("folder");
  EXPECT_THAT(read(tree.path("folder")).missing().detail, HasSubstr("folder is not a regular file"));
  ASSERT_EQ(::mkfifo(tree.path("fifo").c_str(), 0600), 0);
  EXPECT_THAT(read(tree.path("fifo")).missing().detail, HasSubstr("fifo is not a regular file"));
}

TEST(SysfsRead, RefusesAHugeFile) {
  const ScratchFolder tree;
  tree.write("most", std::string(kMaxBytes, 'x'));
  tree.write("huge", std::string(kMaxBytes + 1, 'x'));
  EXPECT_TRUE(read(tree.path("most")).has_value());
  EXPECT_THAT(read(tree.path("huge")).missing().detail, HasSubstr("huge is larger than 65536 bytes"));
}

TEST(SysfsRead, TellsAKernelThatRefusesFromAFileThatIsGone) {
  // Reading a process's memory at address 0 is an input error for every user.
  const auto lost = read("/proc/self/mem");
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.missing().reason, MissingReason::lost);
  EXPECT_THAT(lost.missing().detail, HasSubstr("/proc/self/mem no longer answers: Input/output error"));
}

TEST(SysfsRead, CallsAnEmptyWordMissing) {
  const ScratchFolder tree;
  tree.write("empty", "\n");
  EXPECT_THAT(read_word(tree.path("empty")).missing().detail, HasSubstr("empty is empty"));
}

TEST(SysfsInteger, IsAllOfTheFileAndWithinItsBounds) {
  const ScratchFolder tree;
  tree.write("number", "42\n");
  tree.write("words", "42 watts");
  tree.write("negative", "-1");
  tree.write("large", "99999999999999999999");
  EXPECT_EQ(read_integer(tree.path("number")), Reading<int64_t>(42));
  EXPECT_THAT(read_integer(tree.path("number"), 0, 41).missing().detail, HasSubstr("holds 42, which cannot be"));
  EXPECT_THAT(read_integer(tree.path("words")).missing().detail, HasSubstr("words holds no number"));
  EXPECT_FALSE(read_integer(tree.path("negative")).has_value());
  EXPECT_EQ(read_integer(tree.path("negative"), -1), Reading<int64_t>(-1));
  EXPECT_FALSE(read_integer(tree.path("large")).has_value());
  EXPECT_FALSE(read_integer(tree.path("none")).has_value());
}

TEST(SysfsFolder, ListsNamesInOrder) {
  const ScratchFolder tree;
  for (const char* name : {"node10", "node2", "node", "nodex", "node-1", "node99999999999", ".hidden", "other"})
    tree.write(name, "");
  EXPECT_THAT(entries(tree.path()), SizeIs(7));
  EXPECT_THAT(numbered(tree.path(), "node"), ElementsAre(2, 10));
  EXPECT_THAT(entries(tree.path("none")), IsEmpty());
}

TEST(SysfsFolder, SeesNoMoreThanItsBound) {
  const ScratchFolder tree;
  for (const char* name : {"a", "b", "c"}) tree.make_folder(name);
  EXPECT_THAT(entries(tree.path()), SizeIs(3));
  EXPECT_THAT(entries(tree.path(), 2), SizeIs(2));
}

TEST(SysfsLink, IsFollowedOrNamed) {
  const ScratchFolder tree;
  tree.write("target/file", "");
  tree.link("there", tree.path("target"));
  tree.link("dangling", tree.path("drivers/vfio-pci"));
  EXPECT_EQ(real_path(tree.path("there")), tree.path("target"));
  EXPECT_EQ(real_path(tree.path("dangling")), "");
  EXPECT_EQ(link_name(tree.path("dangling")), "vfio-pci");
  EXPECT_EQ(link_name(tree.path("target")), "");
}

TEST(SysfsIndexList, IsReadAsTheKernelWritesIt) {
  EXPECT_THAT(index_list("0-2,5,8-9").value(), ElementsAre(0, 1, 2, 5, 8, 9));
  EXPECT_THAT(index_list("").value(), IsEmpty());
  for (const char* wrong : {"a", "1-", "-1", "3-1", "1,1", "5,2-9", "0-65536", "1;2", "0-4294967296", ","})
    EXPECT_EQ(index_list(wrong), std::nullopt) << wrong;
}

TEST(FillUnread, LeavesWhatWasRead) {
  Device device;
  device.pci = "0000:27:00.0";
  device.serial = Missing{MissingReason::denied, "not for you"};
  FillUnread fill{{MissingReason::no_driver, "why"}};
  Device::fields(device, fill);
  EXPECT_EQ(device.pci.value(), "0000:27:00.0");
  EXPECT_EQ(device.serial.missing().detail, "not for you");
  EXPECT_EQ(device.status.busy.missing().detail, "why");
  EXPECT_EQ(device.minor.missing().reason, MissingReason::no_driver);
}

}  // namespace
}  // namespace remuda::probe::sysfs
