#include "wire/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::wire {
namespace {

using testing::HasSubstr;

pool::Job job_of(int64_t id) {
  pool::Job job{.id = id, .user = "ada", .uid = 1000, .command = {"python", "train.py"}};
  job.request.count = 1;
  return job;
}

TEST(Protocol, OfAnotherVersionIsRefusedWithWhatHelps) {
  EXPECT_TRUE(check_protocol(kProtocol));
  const auto older = check_protocol(0), newer = check_protocol(2);
  ASSERT_FALSE(older || newer);
  EXPECT_EQ(older.error().message,
            "the agent of this machine speaks protocol 1, and this program, which is older, 0: use the remuda that is "
            "installed now");
  EXPECT_EQ(newer.error().message,
            "the agent of this machine speaks protocol 1, and this program, which is newer, 2: an administrator starts "
            "the agent that is installed now: systemctl restart remuda-agent");
  EXPECT_EQ(exit_status(newer.error().kind), 5);
}

TEST(Messages, RequestsAreReadAsTheyWereWritten) {
  const std::vector<Request> requests{{.id = "a-1", .ask = Ask::hello, .protocol = 1},
                                      {.id = "a-2", .ask = Ask::read, .job = 7},
                                      {.id = "a-6", .ask = Ask::machine},
                                      {.id = "a-3", .ask = Ask::ended, .job = 100, .at_most = 50},
                                      {.id = "a-4", .ask = Ask::apply, .operation = pool::Cancel{{1, 2}}},
                                      {.id = "a-5", .ask = Ask::apply, .operation = pool::Submit{.job = job_of(0)}}};
  for (const Request& request : requests) {
    const auto read = parse_request(text_of(request));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, request);
  }
}

TEST(Messages, WhatIsNoRequestIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "not JSON"},
      {"[]", "object"},
      {R"({"ask":"read"})", "'id'"},
      {R"({"id":"","ask":"read"})", "1 to 64"},
      {R"({"id":"a b","ask":"read"})", "1 to 64"},
      {R"({"id":"a","ask":"destroy"})", "request.ask"},
      {R"({"id":"a","ask":"read","job":"x"})", "request.job"},
      {R"({"id":"a","ask":"read","job":99999999999999999999})", "request.job must be a whole number"},
      {R"({"id":"a","ask":"apply"})", "operation"},
      {R"({"id":"a","ask":"read","operation":{"operation":"cancel","jobs":[1]}})", "operation"},
      {R"({"id":"a","ask":"apply","operation":{"operation":"cancel"}})", "request.operation"}};
  for (const auto& [text, said] : cases) {
    const auto read = parse_request(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().kind, ErrorKind::usage) << text;
    EXPECT_THAT(read.error().message, HasSubstr(said)) << text;
  }
  const std::string deep = R"({"id":"a","ask":"read","x":)" + std::string(300, '[') + std::string(300, ']') + "}";
  EXPECT_THAT(parse_request(deep).error().message, HasSubstr("nested too deep"));
  EXPECT_FALSE(parse_request(R"({"id":")" + std::string(65, 'a') + R"(","ask":"read"})"));
}

TEST(Messages, AnswersAreReadAsTheyWereWritten) {
  const auto answer = parse_answer(text_of(Answer{.id = "a-1", .result = Json{{"job", 7}}}));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->id, "a-1");
  EXPECT_FALSE(answer->error);
  EXPECT_EQ(answer->result["job"], 7);
  EXPECT_EQ(parse_answer(text_of(Answer{.changed = 9}))->changed, 9);
}

TEST(Messages, AnErrorKeepsItsKindAndLosesWhatATerminalWouldObey) {
  const Error error{ErrorKind::not_now, "gpu:0 is held by \x1b[31mbob\n" + std::string(5000, 'x'), -1};
  const auto answer = parse_answer(text_of(Answer{.id = "a", .error = error, .may_try_again = true}));
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_TRUE(answer->error);
  EXPECT_EQ(answer->error->kind, ErrorKind::not_now);
  EXPECT_THAT(answer->error->message, testing::StartsWith("gpu:0 is held by ?[31mbob?"));
  EXPECT_TRUE(answer->may_try_again);
}

TEST(Messages, APageKeepsJobsLeasesUsageAndDrains) {
  Page page{.state = {.next_job = 9,
                      .jobs = {job_of(3), job_of(8)},
                      .leases = {{3, "gpu:0", 0.5, 10, 20}},
                      .usage = {{"ada", 12.5, 100}},
                      .spent = {},
                      .drains = {{"gpu:1", "broken", "root", 50}},
                      .allocations = {{"gpu:0", "Slurm", "slurm job 7 (ana)", "srun"},
                                      {"gpu:1", "Kubernetes", "pod ml/a", "kubectl", {{"ml", "a", "u-1", "main"}}}}},
            .has_more = true};
  const auto read = parse_page(to_json(page));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->state, page.state);
  EXPECT_TRUE(read->has_more);
  EXPECT_FALSE(parse_page(Json::object()));
  EXPECT_FALSE(parse_page(Json{{"next_job", 1}, {"jobs", {1}}}));
}

}  // namespace
}  // namespace remuda::wire
