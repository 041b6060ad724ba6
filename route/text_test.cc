#include "route/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/characters.h"
#include "base/text.h"
#include "route/testing/networks.h"

namespace remuda::route {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string text_of(Network network, double bytes) {
  return plan_text(plan_all_reduce(std::move(network)).value(), bytes);
}

TEST(PlanText, TellsTheBestAndWhy) {
  const std::string text = text_of(two_level({3, 3}, 400, 10, 5), 100 * kMiB);
  EXPECT_THAT(text, HasSubstr("all-reduce of 100.0 MiB over gpu:0-5\n"));
  EXPECT_THAT(text, HasSubstr("  best      islands: 0 1 2 | 3 4 5\n"));
  EXPECT_THAT(text, HasSubstr("  limit     uplink 0 (10.0 GB/s, assumed), which "));
  EXPECT_THAT(text, HasSubstr(" by a ring in the order of the devices\n"));
  EXPECT_THAT(text, HasSubstr(" over these links, where only the devices add up\n"));
  EXPECT_THAT(text, HasSubstr("ROUNDS\n"));
  EXPECT_THAT(text, HasSubstr("BUSIEST LINKS"));
  EXPECT_THAT(text, Not(HasSubstr("not all orders")));
}

TEST(PlanText, LittleIsLimitedByLatency) {
  EXPECT_THAT(text_of(star(4, 10, 5), 8), HasSubstr("limit     latency: 100 % of the time"));
}

TEST(PlanText, SaysWhenOrdersWereLeftOut) {
  EXPECT_THAT(text_of(star(12, 10, 5), kMiB), HasSubstr("not all orders were tried"));
}

TEST(PlanText, SaysWhenTheNaiveOrderCannotBe) {
  Network network = full_mesh(4, 10);
  network.routes[0][1].gbps = network.routes[1][0].gbps = 0;
  const std::string text = text_of(network, kMiB);
  EXPECT_THAT(text, HasSubstr("no ring in the order of the devices"));
  EXPECT_THAT(text, Not(HasSubstr("at least")));
}

TEST(PlanText, Fits80Columns) {
  for (const char* name : {"nv-dgx1-v100-8gpu-4nic", "amd-rccl-16p1h", "nv-mixed-2x5090-3x4090", "nv-8xrtx4090-sys"})
    for (const double bytes : {1.0, 25 * kMiB})
      for (const std::string& line : split(text_of(machine(name), bytes), '\n'))
        EXPECT_LE(characters(line), 80U) << line;
}

TEST(PlanText, Fits80ColumnsForManyDevices) {
  for (const Network& network : {two_level({16, 16}, 400, 10), star(64, 10)})
    for (const double bytes : {1.0, 25 * kMiB})
      for (const std::string& line : split(text_of(network, bytes), '\n')) EXPECT_LE(characters(line), 80U) << line;
}

TEST(PlanText, MarksWhatWasMeasured) {
  Network network = star(4, 10);
  EXPECT_THAT(text_of(network, kMiB), Not(HasSubstr("measured")));
  network.channels[0].measured = true;
  EXPECT_THAT(text_of(network, kMiB), HasSubstr("\n* measured\n"));
}

TEST(DurationText, HasThreeDigits) {
  EXPECT_EQ(duration_text(1.5), "1.5 s");
  EXPECT_EQ(duration_text(0.00321), "3.21 ms");
  EXPECT_EQ(duration_text(12.34e-6), "12.3 us");
  EXPECT_EQ(duration_text(0.99999), "1 s");
  EXPECT_EQ(duration_text(5e-9), "5 ns");
  EXPECT_EQ(duration_text(0), "0 ns");
}

TEST(TransfersText, BeginsAnotherChainWhereOneIsTooLongForALine) {
  constexpr size_t kDevices = 48;
  Round around;
  for (size_t i = 0; i < kDevices; ++i) around.transfers.push_back({i, (i + 1) % kDevices});
  const std::vector<std::string> chains = split(transfers_text(star(kDevices, 10), around), ' ');
  EXPECT_EQ(chains.size(), 3U);
  for (const std::string& chain : chains) EXPECT_LE(characters(chain), 60U) << chain;
}

TEST(TransfersText, JoinsThemToChains) {
  Network network = star(5, 10);
  const auto text = [&](std::vector<Transfer> transfers) { return transfers_text(network, {.transfers = transfers}); };
  EXPECT_EQ(text({{0, 1}, {2, 0}, {1, 2}}), "0>1>2>0");
  EXPECT_EQ(text({{1, 2}, {0, 1}, {3, 4}}), "0>1>2 3>4");
  EXPECT_EQ(text({{0, 1}, {1, 0}, {2, 3}}), "0<>1 2>3");
  EXPECT_EQ(text({{0, 1, 0, 0.5}, {0, 1, 0.5, 1}}), "0>1");
  const Network many = star(64, 10);
  std::vector<Transfer> ring;
  for (size_t i = 0; i < 64; ++i) ring.push_back({i, (i + 1) % 64});
  const std::string chains = transfers_text(many, {.transfers = ring});
  EXPECT_THAT(chains, HasSubstr(">21>22 22>23>"));
  for (const std::string& chain : split(chains, ' ')) EXPECT_LE(characters(chain), 60U);
  network.devices[4] = "cpu:0";
  EXPECT_EQ(text({{0, 4}}), "gpu:0>cpu:0");
}

}  // namespace
}  // namespace remuda::route
