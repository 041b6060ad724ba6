#include "agent/idle_memory.h"

#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"

namespace remuda::agent {
namespace {

TEST(IdleMemory, IsTheLeastThatWasSeenAlsoByTheNextAgent) {
  const ScratchFolder folder;
  {
    IdleMemory memory(folder.path("idle.json"));
    EXPECT_EQ(memory.of("gpu:0"), std::nullopt);
    memory.note("gpu:0", 500);
    memory.note("gpu:0", 700);
    memory.note("gpu:1", 30);
    memory.note("gpu:0", 400);
  }
  const IdleMemory next(folder.path("idle.json"));
  EXPECT_EQ(next.of("gpu:0"), 400);
  EXPECT_EQ(next.of("gpu:1"), 30);
}

TEST(IdleMemory, OfAnotherBootCountsForNothing) {
  const ScratchFolder folder;
  for (const char* text : {R"({"boot": "another", "bytes": {"gpu:0": 1}})", "[]", "{", R"({"boot": 7, "bytes": []})"}) {
    folder.write("idle.json", text);
    EXPECT_EQ(IdleMemory(folder.path("idle.json")).of("gpu:0"), std::nullopt) << text;
  }
}

TEST(IdleMemory, IsKeptInNoFileWhereThereIsNone) {
  IdleMemory memory;
  memory.note("gpu:0", 5);
  EXPECT_EQ(memory.of("gpu:0"), 5);
}

}  // namespace
}  // namespace remuda::agent
