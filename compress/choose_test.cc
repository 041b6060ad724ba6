#include "compress/choose.h"

#include <gtest/gtest.h>

namespace remuda::compress {
namespace {

constexpr double kGbit = 1e9 / 8;  // bytes/s

/// 25 M parameters, a step of 0.3 s.
Exchange over(double bytes_per_s) {
  return {.seconds_per_byte = 1 / bytes_per_s, .compute_s = 0.3, .values = 25e6, .low_rank_values = 0.1e6};
}

Packing chosen(const Exchange& exchange) { return choose(predict(exchange)); }

TEST(Choose, NothingIsPackedWhereTheExchangeHides) {
  EXPECT_EQ(chosen(over(100 * kGbit)), Packing::none);
  Exchange slow = over(kGbit);
  slow.compute_s = 30;
  EXPECT_EQ(chosen(slow), Packing::none);
  slow.values = 0;
  EXPECT_EQ(chosen(slow), Packing::none);
}

TEST(Choose, RoundsWhereThatIsEnough) {
  Exchange exchange = over(2 * kGbit);
  exchange.value_bytes = 0;  // as if they were free: 0.2 s of gradients, of which the backward pass hides all
  EXPECT_EQ(chosen(exchange), Packing::none);
  exchange = over(kGbit);
  exchange.value_bytes = 0;  // 0.4 s, of which it hides 0.2
  EXPECT_EQ(chosen(exchange), Packing::bf16);
  exchange.may_round = false;
  EXPECT_EQ(chosen(exchange), Packing::powersgd);
}

TEST(Choose, PacksOverASlowLinkWhatMayBePacked) {
  Exchange exchange = over(kGbit);
  EXPECT_EQ(chosen(exchange), Packing::powersgd) << "1-bit is hardly faster";
  exchange.low_rank_values = 20e6;  // most is no matrix
  EXPECT_EQ(chosen(exchange), Packing::one_bit);
  exchange.may_one_bit = false;
  EXPECT_EQ(chosen(exchange), Packing::bf16) << "it would send nearly as much";
  exchange.may_powersgd = false;
  EXPECT_EQ(chosen(exchange), Packing::bf16);
  exchange.gradient_bytes = 2;
  EXPECT_EQ(predict(exchange).size(), 1u) << "the job rounds already";
}

/// Exactly what no doubt should be about: 0.4 s each for gradients and parameters, 0.2 s of them hidden.
TEST(Choose, StatesTheNumbersThatItChoseBy) {
  Exchange exchange = over(kGbit);
  const auto predictions = predict(exchange);
  ASSERT_EQ(predictions.size(), 4u);
  EXPECT_NEAR(predictions[0].step_s, 0.3 + 0.2 + 0.4, 1e-9);
  EXPECT_NEAR(predictions[1].step_s, 0.3 + 0 + 0.4, 1e-9);
  EXPECT_NEAR(predictions[2].step_s, 0.3 + 0.4e6 / kGbit + 0.15, 1e-9);
  EXPECT_EQ(
      reason(exchange, predictions),
      "ranks add up 125 MB/s, and a step computes 0.3 s and has 100 MB of parameters: it would take 0.9 s with none, "
      "0.7 s with gradients in bf16, 0.453 s with powersgd, 0.475 s with 1-bit");
}

}  // namespace
}  // namespace remuda::compress
