// What a rank that joins is told, as a peer of another version or of ill will may say it; and how, at the join
// listener.
#include "train/invitation.h"

#include <cstdlib>
#include <functional>
#include <future>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/env.h"
#include "comm/handshake.h"
#include "comm/wire.h"
#include "train/agreement.h"
#include "train/elastic_run.h"
#include "train/labels.h"

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

TEST(Invitation, LetsANewcomerKnowTheRunAsIfItHadBeenThere) {
  const Inheritance inherited = inherited_by_newcomer(example(), 100);
  EXPECT_TRUE(inherited.goes_on());
  ASSERT_EQ(inherited.losses.size(), 1U);
  EXPECT_EQ(to_json(inherited.losses[0]), to_json(example().losses[0]));
  EXPECT_EQ(inherited.kept, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(inherited.began_s, 100 - 12.5);
  EXPECT_EQ(inherited.lost_s, 100);
  EXPECT_EQ(inherited.generation, 2);
  EXPECT_EQ(inherited.left, (std::vector<size_t>{0, 1, Inheritance::kJoins})) << "it comes last";
  ASSERT_EQ(inherited.joins.size(), 2U);
  EXPECT_EQ(to_json(inherited.joins[0]), to_json(example().joins[0]));
  EXPECT_EQ(inherited.joins[1].rank, 3);
  EXPECT_EQ(inherited.joins[1].device, "cpu:0 on other");
  EXPECT_EQ(inherited.joins[1].seconds, 0) << "not yet";
}

TEST(ElasticRanks, CanSpareOneWhereEnoughAreLeftWithItsState) {
  job::TrainJob job{.elastic = {.ranks_lost = 1, .buddy = true}};
  job.devices.resize(3);
  EXPECT_TRUE(can_spare(2, {0, 1, 2}, job));
  EXPECT_FALSE(can_spare(2, {0, 2}, job)) << "another one is lost already";
  job.elastic.ranks_lost = 2;
  EXPECT_TRUE(can_spare(2, {0, 2}, job)) << "of two the first goes on alone";
  EXPECT_FALSE(can_spare(0, {0, 2}, job)) << "and the second does not";
  job.elastic.ranks_lost = 0;
  EXPECT_FALSE(can_spare(2, {0, 1, 2}, job));
  job.elastic = {.ranks_lost = 1};
  EXPECT_FALSE(can_spare(2, {0, 1, 2}, job)) << "its part would be lost";
  job.checkpoint.folder = "kept";
  EXPECT_FALSE(can_spare(2, {0, 1, 2}, job)) << "a checkpoint comes at the end alone";
  job.checkpoint.every_steps = 10;
  EXPECT_TRUE(can_spare(2, {0, 1, 2}, job));
  job.checkpoint = {.folder = "kept", .every_minutes = 0.5};
  EXPECT_TRUE(can_spare(2, {0, 1, 2}, job));
  job.checkpoint.folder = "";
  EXPECT_FALSE(can_spare(2, {0, 1, 2}, job));
}

TEST(ElasticRanks, AreAsManyAsThereHaveBeenButThoseThatMayBeLost) {
  job::TrainJob job{.elastic = {.ranks_lost = 1}};
  job.devices.resize(3);
  EXPECT_EQ(least_ranks(job), 2U);
  job.elastic.ranks_lost = 9;
  EXPECT_EQ(least_ranks(job), 1U) << "one must be there";
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

/// A listener, and one that comes.
class DoorTest : public ::testing::Test {
 protected:
  DoorTest() {
    ::setenv(env::secret.name, kSecret, 1);
    {
      const auto listener = comm::listen_on({"127.0.0.1", 0});
      port_ = comm::local_endpoint(listener->get()).port;
    }
    join_listener_ = JoinListener::open({.master_address = "127.0.0.1",
                                         .master_port = port_,
                                         .secret = kSecret,
                                         .terms = terms_of_join(job_),
                                         .timeout_s = kPatience_s},
                                        events_)
                         .value();
  }
  ~DoorTest() override { ::unsetenv(env::secret.name); }

  /// Whom the run lets in and invites, and who waits then.
  std::future<Result<void>> newcomer() {
    return std::async(std::launch::async, [this]() -> Result<void> {
      REMUDA_ASSIGN(const Newcomer newcomer, Newcomer::ask(job_, "127.0.0.1:" + std::to_string(port_), events_));
      EXPECT_EQ(newcomer.invitation().number, example().number);
      return newcomer.wait_to_be_taken_in(kPatience_s);
    });
  }
  std::optional<Candidate> candidate() {
    for (const double end_s = monotonic_s() + kPatience_s; !join_listener_->has_candidate() && monotonic_s() < end_s;)
      steady_clock().sleep_s(0.01);
    return join_listener_->take();
  }

  static constexpr double kPatience_s = 20;
  static constexpr const char* kSecret = "known to both";
  job::TrainJob job_{.devices = {{.use = "cpu:1"}}};
  const Events events_{-1};
  int port_ = 0;
  std::unique_ptr<JoinListener> join_listener_;
};

TEST_F(DoorTest, TellsOneThatHasBegunWhatBecomesOfIt) {
  const auto outcome = [this](const std::function<void(const Candidate&)>& tell) {
    auto waits = newcomer();
    std::optional<Candidate> in = candidate();
    EXPECT_TRUE(in && in->invite(example()) && in->is_ready(kPatience_s));
    if (in) tell(*in);
    in.reset();
    return waits.get();
  };
  EXPECT_TRUE(outcome([](const Candidate& in) { in.take_in(); }));
  const auto failed = outcome([](const Candidate& in) { in.turn_away(JoinSignal::failed, "another rank could not"); });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::failed);
  EXPECT_EQ(failed.error().message, "the run does not take in this device: another rank could not");
  const auto refused = outcome([](const Candidate& in) { in.turn_away(JoinSignal::refused, "it is too slow"); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
  EXPECT_TRUE(outcome([](const Candidate&) {})) << "rank 0 is lost: the others may have agreed to go on with it";
}

TEST_F(DoorTest, InvitesNobodyWhoHasGone) {
  comm::ConnectOptions options{.rank = 1, .size = 2, .master_port = port_, .secret = kSecret};
  options.terms = terms_of_join(job_);
  options.transport = comm::ConnectOptions::Transport::tcp;
  auto channel = comm::connect(std::move(options));
  ASSERT_TRUE(channel) << channel.error().message;
  ASSERT_TRUE(share_text(**channel, 1, to_text(Applicant{{.use = "cpu:1"}, {}, "name"}), label::kJoin));
  ASSERT_TRUE(exchange_signals(**channel, JoinSignal::here));
  channel->reset();
  const std::optional<Candidate> in = join_listener_->take();
  EXPECT_FALSE(in && in->invite(example()));
}

// What one that has gone has left behind; another one that comes at that time is let in all the same.
TEST_F(DoorTest, LetsNobodyInByHalf) {
  comm::Terms terms = terms_of_join(job_);
  terms.push_back({"encryption", comm::name_of(comm::Encryption::beyond_loopback)});
  terms.push_back({"streams", "1"});
  const auto late = comm::dial({"127.0.0.1", port_}, comm::deadline_after(kPatience_s));
  ASSERT_TRUE(late);
  const auto welcome = comm::authenticate(late->get(), {1, 2, kSecret, terms}, comm::LinkRole::data, "the listener",
                                          comm::deadline_after(kPatience_s));
  ASSERT_FALSE(welcome);
  EXPECT_TRUE(comm::is_there_twice(welcome.error())) << welcome.error().message;
  auto waits = newcomer();
  const auto in = candidate();
  ASSERT_TRUE(in && in->invite(example()) && in->is_ready(kPatience_s));
  in->take_in();
  EXPECT_TRUE(waits.get());
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

TEST(Place, OfAGpuIsSharedOnlyWhereNoCoreIsLeft) {
  const std::vector<job::DeviceSpec> devices{{.use = "cpu:0"}, {.use = "cpu:1"}, {.use = "gpu:0"}, {.use = "cpu:2"}};
  const std::vector<Place> places{{"here", {0, 1}}, {"here", {2, 3}}, {"here", {4, 5}}, {"there", {6}}};
  const auto said = [&](const char* use, std::vector<int> cores, const char* host = "here") {
    return cores_shared(use, {host, std::move(cores)}, devices, places);
  };
  EXPECT_EQ(said("gpu:1", {1, 2, 3}),
            "gpu:1 is fed from cores 1, 2, 3, on which CPU devices of the run compute, and both are slower for that; a "
            "run that begins with all of them leaves a GPU cores of its own");
  EXPECT_EQ(said("gpu:1", {1, 2, 7}), "") << "it has one for itself";
  EXPECT_EQ(said("gpu:1", {4, 5}), "") << "what feeds another GPU gives way";
  EXPECT_EQ(said("gpu:1", {6}), "") << "another host";
  EXPECT_EQ(said("gpu:1", {}), "") << "not bound";
  EXPECT_EQ(said("cpu:3", {0, 1}), "") << "refused, see above";
}

}  // namespace
}  // namespace remuda::train
