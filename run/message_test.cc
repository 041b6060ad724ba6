#include "run/message.h"

#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::run {
namespace {

Channel channel() { return make_channel().value(); }

TEST(Message, ArrivesWhole) {
  const Channel ends = channel();
  ASSERT_TRUE(send(ends.keeper.get(), Message{Message::Kind::waiting, 3, 0, "gpu:0 is held by \"ada\"\n"}));
  ASSERT_TRUE(send(ends.keeper.get(), Message{Message::Kind::ended, 3, 137, ""}));
  const auto first = receive_message(ends.front.get()).value.value();
  EXPECT_EQ(first.kind, Message::Kind::waiting);
  EXPECT_EQ(first.job, 3);
  EXPECT_EQ(first.text, "gpu:0 is held by \"ada\"\n");
  EXPECT_EQ(receive_message(ends.front.get()).value.value().status, 137);
}

TEST(Message, NothingNowIsNotNothingEver) {
  Channel ends = channel();
  EXPECT_FALSE(receive_message(ends.front.get()).value);
  EXPECT_FALSE(receive_message(ends.front.get()).gone);
  send(ends.keeper.get(), Message{});
  ends.keeper.reset();
  EXPECT_TRUE(receive_message(ends.front.get()).value) << "messages sent before the end are received";
  EXPECT_TRUE(receive_message(ends.front.get()).gone);
  EXPECT_FALSE(send(ends.front.get(), ReceivedSignal{SIGTERM, false}));
}

TEST(Message, IsReceivedFromOneThatWentWithoutReadingItsOwn) {
  Channel ends = channel();
  send(ends.front.get(), ReceivedSignal{SIGTERM, false});  // comes as the job ends; nobody reads it
  send(ends.keeper.get(), Message{Message::Kind::ended, 3, 143, ""});
  ends.keeper.reset();
  const auto last = receive_message(ends.front.get()).value;
  ASSERT_TRUE(last);
  EXPECT_EQ(last->status, 143);
  EXPECT_TRUE(receive_message(ends.front.get()).gone);
}

TEST(Message, SignalsGoTheOtherWay) {
  const Channel ends = channel();
  send(ends.front.get(), ReceivedSignal{SIGINT, true});
  const auto news = receive_signal(ends.keeper.get());
  ASSERT_TRUE(news.value);
  EXPECT_EQ(news.value->number, SIGINT);
  EXPECT_TRUE(news.value->from_terminal);
}

TEST(Message, NeverBlocksAndCutsWhatIsTooLong) {
  const Channel ends = channel();
  const Message huge{Message::Kind::note, 1, 0, std::string(1 << 20, 'x')};
  ASSERT_TRUE(send(ends.keeper.get(), huge));
  EXPECT_EQ(receive_message(ends.front.get()).value.value().text, std::string(8192, 'x'));
  int sent = 0;
  while (sent < 100000 && send(ends.keeper.get(), huge)) ++sent;
  EXPECT_LT(sent, 100000);
}

}  // namespace
}  // namespace remuda::run
