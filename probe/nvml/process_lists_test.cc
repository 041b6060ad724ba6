#include "probe/nvml/process_lists.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

#include "device/packed.h"

namespace remuda::probe::nvml {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Process process(int pid, double busy = 0) { return {.pid = pid, .type = "compute", .command = "train", .busy = busy}; }

std::vector<Process> processes(const std::vector<int>& pids) {
  std::vector<Process> list;
  for (const int pid : pids) list.push_back(process(pid));
  return list;
}

std::vector<Process> changed(std::vector<Process> list, const std::vector<Stretch>& stretches) {
  EXPECT_TRUE(change(list, stretches));
  return list;
}

TEST(ProcessChanges, OfAListThatIsTheSameAreItsLength) {
  EXPECT_THAT(changes(processes({1, 2, 3}), processes({1, 2, 3})), ElementsAre(Stretch{.stay = 3}));
  EXPECT_THAT(changes({}, {}), IsEmpty());
}

TEST(ProcessChanges, AreWhatComesWhatGoesAndWhatIsAnother) {
  const auto before = processes({1, 2, 3, 5, 8}), now = processes({1, 3, 5, 7, 8});
  EXPECT_THAT(changes(before, now),
              ElementsAre(Stretch{.stay = 1, .go = 1}, Stretch{.stay = 2, .come = {process(7)}}, Stretch{.stay = 1}));
  auto busy = before;
  busy[4] = process(8, 0.5);
  EXPECT_THAT(changes(before, busy), ElementsAre(Stretch{.stay = 4, .go = 1, .come = {process(8, 0.5)}}));
}

TEST(ProcessChanges, MakeTheNewListOfTheOldOne) {
  std::minstd_rand random(1);
  std::vector<Process> before;
  for (int step = 0; step < 2000; ++step) {
    std::vector<Process> now;
    for (int pid = 1; pid <= 12; ++pid)
      if (random() % 3) now.push_back(process(pid, random() % 4 ? 0.25 : 0.5));
    if (step % 50 == 0) std::ranges::shuffle(now, random);  // no driver's list is, but nothing rests on that
    ASSERT_EQ(changed(before, changes(before, now)), now) << step;
    before = std::move(now);
  }
}

TEST(ProcessChanges, OfAnotherListAreRefused) {
  auto list = processes({1, 2, 3});
  EXPECT_FALSE(change(list, {{.stay = 4}}));
  EXPECT_FALSE(change(list, {}));
  list = processes({1, 2, 3});
  EXPECT_FALSE(change(list, {{.stay = 1, .go = 3}}));
  list = processes({1, 2, 3});
  EXPECT_FALSE(change(list, {{.stay = 1, .go = static_cast<size_t>(-1)}, {.stay = 2}}));
  list = processes({1, 2, 3});
  EXPECT_FALSE(change(list, {{.stay = 1, .go = 1}})) << "the third is forgotten";
}

TEST(ProcessChanges, MakeNoListThatIsTooLong) {
  std::vector<Process> list(fields::kLongestList);
  EXPECT_FALSE(change(list, {{.stay = list.size(), .come = {process(1)}}}));
}

Device device(const std::vector<int>& pids) {
  Device gpu;
  gpu.status.processes = processes(pids);
  return gpu;
}

TEST(ProcessLists, ArriveAsTheyWere) {
  Device unread;
  unread.status.processes = Missing{MissingReason::denied, "this user may not read it"};
  ProcessLists child, parent;
  for (const std::vector<Device>& devices : std::vector<std::vector<Device>>{{device({1, 2}), unread},
                                                                             {device({1, 2}), device({3})},
                                                                             {unread, device({3, 4}), device({})},
                                                                             {device({1})},
                                                                             {device({1}), device({3, 4})},
                                                                             {}}) {
    std::vector<Device> sent = devices;
    const std::string line = packed::write(child.take(sent));
    EXPECT_TRUE(sent.empty() || sent[0].status.processes.value_or({}).empty()) << "they go as changes only";
    ASSERT_TRUE(parent.put(packed::read<ProcessLists::Changes>(line).value(), sent));
    EXPECT_EQ(sent, devices);
  }
}

TEST(ProcessLists, OfAsManyDevicesAsThereAre) {
  std::vector<Device> devices{device({1})};
  ProcessLists child, parent;
  EXPECT_FALSE(parent.put({}, devices));
  EXPECT_FALSE(ProcessLists().put({{{.stay = 1}}}, devices)) << "it has none yet";
}

}  // namespace
}  // namespace remuda::probe::nvml
