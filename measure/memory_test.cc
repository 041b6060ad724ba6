#include "measure/memory.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <set>
#include <vector>

namespace remuda::measure {
namespace {

constexpr size_t kTiny = 64 << 10;
constexpr double kShort_s = 0.001;

/// `size` bytes, aligned as a chain must be.
struct Memory {
  explicit Memory(size_t size) : words(size / sizeof(uint64_t)) {}
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(words)); }
  std::vector<uint64_t> words;
};

TEST(Touch, WritesEveryByteWhateverTheSize) {
  Team team({});
  for (const size_t size : {size_t{1}, size_t{63}, size_t{1000}, kTiny}) {
    std::vector<std::byte> memory(size);
    touch(team, memory);
    EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte b) { return b != std::byte{}; })) << size;
  }
}

TEST(Copy, CopiesAllOfItAndTellsARate) {
  Memory from(kTiny), to(kTiny);
  for (size_t i = 0; i < from.words.size(); ++i) from.words[i] = i * i;
  Team team({0});
  const double gbps = copy_gbps(team, to.bytes(), from.bytes(), kShort_s);
  EXPECT_GT(gbps, 0);
  EXPECT_TRUE(std::isfinite(gbps));
  EXPECT_EQ(to.words, from.words);
}

TEST(Chain, PassesEachLineOnce) {
  Memory memory(kTiny);
  lay_chain(memory.bytes());
  constexpr size_t kWordsPerLine = 16;
  std::set<uint64_t> seen;
  uint64_t line = 0;
  do {
    seen.insert(line);
    line = memory.words[line * kWordsPerLine];
  } while (!seen.contains(line));
  EXPECT_EQ(line, 0u);
  EXPECT_EQ(seen.size(), memory.words.size() / kWordsPerLine);
}

TEST(Chain, LoadsTakeTime) {
  Memory memory(kTiny);
  lay_chain(memory.bytes());
  const double us = load_latency_us(memory.bytes(), kShort_s);
  EXPECT_GT(us, 0);
  EXPECT_TRUE(std::isfinite(us));
}

TEST(Chain, GarbageDoesNotLeadOutOfTheMemory) {
  Memory memory(kTiny);
  std::ranges::fill(memory.words, ~uint64_t{0});
  EXPECT_GT(load_latency_us(memory.bytes(), kShort_s), 0);
}

TEST(BufferSize, IsAPowerOfTwoThatFitsThisMachine) {
  size_t last = size_t{256} << 20;
  for (const size_t devices : {1, 2, 64, 4096}) {
    const size_t bytes = buffer_bytes(devices);
    EXPECT_TRUE(std::has_single_bit(bytes)) << devices;
    EXPECT_GE(bytes, size_t{1} << 20) << devices;
    EXPECT_LE(bytes, last) << devices;
    last = bytes;
  }
}

}  // namespace
}  // namespace remuda::measure
