#include "agent/user_names.h"

#include <atomic>
#include <future>
#include <gtest/gtest.h>
#include <poll.h>
#include <string>
#include <thread>

namespace remuda::agent {
namespace {

bool comes(const UserNames& names) {
  pollfd polled{names.fd(), POLLIN, 0};
  return ::poll(&polled, 1, 10000) == 1;
}

std::optional<std::string> name_in(UserNames& names, int uid, double now_s) {
  const auto user = names.find(uid, now_s);
  return user ? std::optional(user->name) : std::nullopt;
}

TEST(UserNames, ComeFromAThreadAndAreKept) {
  std::atomic<int> asked = 0;
  UserNames names([&](int uid) {
    ++asked;
    return Account{{"user" + std::to_string(uid), {"gpu"}}, uid};
  });
  EXPECT_EQ(name_in(names, 7, 0), std::nullopt);
  ASSERT_TRUE(comes(names));
  names.clear();
  EXPECT_EQ(name_in(names, 7, 1), "user7");
  EXPECT_EQ(name_in(names, 7, 500), "user7");
  EXPECT_EQ(names.find(7, 500)->groups, std::vector<std::string>{"gpu"});
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(name_in(names, 7, 1000), "user7") << "an old one is looked up anew, and is right meanwhile";
  ASSERT_TRUE(comes(names));
  EXPECT_EQ(asked, 2);
}

TEST(UserNames, ALookUpThatFailsTakesNoName) {
  std::atomic<int> asked = 0;
  UserNames names(
      [&](int uid) { return ++asked == 1 ? Account{{"ada", {"gpu"}}, uid} : Account{{std::to_string(uid), {}}, uid}; });
  EXPECT_EQ(name_in(names, 7, 0), std::nullopt);
  ASSERT_TRUE(comes(names));
  names.clear();
  EXPECT_EQ(name_in(names, 7, 1), "ada");
  EXPECT_EQ(name_in(names, 7, 700), "ada");
  ASSERT_TRUE(comes(names));
  names.clear();
  EXPECT_EQ(name_in(names, 7, 701), "ada");
  EXPECT_EQ(names.find(7, 702)->groups, std::vector<std::string>{"gpu"});
  EXPECT_EQ(name_in(names, 7, 765), "ada");
  ASSERT_TRUE(comes(names)) << "and is tried again soon";
}

TEST(UserNames, OneThatCannotBeToldIsAskedForAgainSoon) {
  std::atomic<int> asked = 0;
  UserNames names([&](int uid) {
    return ++asked == 1 ? Account{{std::to_string(uid), {}, /*is_known=*/false}, uid} : Account{{"ada", {}}, uid};
  });
  EXPECT_EQ(name_in(names, 7, 0), std::nullopt);
  ASSERT_TRUE(comes(names));
  names.clear();
  EXPECT_FALSE(names.find(7, 1)->is_known);
  EXPECT_EQ(name_in(names, 7, 62), "7");
  ASSERT_TRUE(comes(names));
  EXPECT_EQ(name_in(names, 7, 63), "ada");
  EXPECT_TRUE(names.find(7, 63)->is_known);
}

TEST(UserNames, AServerThatDoesNotAnswerDelaysNobodyElse) {
  auto gate = std::make_shared<std::promise<void>>();
  {
    UserNames names([opened = gate->get_future().share()](int uid) {
      opened.wait();
      return Account{{"user" + std::to_string(uid), {"gpu"}}, uid};
    });
    EXPECT_EQ(name_in(names, 7, 0), std::nullopt);
    EXPECT_EQ(name_in(names, 7, 4.9), std::nullopt);
    EXPECT_EQ(name_in(names, 7, 5), "7") << "the number stands for it";
    EXPECT_FALSE(names.find(7, 5)->is_known);
    EXPECT_EQ(name_in(names, 8, 5), std::nullopt);
    gate->set_value();
    ASSERT_TRUE(comes(names));
    while (name_in(names, 7, 6) != "user7") std::this_thread::yield();
    EXPECT_TRUE(names.find(7, 6)->is_known);
  }
}

TEST(UserNames, EndsWithinALookUp) {
  std::promise<void> gate;
  UserNames names([opened = gate.get_future().share()](int) {
    opened.wait();
    return Account();
  });
  EXPECT_EQ(name_in(names, 1, 0), std::nullopt);
  gate.set_value();
}

}  // namespace
}  // namespace remuda::agent
