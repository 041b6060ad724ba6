#include "process/tree_scan.h"

#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "process/testing/child_output.h"
#include "process/testing/in_child.h"
#include "process/tree.h"

namespace remuda::process {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAreArray;

TreeScan whole() {
  TreeScan scan;
  while (!scan.advance(10)) {
  }
  return scan;
}

TEST(TreeScan, FindsWhatDescendsFromAProcess) {
  ChildProcess child = family();
  const ProcessId root = process_id(child.pid()).value();
  std::vector<ProcessId> all = all_descendants(root.pid);
  ASSERT_THAT(all, Not(IsEmpty()));
  all.push_back(root);
  const TreeScan scan = whole();
  EXPECT_THAT(scan.family_of({root}), UnorderedElementsAreArray(all));
  EXPECT_THAT(scan.family_of(all), UnorderedElementsAreArray(all)) << "each once";
}

TEST(TreeScan, LooksAtAFewAtATime) {
  TreeScan scan;
  EXPECT_FALSE(scan.advance(1));
  EXPECT_THAT(scan.family_of({own_process_id()}), Not(Contains(own_process_id()))) << "that is not the first one";
  for (int i = 0; i < 1'000'000 && !scan.advance(1); ++i) {
  }
  EXPECT_THAT(scan.family_of({own_process_id()}), Contains(own_process_id()));
}

TEST(TreeScan, LeavesOutWhoHasTheNumberOfOneThatIsGoneAndZombies) {
  ChildProcess child = family(), ended = family();
  ProcessId gone = process_id(child.pid()).value();
  gone.start_ticks -= 1;
  const ProcessId zombie = process_id(ended.pid()).value();
  ended.signal(SIGKILL);
  for (int i = 0; i < 1000 && is_alive(zombie); ++i) ::usleep(10'000);
  EXPECT_THAT(whole().family_of({gone, zombie}), IsEmpty());
}

TEST(TreeScan, SaysWhereItCouldNotLook) {
  EXPECT_FALSE(whole().has_failed());
  const ChildEnd end = in_child([](const Say&) -> std::string {
    const rlimit none{};
    if (::setrlimit(RLIMIT_NOFILE, &none) != 0) return "no limit can be set";
    TreeScan scan;
    if (!scan.advance(10)) return "it goes on for ever";
    return scan.has_failed() ? "failed" : "did not fail";
  });
  EXPECT_EQ(end.said, "failed");
}

}  // namespace
}  // namespace remuda::process
