#include "balance/role_forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::balance {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

constexpr double kMs = 1e-3, kGibibyte = 1 << 30;
const std::vector<Role> kCompute{Role::compute, Role::compute};
const std::vector<Role> kPreprocess{Role::compute, Role::preprocess};
const std::vector<Role> kState{Role::compute, Role::state};

MeasuredDevice device(double per_sample_ms, double make_ms = 0, Making making = Making::same_cores,
                      double slowdown = 1) {
  return {.compute = {0, per_sample_ms * kMs}, .make_s = make_ms * kMs, .making = making, .slowdown = slowdown};
}

double step_ms(const std::vector<MeasuredDevice>& devices, const std::vector<Role>& roles, int batch = 100) {
  const auto found = forecast(devices, roles, {}, batch);
  return found ? found->step_s / kMs : -1;
}

TEST(RoleForecast, SamplesAreMadeInTurnOnTheSameCoresOrBeside) {
  EXPECT_NEAR(step_ms({device(2, 3, Making::in_turn), device(2, 3, Making::in_turn)}, kCompute), 250, 1e-6);
  EXPECT_NEAR(step_ms({device(2, 3), device(2, 3)}, kCompute), 250, 1e-6);
  EXPECT_NEAR(step_ms({device(2, 3, Making::beside), device(2, 3, Making::beside)}, kCompute), 150, 1e-6);
  EXPECT_NEAR(step_ms({device(2, 1, Making::beside), device(2, 1, Making::beside)}, kCompute), 100, 1e-6);
  EXPECT_NEAR(step_ms({device(8, 3, Making::same_cores, 4), device(8, 3, Making::same_cores, 4)}, kCompute), 400, 1e-6)
      << "it sleeps 6 ms of 8";
}

TEST(RoleForecast, OnLikeCpusPreprocessingGainsNothing) {
  for (const double make_ms : {0.5, 1.0, 4.0}) {
    const std::vector<MeasuredDevice> devices{device(1, make_ms), device(1, make_ms)};
    EXPECT_GE(step_ms(devices, kPreprocess), step_ms(devices, kCompute) - 1e-6) << make_ms;
  }
  EXPECT_NEAR(step_ms({device(1, 4), device(1, 4)}, kPreprocess), 400, 1e-6) << "making is what takes longest";
}

TEST(RoleForecast, ADeviceThatComputesSlowlyAndReadsWellIsWorthMoreForReading) {
  // Without: 1 / 2 ms + 1 / 8 ms samples; with: one each ms.
  const std::vector<MeasuredDevice> devices{device(1, 1), device(8, 1, Making::same_cores, 8)};
  EXPECT_NEAR(step_ms(devices, kCompute), 160, 1);
  EXPECT_NEAR(step_ms(devices, kPreprocess), 100, 1e-6);
}

TEST(RoleForecast, StateElsewhereSavesPiecesWhereMemoryIsShort) {
  MeasuredDevice fast{.compute = {50 * kMs, kMs},
                      .update_s = 10 * kMs,
                      .memory_bytes = 10 * kGibibyte,
                      .room_bytes = 10 * kGibibyte,
                      .held_bytes = 4 * kGibibyte,
                      .sample_bytes = 0.05 * kGibibyte};
  MeasuredDevice slow = fast;
  slow.compute = {500 * kMs, 50 * kMs};
  const std::vector<MeasuredDevice> devices{fast, slow};
  const StateBytes state{4 * kGibibyte, 4 * kGibibyte};
  const auto with = forecast(devices, kState, state, 100), without = forecast(devices, kCompute, state, 100);
  ASSERT_TRUE(with && without);
  EXPECT_THAT(with->state_shares, ElementsAre(0, 1));
  EXPECT_THAT(with->pieces, ElementsAre(1, 1));
  EXPECT_NEAR(with->step_s / kMs, 50 + 100 + 10, 1e-6);
  EXPECT_THAT(without->pieces, ElementsAre(1, 1)) << "the law finds that, too";
  EXPECT_LE(without->step_s, with->step_s);
}

TEST(RoleForecast, WhatFitsNowhereHasNone) {
  MeasuredDevice full{.compute = {0, kMs}, .room_bytes = kGibibyte, .held_bytes = kGibibyte, .sample_bytes = 1};
  EXPECT_FALSE(forecast(std::vector{full, full}, kCompute, {}, 10));
  EXPECT_FALSE(forecast(std::vector{full, MeasuredDevice()}, kCompute, {}, 10)) << "nor was the other measured";
}

TEST(RoleForecast, IsInWholeMicroBatches) {
  const auto found = forecast(std::vector{device(1), device(3)}, kCompute, {}, 64, 16);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->shares, ElementsAre(48, 16));
}

TEST(ProposedRoles, AreThoseOfTheLeastTime) {
  const std::vector<Role> asked{Role::compute, Role::automatic, Role::automatic};
  const MeasuredDevice slow = device(8, 1, Making::same_cores, 8);
  EXPECT_THAT(proposed_roles(std::vector{device(1, 1), slow, slow}, asked, {}, 100),
              ElementsAre(Role::compute, Role::preprocess, Role::compute))
      << "a second one would make what nobody computes";
  EXPECT_THAT(proposed_roles(std::vector{device(1, 1), device(1, 1), device(1, 1)}, asked, {}, 100),
              ElementsAre(Role::compute, Role::compute, Role::compute));
  EXPECT_THAT(proposed_roles(std::vector{device(1, 1), slow}, std::vector(2, Role::automatic), {}, 100),
              ElementsAre(Role::compute, Role::preprocess));
}

TEST(RoleSentence, SaysHowMuchAndWhy) {
  const std::vector<std::string> names{"gpu:0", "cpu:0"};
  const std::vector<MeasuredDevice> devices{device(1, 1), device(8, 1, Making::same_cores, 8)};
  const auto with = forecast(devices, kPreprocess, {}, 100), without = forecast(devices, kCompute, {}, 100);
  EXPECT_EQ(role_sentence(names, kPreprocess, *with, without),
            "With cpu:0 to preprocess, a step is about 38 % shorter than if all devices computed, by what each was "
            "measured to do alone: 100 ms in place of 160 ms (without, cpu:0 would take 20 of 100 samples; to make the "
            "samples of a step takes 100 ms, and to compute them 100 ms).");
  EXPECT_EQ(role_sentence(names, kPreprocess, *with, std::nullopt),
            "Without cpu:0 to preprocess, the batch would not fit in the memory of the devices.");
  const std::vector<MeasuredDevice> like{device(1), device(1)};
  EXPECT_EQ(
      role_sentence(names, kState, *forecast(like, kState, {}, 100), forecast(like, kCompute, {}, 100)),
      "With cpu:0 for state, a step is about 100 % longer than if all devices computed, by what each was measured "
      "to do alone: 100 ms in place of 50 ms (without, cpu:0 would take 50 of 100 samples).");
}

TEST(RoleSentence, ComparesOtherRolesWithThoseThatDevicesHave) {
  const std::vector<std::string> names{"gpu:0", "cpu:0"};
  EXPECT_EQ(better_roles_sentence(names, kPreprocess, {.step_s = 0.05}, {.step_s = 0.1}),
            "With cpu:0 to preprocess, a step would be about 50 % shorter, by what each was measured to do alone: 50 "
            "ms in place of 100 ms.");
}

}  // namespace
}  // namespace remuda::balance
