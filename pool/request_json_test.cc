#include "pool/request_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::pool {
namespace {

using ::testing::HasSubstr;

place::Request full_request() {
  place::Request request{.count = 3,
                         .memory_bytes = int64_t{24} << 30,
                         .model = "A100*",
                         .link = place::LinkNeed::nvlink,
                         .any_model = true,
                         .devices = {"gpu:0", "1", "0000:27:00.0"},
                         .share = 0.3,
                         .cpu = true};
  request.capability = *place::Capability::parse("bf16");
  request.where = *place::Where::parse("numaNode == 1 && memory >= 40Gi");
  return request;
}

TEST(RequestJson, ReadsWhatItWrote) {
  for (const place::Request& request : {place::Request{}, full_request()}) {
    const auto json = parse_json(to_line(to_json(request)), "text");
    ASSERT_TRUE(json);
    const auto back = parse_request(*json, "request");
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, request);
  }
}

TEST(RequestJson, TellsRequestsApart) {
  const place::Request one = full_request();
  place::Request other = one;
  EXPECT_EQ(one, other);
  other.where.reset();
  EXPECT_FALSE(one == other);
  other = one;
  other.capability = *place::Capability::parse("fp8");
  EXPECT_FALSE(one == other);
  other = one;
  other.share = 0.31;
  EXPECT_FALSE(one == other);
}

TEST(RequestJson, RefusesWhatIsNoRequest) {
  const auto refusal = [](const char* text) {
    const auto request = parse_request(*parse_json(text, "text"), "request");
    return request ? "nothing" : request.error().message;
  };
  EXPECT_THAT(refusal("[]"), HasSubstr("request must be an object"));
  EXPECT_THAT(refusal("{}"), HasSubstr("request lacks 'count'"));
  EXPECT_THAT(refusal(R"({"count":1,"link":"rope","share":1})"), HasSubstr("request.link is 'rope'"));
  EXPECT_THAT(refusal(R"({"count":0,"link":"any","share":1})"), HasSubstr("0 devices"));
  EXPECT_THAT(refusal(R"({"count":1,"link":"any","share":2})"), HasSubstr("share of 2"));
  EXPECT_THAT(refusal(R"({"count":1,"link":"any","share":1,"where":"memory >"})"), testing::Not("nothing"));
  EXPECT_THAT(refusal(R"({"count":1,"link":"any","share":1,"capability":"magic"})"), testing::Not("nothing"));
  EXPECT_THAT(refusal(R"({"count":1,"link":"any","share":1,"model":"a\u001bb"})"), HasSubstr("control characters"));
}

}  // namespace
}  // namespace remuda::pool
