#include "spot/cloud.h"

#include <gmock/gmock.h>
#include <map>

namespace remuda::spot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A metadata address with what it answers, by method and path; all else is not there.
class CloudTest : public testing::Test {
 protected:
  Ask ask() {
    return [this](const HttpRequest& request) -> Result<HttpAnswer> {
      asked_.push_back(request.method + " " + request.path);
      headers_ = request.headers;
      if (!is_up_) return failed("it takes too long");
      const auto found = answers_.find(asked_.back());
      return found == answers_.end() ? HttpAnswer{404, {}, ""} : found->second;
    };
  }
  void answer(const std::string& what, int status, const std::string& body, const std::string& flavor = "") {
    answers_[what] = {status, {{"metadata-flavor", flavor}}, body};
  }
  void be_aws() { answer(kToken, 200, "secret-token"); }

  static constexpr const char* kToken = "PUT /latest/api/token";
  static constexpr const char* kAction = "GET /latest/meta-data/spot/instance-action";
  static constexpr const char* kPreempted = "GET /computeMetadata/v1/instance/preempted";
  static constexpr const char* kName = "GET /metadata/instance/compute/name?api-version=2021-02-01&format=text";
  static constexpr const char* kEvents = "GET /metadata/scheduledevents?api-version=2020-07-01";
  bool is_up_ = true;
  std::map<std::string, HttpAnswer> answers_;
  std::vector<std::string> asked_;
  std::vector<std::pair<std::string, std::string>> headers_;
};

TEST_F(CloudTest, AwsIsAskedWithAToken) {
  be_aws();
  Watch watch(Cloud::aws, ask());
  EXPECT_EQ(watch.look().value(), std::nullopt);
  EXPECT_THAT(headers_, ElementsAre(std::pair("X-aws-ec2-metadata-token", "secret-token")));
  answer(kAction, 200, R"({"action": "terminate", "time": "2026-11-25T10:02:00Z"})");
  EXPECT_EQ(watch.look().value()->sentence, "AWS takes this machine away (terminate), not before 2026-11-25T10:02:00Z");
  EXPECT_THAT(asked_, ElementsAre(kToken, kAction, kAction)) << "one token is enough";
}

TEST_F(CloudTest, AnOldTokenOfAwsIsRenewed) {
  be_aws();
  Watch watch(Cloud::aws, ask());
  answer(kAction, 401, "");
  EXPECT_EQ(watch.look().error().message, "AWS does not accept its own token");
  EXPECT_THAT(asked_, ElementsAre(kToken, kAction, kToken, kAction));
  answers_.erase(kAction);
  EXPECT_EQ(watch.look().value(), std::nullopt);
}

TEST_F(CloudTest, GoogleIsAskedWithItsFlavor) {
  answer(kPreempted, 200, "FALSE\n");
  Watch watch(Cloud::gcp, ask());
  EXPECT_EQ(watch.look().value(), std::nullopt);
  EXPECT_THAT(headers_, ElementsAre(std::pair("Metadata-Flavor", "Google")));
  answer(kPreempted, 200, "TRUE");
  EXPECT_EQ(watch.look().value()->sentence, "Google Cloud takes this machine away (preempted)");
}

TEST_F(CloudTest, AzureIsAskedForEventsOfThisMachine) {
  answer(kName, 200, "box-3");
  answer(kEvents, 200, R"({"DocumentIncarnation": 1, "Events": [
    {"EventType": "Preempt", "Resources": ["box-4"], "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT"},
    {"EventType": "Reboot", "Resources": ["box-3"]}, 7, {}]})");
  Watch watch(Cloud::azure, ask());
  EXPECT_EQ(watch.look().value(), std::nullopt) << "one is another machine's, the other does not take it away";
  EXPECT_THAT(headers_, ElementsAre(std::pair("Metadata", "true")));
  answer(kEvents, 200, R"({"Events": [{"EventType": "Preempt", "Resources": ["box-3"], "NotBefore": "later"}]})");
  EXPECT_EQ(watch.look().value()->sentence, "Azure takes this machine away (Preempt), not before later");
}

TEST_F(CloudTest, WhicheverCloudAnswersIsFound) {
  Watch nowhere({}, ask());
  EXPECT_EQ(nowhere.look().error().message, "no cloud's metadata address answers");
  answer(kName, 200, "box-3");
  answer(kEvents, 200, R"({"Events": []})");
  Watch azure({}, ask());
  EXPECT_TRUE(azure.look());
  EXPECT_EQ(azure.cloud(), Cloud::azure);
  answer(kPreempted, 200, "FALSE");
  Watch no_flavor({}, ask());
  EXPECT_TRUE(no_flavor.look());
  EXPECT_EQ(no_flavor.cloud(), Cloud::azure) << "who answers does not call itself Google";
  answer(kPreempted, 200, "FALSE", "Google");
  Watch google({}, ask());
  EXPECT_TRUE(google.look());
  EXPECT_EQ(google.cloud(), Cloud::gcp);
  be_aws();
  Watch aws({}, ask());
  EXPECT_TRUE(aws.look());
  EXPECT_EQ(aws.cloud(), Cloud::aws);
}

TEST_F(CloudTest, WhatItDoesNotSayIsAnError) {
  is_up_ = false;
  for (const Cloud cloud : {Cloud::aws, Cloud::gcp, Cloud::azure})
    EXPECT_EQ(Watch(cloud, ask()).look().error().message, "it takes too long");
  is_up_ = true;
  answer(kPreempted, 500, "TRUE");
  EXPECT_EQ(Watch(Cloud::gcp, ask()).look().error().message, "Google Cloud answers with status 500");
  answer(kToken, 200, "two\nlines");
  EXPECT_EQ(Watch(Cloud::aws, ask()).look().error().message, "AWS's token address gives no token")
      << "it would be a header of the next request";
}

TEST(Notices, OfAnyBytesAreNoticesOrErrors) {
  for (const char* body : {"", "{", "[]", "7", "{}", R"({"action": 3})", R"({"action": ""})"})
    EXPECT_FALSE(aws_notice(body)) << body;
  for (const char* body : {"", "true", "TRUE FALSE", "\xff"}) EXPECT_FALSE(gcp_notice(body)) << body;
  for (const char* body : {"", "[]", "{}", R"({"Events": 3})"}) EXPECT_FALSE(azure_notice(body, "box")) << body;
  EXPECT_EQ(azure_notice(R"({"Events": [{"EventType": "Preempt", "Resources": "box"}]})", "box").value(), std::nullopt);
  const std::string shown =
      aws_notice("{\"action\": \"a\\u001b[31m" + std::string(1000, 'x') + "\"}").value()->sentence;
  EXPECT_LT(shown.size(), 120U);
  EXPECT_THAT(shown, HasSubstr("(a?[31mxxx"));
}

}  // namespace
}  // namespace remuda::spot
