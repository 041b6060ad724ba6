#include "compress/choose.h"

#include <gtest/gtest.h>

namespace remuda::compress {
namespace {

constexpr double kGbit = 1e9 / 8;  // bytes/s

/// 25 M parameters over 1 Gbit/s: 0.3 s of computing, and 0.8 s of sending, of which the backward pass hides 0.2 s.
Exchange slow() {
  return {.step_s = 0.9,
          .wait_s = 0.6,
          .gradient_wait_s = 0.3,
          .data_s = 0.01,
          .pass_s = 0.24,
          .seconds_per_byte = 1 / kGbit,
          .values = 25e6,
          .powersgd_s = 0.15,
          .one_bit_s = 0.2};
}

Packing chosen(const Exchange& exchange) { return choose(predict(exchange)); }

TEST(Choose, NothingIsPackedWhereTheExchangeHides) {
  Exchange exchange = slow();
  exchange.step_s = 0.31;
  exchange.wait_s = 0.01;
  exchange.gradient_wait_s = 0;
  EXPECT_EQ(chosen(exchange), Packing::none);
  EXPECT_NEAR(predict(exchange)[1].step_s, 0.31, 1e-9) << "nothing was waited for that bf16 could save";
  exchange.powersgd_s = exchange.one_bit_s = 0.04;
  EXPECT_EQ(chosen(exchange), Packing::none) << "hardly faster";
}

TEST(Choose, RoundsWhereThatIsEnough) {
  Exchange exchange = slow();
  EXPECT_NEAR(predict(exchange)[1].step_s, 0.9 - 0.2, 1e-9) << "half of their bytes";
  exchange.rounding_s_per_value = 0.01 / exchange.values;
  EXPECT_NEAR(predict(exchange)[1].step_s, 0.9 - 0.2 + 0.01, 1e-9) << "and what it takes to round them";
  exchange.rounding_s_per_value = 0;
  exchange.gradient_wait_s = 0.1;
  EXPECT_NEAR(predict(exchange)[1].step_s, 0.9 - 0.1, 1e-9) << "all that was waited for";
  exchange.powersgd_s = exchange.one_bit_s = 0.6;
  EXPECT_EQ(chosen(exchange), Packing::bf16);
  exchange.may_round = false;
  EXPECT_EQ(chosen(exchange), Packing::none) << "0.85 s is hardly faster";
  exchange.powersgd_s = 0.5;
  EXPECT_EQ(chosen(exchange), Packing::powersgd);
}

TEST(Choose, PacksOverASlowLinkWhatMayBePacked) {
  Exchange exchange = slow();
  EXPECT_EQ(chosen(exchange), Packing::powersgd);
  exchange.powersgd_s = 0.4;
  EXPECT_EQ(chosen(exchange), Packing::one_bit);
  exchange.one_bit_s.reset();
  EXPECT_EQ(chosen(exchange), Packing::bf16) << "powersgd is hardly faster";
  exchange.powersgd_s.reset();
  EXPECT_EQ(chosen(exchange), Packing::bf16);
  exchange.gradient_bytes = 2;
  EXPECT_EQ(predict(exchange).size(), 1u) << "the job rounds already";
}

TEST(Choose, StatesTheNumbersThatItChoseBy) {
  const Exchange exchange = slow();
  const auto predictions = predict(exchange);
  ASSERT_EQ(predictions.size(), 4u);
  EXPECT_EQ(predictions[0].step_s, 0.9) << "measured";
  EXPECT_NEAR(predictions[1].step_s, 0.7, 1e-9);
  EXPECT_NEAR(predictions[2].step_s, 0.4, 1e-9);
  EXPECT_NEAR(predictions[3].step_s, 0.45, 1e-9);
  EXPECT_EQ(reason(exchange, predictions),
            "a step took 0.9 s, 0.6 s of it waiting for the exchange of 100 MB of gradients, which hosts add up at 125 "
            "MB/s; it is expected to take 0.7 s with gradients in bf16, 0.4 s with powersgd, 0.45 s with 1-bit");
}

TEST(Choose, WritesNumbersOfAllSizesWithoutExponents) {
  EXPECT_EQ(seconds_text(12345.6), "12346 s");
  EXPECT_EQ(seconds_text(1.2345), "1.23 s");
  EXPECT_EQ(seconds_text(0.0031), "3.1 ms");
  EXPECT_EQ(seconds_text(1.5e-5), "0.015 ms");
  EXPECT_EQ(seconds_text(0), "0 ms");
  Exchange fast = slow();
  fast.seconds_per_byte = 1e-10;
  EXPECT_NE(reason(fast, predict(fast)).find(" at 10000 MB/s"), std::string::npos);
}

}  // namespace
}  // namespace remuda::compress
