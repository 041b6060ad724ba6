#include "wire/client.h"

#include <cstring>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include "base/clock.h"
#include "base/testing/scratch_folder.h"
#include "device/fields.h"

namespace remuda::wire {
namespace {

constexpr const char* kOfAnother = "the agent is of another version";

/// An agent that serves one client after another, each with one connection. `versions`: whether each is greeted; one
/// that is not gets an error in place of a greeting, and after that would be answered as any other. It closes a
/// connection after `kAnswers`.
class PlayedAgent {
 public:
  static constexpr int kAnswers = 2;

  PlayedAgent(const std::string& path, std::vector<bool> versions)
      : listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    thread_ = std::thread([this, versions] {
      for (const bool is_same : versions) serve(is_same);
    });
  }
  ~PlayedAgent() {
    ::shutdown(listener_.get(), SHUT_RDWR);  // where it waits for a client that has not come
    thread_.join();
  }

 private:
  void serve(bool is_same) const {
    const Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    FrameReader reader(kLargestRequest);
    if (!client) return;
    for (int answers = 0; answers < kAnswers;) {
      const auto payload = reader.next();
      if (payload && *payload) {
        const auto request = parse_request(**payload);
        ASSERT_TRUE(request);
        const std::string frame = frame_of(text_of(answer_to(*request, is_same)));
        EXPECT_EQ(::send(client.get(), frame.data(), frame.size(), MSG_NOSIGNAL), static_cast<ssize_t>(frame.size()));
        ++answers;
        continue;
      }
      char bytes[4096];
      const ssize_t got = ::recv(client.get(), bytes, sizeof bytes, 0);
      if (got <= 0) return;
      reader.add({bytes, static_cast<size_t>(got)});
    }
  }
  /// Of ten jobs that run, three are on a page, and the one that is asked for is on the first.
  static Page around(const Request& request) {
    constexpr int64_t kJobs = 10, kOnPage = 3;
    Page page;
    const auto add = [&page](int64_t id) {
      page.state.jobs.insert({.id = id, .state = pool::JobState::running});
      page.state.leases.push_back({.job = id, .device = "gpu:0", .share = 0.01});
    };
    if (request.after == 0) add(request.job);
    for (int64_t id = request.after + 1, on_page = 0; id <= kJobs; ++id) {
      if (id == request.job) continue;
      page.has_more = on_page++ == kOnPage;
      if (page.has_more) break;
      add(id);
    }
    return page;
  }
  static Answer answer_to(const Request& request, bool is_same) {
    if (request.ask == Ask::around) return {.id = request.id, .result = to_json(around(request))};
    if (request.ask != Ask::hello) return {.id = request.id, .result = to_json(Page{})};
    if (is_same) return {.id = request.id, .result = fields::write(Greeting{.pool = "/pool"})};
    return {.id = request.id, .error = Error{ErrorKind::unavailable, kOfAnother, -1}};
  }

  Fd listener_;
  std::thread thread_;
};

TEST(Client, IsToldWhenTheAgentIsOfAnotherVersion) {
  const ScratchFolder folder;
  const std::string socket = folder.path("agent.sock");
  const PlayedAgent agent(socket, {false});
  const auto client = Client::connect(socket, "");
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().message, kOfAnother);
  EXPECT_EQ(exit_status(client.error().kind), 5);
}

TEST(Client, AsksNothingOfAnAgentOfAnotherVersionThatTakesThePlaceOfItsOwn) {
  const ScratchFolder folder;
  const std::string socket = folder.path("agent.sock");
  const PlayedAgent agent(socket, {true, false, false});
  const auto client = Client::connect(socket, "");
  ASSERT_TRUE(client) << client.error().message;
  ASSERT_TRUE((*client)->find(1));
  for (int times = 0; times < 2; ++times) {
    const auto found = (*client)->find(1);
    ASSERT_FALSE(found) << "it would read what another version means by its words";
    EXPECT_EQ(found.error().message, kOfAnother);
    EXPECT_FALSE((*client)->may_try_again());
  }
}

TEST(Client, ReadsAllPagesOfWhatRuns) {
  for (const int64_t job : {1, 7, 10}) {
    const ScratchFolder folder;
    const std::string socket = folder.path("agent.sock");
    const PlayedAgent agent(socket, {true, true, true});
    const auto client = Client::connect(socket, "");
    ASSERT_TRUE(client) << client.error().message;
    const auto state = (*client)->read_around(job);
    ASSERT_TRUE(state) << state.error().message;
    ASSERT_EQ(state->jobs.size(), 10U);
    EXPECT_EQ(state->leases.size(), 10U);
    for (int64_t id = 1; id <= 10; ++id) EXPECT_NE(state->find(id), nullptr) << id;
  }
}

TEST(Client, OfOneWhoHasOtherWorkDoesNotWaitForAnAgentThatHangs) {
  const ScratchFolder folder;
  const std::string socket = folder.path("agent.sock");
  const PlayedAgent agent(socket, {});  // it listens, and never looks
  constexpr double kWithin_s = 0.1, kMuch_s = 2;
  const double since_s = monotonic_s();
  const auto client = Client::connect(socket, "", kWithin_s);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().kind, ErrorKind::unavailable);
  EXPECT_LT(monotonic_s() - since_s, kMuch_s);
}

}  // namespace
}  // namespace remuda::wire
