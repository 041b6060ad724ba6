#include "measure/memory.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <unistd.h>

#include "base/check.h"
#include "measure/repeat.h"

namespace remuda::measure {
namespace {

constexpr size_t kChainLine = 128;  // two lines at once is what most prefetchers fetch
constexpr size_t kLoadsPerRun = 4096;
constexpr int64_t kLeastBytes = 64 << 20, kMostBytes = 256 << 20;
constexpr int64_t kFloorBytes = 1 << 20;
constexpr int64_t kPartOfMemory = 8;

const uint64_t& entry(std::span<const std::byte> chain, uint64_t line) {
  return *reinterpret_cast<const uint64_t*>(chain.data() + line * kChainLine);
}

}  // namespace

void touch(Team& team, std::span<std::byte> memory) {
  team.run([&](size_t i) {
    const size_t begin = part_begin(memory.size(), i, team.size());
    std::memset(memory.data() + begin, 1, part_begin(memory.size(), i + 1, team.size()) - begin);
  });
}

double copy_gbps(Team& team, std::span<std::byte> to, std::span<const std::byte> from, double seconds) {
  REMUDA_CHECK(to.size() == from.size(), "a copy is as long as what is copied");
  const auto part = [&](size_t i) {
    const size_t begin = part_begin(to.size(), i, team.size());
    std::memcpy(to.data() + begin, from.data() + begin, part_begin(to.size(), i + 1, team.size()) - begin);
  };
  const double each_s = median_s(seconds, [&] { return time_s([&] { team.run(part); }); });
  return static_cast<double>(to.size()) / each_s / 1e9;
}

// next = 5 line + 2731 (mod lines): as 5 is 1 more than a multiple of 4, and 2731 is odd, it passes each line once.
void lay_chain(std::span<std::byte> memory) {
  REMUDA_CHECK(std::has_single_bit(memory.size()) && memory.size() >= 8 * kChainLine, "a chain fills a power of two");
  const uint64_t lines = memory.size() / kChainLine;
  for (uint64_t line = 0; line < lines; ++line) {
    const uint64_t next = (line * 5 + 2731) % lines;
    std::memcpy(memory.data() + line * kChainLine, &next, sizeof next);
  }
}

double load_latency_us(std::span<const std::byte> chain, double seconds) {
  uint64_t line = 0;
  const uint64_t mask = chain.size() / kChainLine - 1;  // what stands in the memory never leads out of it
  const auto run = [&] {
    for (size_t i = 0; i < kLoadsPerRun; ++i) line = entry(chain, line) & mask;
  };
  const double each_s = median_s(seconds, [&] { return time_s(run); }) / kLoadsPerRun;
  REMUDA_CHECK(line <= mask, "the loads are not to be left out");
  return each_s * 1e6;
}

size_t buffer_bytes(size_t devices) {
  const int64_t cache = std::max<int64_t>(::sysconf(_SC_LEVEL3_CACHE_SIZE), 0);
  const int64_t memory = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  const int64_t wanted = std::clamp(4 * cache, kLeastBytes, kMostBytes);
  const int64_t most = std::max(memory / kPartOfMemory / static_cast<int64_t>(2 * devices + 1), kFloorBytes);
  return std::bit_floor(static_cast<size_t>(std::min(wanted, most)));
}

}  // namespace remuda::measure
