#include "spot/poller.h"

#include <atomic>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

namespace remuda::spot {
namespace {

constexpr int kPatience_ms = 30000;

/// Google Cloud, which says what the test lets it say; empty: it does not answer.
class PollerTest : public testing::Test {
 protected:
  MakeWatch watch() {
    return [this](int) {
      return Watch(Cloud::gcp, [this](const HttpRequest&) -> Result<HttpAnswer> {
        ++asked_;
        const std::lock_guard lock(mutex_);
        if (says_.empty()) return failed("it takes too long");
        return HttpAnswer{200, {}, says_};
      });
    };
  }
  void let_say(const std::string& text) {
    const std::lock_guard lock(mutex_);
    says_ = text;
  }
  /// Waits for it.
  static std::optional<Poller::News> next(Poller& poller) {
    pollfd polled{poller.fd(), POLLIN, 0};
    return ::poll(&polled, 1, kPatience_ms) > 0 ? poller.take() : std::nullopt;
  }
  void let_it_ask(int times) const {
    for (const int until = asked_ + times; asked_ < until;) std::this_thread::yield();
  }

  std::mutex mutex_;
  std::string says_ = "FALSE";
  std::vector<std::string> said_;
  std::atomic<int> asked_ = 0;
};

TEST_F(PollerTest, TellsWhatHasChangedAndOnce) {
  std::optional<Poller> running(
      std::in_place, watch(), [this](const std::string& said) { said_.push_back(said); }, 0.001);
  Poller& poller = *running;
  EXPECT_EQ(next(poller)->notice, std::nullopt);
  let_it_ask(3);
  EXPECT_FALSE(poller.take()) << "nothing has changed";
  let_say("TRUE");
  EXPECT_EQ(next(poller)->notice->sentence, "Google Cloud takes this machine away (preempted)");
  let_say("");
  let_it_ask(3);
  EXPECT_FALSE(poller.take()) << "who says nothing has not changed anything";
  let_say("FALSE");
  EXPECT_EQ(next(poller)->notice, std::nullopt);
  running.reset();
  EXPECT_THAT(said_,
              testing::ElementsAre("Google Cloud takes this machine away (preempted): its devices are drained, and "
                                   "jobs are asked to end",
                                   "it takes too long", "the cloud answers again",
                                   "the cloud does not take this machine away any more"));
}

TEST_F(PollerTest, SaysOnceThatNobodyAnswers) {
  says_ = "";
  {
    Poller poller(watch(), [this](const std::string& sentence) { said_.push_back(sentence); }, 0.001);
    let_it_ask(3);
    let_say("FALSE");
    EXPECT_TRUE(next(poller));
  }
  EXPECT_THAT(said_, testing::ElementsAre("it takes too long", "the cloud answers again"));
}

TEST_F(PollerTest, EndsAtOnceWhileItRests) {
  constexpr double kLong_s = 3600;
  Poller poller(watch(), [](const std::string&) {}, kLong_s);
  EXPECT_TRUE(next(poller));
}

// A network that swallows what is sent there: nobody refuses, and nobody answers.
TEST_F(PollerTest, EndsAtOnceWhileNobodyAnswers) {
  const Fd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(silent.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(silent.get(), 1), 0);
  ASSERT_EQ(::getsockname(silent.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const HostPort server{"127.0.0.1", ntohs(address.sin_port)};
  int asks = 0;
  {
    Poller poller(
        [&](int stop) {
          return Watch({}, [&, stop](const HttpRequest& request) {
            ++asks;
            constexpr double kLong_s = 1000;
            return ask(server, request, kLong_s, stop);
          });
        },
        [this](const std::string& sentence) { said_.push_back(sentence); }, 1);
    pollfd polled{silent.get(), POLLIN, 0};
    ASSERT_GT(::poll(&polled, 1, kPatience_ms), 0) << "it asks";
  }
  EXPECT_GT(asks, 0);
  EXPECT_THAT(said_, testing::IsEmpty()) << "the cloud was not heard out";
}

}  // namespace
}  // namespace remuda::spot
