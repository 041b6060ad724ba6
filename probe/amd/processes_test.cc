#include "probe/amd/processes.h"

#include <gmock/gmock.h>

#include "base/testing/scratch_folder.h"

namespace remuda::probe::amd {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kProc = "class/kfd/kfd/proc/";

class Processes : public ::testing::Test {
 protected:
  std::vector<Process> users(const std::set<uint64_t>& gpu_ids) {
    return users_of(gpu_ids, read_processes(sysfs_.path(), known_).value());
  }
  void file(const std::string& name, const std::string& text) { sysfs_.write(kProc + name, text); }

  ScratchFolder sysfs_, proc_;
  KnownProcesses known_{proc_.path()};
};

TEST_F(Processes, AreMissingWhereTheDriverShowsNone) {
  EXPECT_THAT(read_processes(sysfs_.path(), known_).missing().detail, HasSubstr("there is no "));
}

TEST_F(Processes, HoldMemoryOrAQueue) {
  file("100/vram_7", "4096\n");
  file("100/vram_8", "0\n");
  file("100/sdma_7", "1\n");
  file("101/vram_7", "0\n");
  file("101/queues/0/gpuid", "7\n");
  file("102/vram_7", "0\n");
  proc_.write("100/cmdline", "train");
  const auto found = users({7});
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].pid, 100);
  EXPECT_EQ(found[0].type, "compute");
  EXPECT_EQ(found[0].command.value(), "train");
  EXPECT_EQ(found[0].memory_bytes.value(), 4096);
  EXPECT_EQ(found[1].pid, 101);
  EXPECT_EQ(found[1].memory_bytes.value(), 0);
  EXPECT_THAT(found[1].user.missing().detail, HasSubstr("outside this pid namespace"));
  EXPECT_THAT(users({8}), IsEmpty());
}

TEST_F(Processes, SumUpOverPartitions) {
  file("100/vram_7", "4096");
  file("100/vram_8", "1000");
  file("100/vram_9", "1");
  EXPECT_EQ(users({7, 8}).at(0).memory_bytes.value(), 5096);
}

TEST_F(Processes, SayWhyTheirMemoryIsNotKnown) {
  file("100/queues/0/gpuid", "7");
  file("100/vram_7", "much");
  EXPECT_THAT(users({7}).at(0).memory_bytes.missing().detail, HasSubstr("vram_7 holds no number"));
}

TEST_F(Processes, SurviveGarbage) {
  file("100/vram_", "1");
  file("100/vram_-7", "1");
  file("100/vram_99999999999999999999", "1");
  file("100/queues/0/gpuid", "-1");
  file("100/queues/x/gpuid", "7");
  file("self/vram_7", "1");
  sysfs_.make_folder(std::string(kProc) + "101/vram_7");
  EXPECT_THAT(users({7}), IsEmpty());
}

}  // namespace
}  // namespace remuda::probe::amd
