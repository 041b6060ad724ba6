// The engine over CPUs and stand-in accelerators together: exact however the batch and the state are divided.
#include <gtest/gtest.h>
#include <random>

#include "train/testing/divided.h"
#include "train/testing/standin/library.h"

namespace remuda::train {
namespace {

using testing::configure_standin;
using testing::Division;
using testing::kEpsilon;
using testing::model_cases;
using testing::ModelCase;
using testing::random_division;
using testing::Setting;
using testing::train_alone;
using testing::train_divided;
using testing::Trained;

class DeviceExactness : public ::testing::TestWithParam<ModelCase> {
 protected:
  ~DeviceExactness() override {
    for (int device = 0; device < testing::kStandinDevices; ++device) configure_standin(device, {});
  }
};

INSTANTIATE_TEST_SUITE_P(Models, DeviceExactness, ::testing::ValuesIn(model_cases()),
                         [](const auto& info) { return info.param.name; });

// 1e-6 relative, float32: see exactness_test.cc. Parameters after one step, and with an epsilon above the gradients'
// rounding: AdamW would make a whole step of what is left of a gradient of 0.
TEST_P(DeviceExactness, GradientAndUpdateOfAnyDivisionAreThoseOfOneDevice) {
  for (int device = 0; device < testing::kStandinDevices; ++device)
    configure_standin(device, {.pool = 3, .random_delay_s = 2e-4, .seed = unsigned(device)});
  std::mt19937 random(17);
  for (const bool groups : {false, true})
    for (const double clip_norm : {0.0, 0.01}) {
      const Setting setting{{.kind = UpdateRule::Kind::adamw, .epsilon = kEpsilon}, groups, clip_norm};
      const Trained expected = train_alone(GetParam(), setting, 1);
      for (int ranks = 1; ranks <= 5; ++ranks) {
        const Division division = random_division(ranks, 1, random);
        SCOPED_TRACE(::testing::PrintToString(division.splits) + ::testing::PrintToString(division.state_shares));
        const Trained trained = train_divided(GetParam(), setting, division);
        ASSERT_FALSE(trained.parameters.empty()) << "the ranks differ, or the step failed";
        EXPECT_LT(testing::relative_error(trained.first_gradient, expected.first_gradient), 1e-6);
        EXPECT_LT(testing::relative_error(trained.parameters, expected.parameters), 1e-6);
      }
    }
}

// What is unrounded is as exact as without rounding; what all compute with is its rounding, and no rank's is another.
TEST_P(DeviceExactness, ParametersThatAreSentRoundedAreKeptUnroundedByTheirOwners) {
  for (int device = 0; device < testing::kStandinDevices; ++device)
    configure_standin(device, {.pool = 3, .random_delay_s = 2e-4, .seed = unsigned(device)});
  std::mt19937 random(23);
  const Setting exact{{.kind = UpdateRule::Kind::adamw, .epsilon = kEpsilon}, true};
  const Trained expected = train_alone(GetParam(), exact, 1);
  for (const torch::ScalarType type : {torch::kBFloat16, torch::kHalf})
    for (int ranks = 1; ranks <= 4; ++ranks) {
      Setting setting = exact;
      setting.sent_as = type;
      const Trained trained = train_divided(GetParam(), setting, random_division(ranks, 1, random));
      ASSERT_FALSE(trained.parameters.empty()) << "the ranks differ, or the step failed";
      EXPECT_LT(testing::relative_error(trained.parameters, expected.parameters), 1e-6);
      for (size_t i = 0; i < trained.sent.size(); ++i)
        EXPECT_TRUE(trained.sent[i].equal(trained.parameters[i].to(type).to(torch::kFloat)));
    }
}

// By the library of the devices' maker, which adds up in another order.
TEST_P(DeviceExactness, BucketsMayGoFromDeviceToDevice) {
  testing::use_standin_library();
  for (int device = 0; device < testing::kStandinDevices; ++device)
    configure_standin(device, {.pool = 3, .random_delay_s = 1e-4, .seed = unsigned(device)});
  std::mt19937 random(29);
  Setting setting{{.kind = UpdateRule::Kind::adamw, .epsilon = kEpsilon}, true, 0.01};
  const Trained expected = train_alone(GetParam(), setting, 1);
  for (int ranks = 2; ranks <= 3; ++ranks) {
    setting.sent_as = ranks == 2 ? torch::kFloat : torch::kBFloat16;
    Division division = random_division(ranks, 1, random);
    division.by_devices = true;
    SCOPED_TRACE(::testing::PrintToString(division.splits) + ::testing::PrintToString(division.state_shares));
    const int calls = comm::standin_library_calls();
    const Trained trained = train_divided(GetParam(), setting, division);
    ASSERT_FALSE(trained.parameters.empty()) << "the ranks differ, or the step failed";
    EXPECT_GT(comm::standin_library_calls(), calls);
    EXPECT_LT(testing::relative_error(trained.first_gradient, expected.first_gradient), 1e-6);
    EXPECT_LT(testing::relative_error(trained.parameters, expected.parameters), 1e-6);
    for (size_t i = 0; i < trained.sent.size(); ++i)
      EXPECT_TRUE(trained.sent[i].equal(trained.parameters[i].to(setting.sent_as).to(torch::kFloat)));
  }
}

// Also to nothing: the norm that clips is that of all gradients each time. 3e-6: three steps.
TEST_P(DeviceExactness, OwnersMayChangeBetweenSteps) {
  testing::use_standin_library();
  for (int device = 0; device < testing::kStandinDevices; ++device)
    configure_standin(device, {.pool = 3, .random_delay_s = 1e-4, .seed = unsigned(device)});
  std::mt19937 random(37);
  const Setting setting{{.kind = UpdateRule::Kind::adamw, .epsilon = kEpsilon}, true, 0.01};
  const Trained expected = train_alone(GetParam(), setting, 3);
  for (const bool by_devices : {false, true}) {
    Division division = random_division(3, 3, random);
    division.by_devices = by_devices;
    division.shares_after = {{1, 0, 2}, {0, 1, 0}};
    const Trained trained = train_divided(GetParam(), setting, division);
    ASSERT_FALSE(trained.parameters.empty()) << "the ranks differ, or the step failed";
    EXPECT_LT(testing::relative_error(trained.parameters, expected.parameters), 3e-6) << by_devices;
  }
}

// The same in one call where parts are equal.
TEST_P(DeviceExactness, PartsOfOneSizeMayGoInOneCall) {
  testing::use_standin_library();
  for (int device = 0; device < testing::kStandinDevices; ++device)
    configure_standin(device, {.pool = 3, .random_delay_s = 1e-4, .seed = unsigned(device)});
  std::mt19937 random(31);
  const Setting setting{{.kind = UpdateRule::Kind::adamw, .epsilon = kEpsilon}, true, 0.01};
  const Trained expected = train_alone(GetParam(), setting, 1);
  for (int ranks = 2; ranks <= 3; ++ranks)
    for (const bool equal_shares : {true, false}) {
      Division division = random_division(ranks, 1, random);
      division.by_devices = division.equal_parts = true;
      division.state_shares.assign(size_t(ranks), 1);
      if (!equal_shares) division.state_shares[0] = 3;
      const int calls = comm::standin_library_calls_of_all_parts(), of_trial = ranks * 2 * 4;
      const Trained trained = train_divided(GetParam(), setting, division);
      ASSERT_FALSE(trained.parameters.empty()) << "the ranks differ, or the step failed";
      EXPECT_EQ(comm::standin_library_calls_of_all_parts() - calls > of_trial, equal_shares);
      EXPECT_LT(testing::relative_error(trained.first_gradient, expected.first_gradient), 1e-6);
      EXPECT_LT(testing::relative_error(trained.parameters, expected.parameters), 1e-6);
    }
}

}  // namespace
}  // namespace remuda::train
