// What a rank that joins is told, as a peer of another version or of ill will may say it.
#include "train/invitation.h"

#include <gtest/gtest.h>

namespace remuda::train {
namespace {

Invitation example() {
  return {
      .number = 3,
      .members = {.generation = 2, .ranks = {0, 2, 3}, .address = "10.0.0.1", .port = 40000},
      .devices = {{.use = "cpu:0"},
                  {.use = "cpu:1", .slowdown = 2},
                  {.use = "gpu:0", .role = balance::Role::automatic},
                  {.use = "cpu:0 on other", .shared = true}},
      .join = ":29600",
      .resume = true,
      .run_id = "a",
      .run_s = 12.5,
      .kept = {1, 2},
      .losses = {{.rank = 1, .device = "cpu:1", .cause = "killed", .step = 9, .resumed_from = 8, .state = "memory"}},
      .joins = {{.rank = 3, .device = "cpu:0 on other", .failed = "lost", .step = 4, .seconds = 0.5}}};
}

Json example_json() { return *parse_json(to_text(example()), "the example"); }

TEST(Invitation, IsReadAsItWasWritten) {
  const auto read = parse_invitation(to_text(example()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_text(*read), to_text(example()));
  EXPECT_EQ(read->members.ranks, example().members.ranks);
  EXPECT_EQ(read->devices.at(2).role, balance::Role::automatic);
  EXPECT_EQ(read->losses.at(0).state, "memory");
}

TEST(Invitation, IsRefusedWhereItMakesNoSense) {
  const auto refuses = [](const char* key, const Json& value) {
    Json json = example_json();
    json[key] = value;
    return !parse_invitation(to_line(json));
  };
  EXPECT_TRUE(refuses("ranks", {3}));              // who is there?
  EXPECT_TRUE(refuses("ranks", {0, 2}));           // without the one that joins
  EXPECT_TRUE(refuses("ranks", {2, 0, 3}));        // no order
  EXPECT_TRUE(refuses("ranks", {0, 0, 3}));        // twice
  EXPECT_TRUE(refuses("ranks", {-1, 2, 3}));       // no number
  EXPECT_TRUE(refuses("number", 2));               // whose device is the last one?
  EXPECT_TRUE(refuses("devices", Json::array()));  // no devices
  EXPECT_TRUE(refuses("port", 0));
  EXPECT_TRUE(refuses("port", 70000));
  EXPECT_TRUE(refuses("generation", 0));  // that of a run where nobody has come or gone
}

TEST(Invitation, WithAnyFieldMissingOrOfAnotherTypeIsAnErrorAndNothingElse) {
  const Json whole = example_json();
  for (const auto& [key, value] : whole.items()) {
    SCOPED_TRACE(key);
    Json json = whole;
    json.erase(key);
    EXPECT_FALSE(parse_invitation(to_line(json)));
    json[key] = value.is_string() ? Json(1) : Json("x");
    EXPECT_FALSE(parse_invitation(to_line(json)));
  }
}

TEST(Invitation, CutAnywhereOrWithAnyByteChangedIsReadSafely) {
  const std::string whole = to_text(example());
  for (size_t at = 0; at < whole.size(); ++at) {
    EXPECT_FALSE(parse_invitation(whole.substr(0, at))) << at;
    for (const char byte : {'\0', '"', '-', '9', '[', '}', '\xff'}) {
      std::string changed = whole;
      changed[at] = byte;
      const auto read = parse_invitation(changed);
      EXPECT_TRUE(!read || read->devices.size() == size_t(read->members.ranks.back()) + 1) << changed;
    }
  }
}

TEST(Applicant, IsReadAsItWasWrittenOrIsAnError) {
  const std::string whole = to_text(Applicant{{.use = "gpu:1"}, {"id", {2, 3}}, "name"});
  const auto read = parse_applicant(whole);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_text(*read), whole);
  for (size_t at = 0; at < whole.size(); ++at) EXPECT_FALSE(parse_applicant(whole.substr(0, at))) << at;
  for (const char* other :
       {"null", "[]", "{}", R"({"device":{"use":1},"host_name":"","place":{"host":"","cores":[]}})"})
    EXPECT_FALSE(parse_applicant(other)) << other;
}

TEST(Place, HasNoCoreThatTheRunComputesOn) {
  const std::vector<job::DeviceSpec> devices{{.use = "cpu:0"}, {.use = "cpu:1"}, {.use = "gpu:0"}, {.use = "cpu:2"}};
  const std::vector<Place> places{{"here", {0, 1}}, {"here", {2, 3}}, {"here", {4, 5, 6}}, {"there", {6}}};
  const auto refusal = [&](const char* use, std::vector<int> cores, const char* host = "here") {
    return cores_in_use(use, {host, std::move(cores)}, devices, places);
  };
  EXPECT_EQ(refusal("cpu:3", {3}),
            "cpu:3 would compute on core 3, as cpu:1 of the run does, which divides the CPU in another way; give both "
            "the same --cpu-devices");
  EXPECT_NE(refusal("cpu:3", {1, 2}).find("on core 1, as cpu:0"), std::string::npos);
  EXPECT_NE(refusal("cpu:3", {2, 3, 4}).find("on cores 2, 3, as cpu:1"), std::string::npos);
  EXPECT_EQ(refusal("cpu:3", {4, 5}), "") << "what feeds a GPU gives way";
  EXPECT_EQ(refusal("cpu:3", {6}), "") << "another host";
  EXPECT_EQ(refusal("cpu:3", {0}, ""), "") << "of a host that is not known";
  EXPECT_EQ(refusal("cpu:1", {2, 3}), "") << "the same device, where both are shared";
  EXPECT_EQ(refusal("gpu:1", {2, 3}), "") << "it computes elsewhere";
  EXPECT_EQ(refusal("cpu:3", {}), "") << "not bound";
}

}  // namespace
}  // namespace remuda::train
