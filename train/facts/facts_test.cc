// The questions that a CPU can answer, too, are put to it: some hold there, and some do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "train/device/memory_watch.h"
#include "train/facts/fact.h"

namespace remuda::train::facts {
namespace {

using testing::HasSubstr;

std::vector<Fact> all_facts() {
  std::vector<Fact> all = backward_facts();
  for (const auto& more : {stream_facts(), memory_facts(), collectives_facts()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

Answer ask_cpu(const std::string& name) {
  for (const Fact& fact : all_facts())
    if (fact.name == name) return fact.ask(at::Device(at::kCPU));
  ADD_FAILURE() << "there is no fact " << name;
  return {};
}

TEST(Facts, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Fact& fact : all_facts()) EXPECT_TRUE(names.insert(fact.name).second) << fact.name;
}

TEST(Facts, HooksOfACpuRunOnTheCallersThread) {
  const Answer answer = ask_cpu("hook thread");
  EXPECT_EQ(answer.kind, Answer::Kind::does_not_hold);
  EXPECT_THAT(answer.seen, HasSubstr("the thread that called backward()"));
}

TEST(Facts, AnExceptionLeavesBackward) { EXPECT_EQ(ask_cpu("hook exception").kind, Answer::Kind::holds); }

TEST(Facts, ACallbackComesAfterAllHooks) {
  const Answer answer = ask_cpu("final callback");
  EXPECT_EQ(answer.kind, Answer::Kind::holds);
  EXPECT_EQ(answer.seen, "on the thread that called backward()");
}

TEST(Facts, AGeneratorsStateBringsItsNumbersBack) {
  const Answer answer = ask_cpu("generator");
  EXPECT_EQ(answer.kind, Answer::Kind::holds);
  EXPECT_THAT(answer.seen, HasSubstr("a clone is independent"));
}

TEST(Facts, TheMemoryOfACpuIsCountedOnceThatIsAskedFor) {
  EXPECT_EQ(ask_cpu("counted memory").seen, "no block was reported");
  count_cpu_memory();
  const Answer answer = ask_cpu("counted memory");
  EXPECT_EQ(answer.kind, Answer::Kind::holds) << answer.seen;
}

TEST(Facts, AFailureOfTheCpusAllocatorHasAnotherType) {
  const Answer answer = ask_cpu("out of memory");
  EXPECT_EQ(answer.kind, Answer::Kind::does_not_hold);
  EXPECT_THAT(answer.seen, HasSubstr("DefaultCPUAllocator"));
}

}  // namespace
}  // namespace remuda::train::facts
