#include "process/abstract_socket.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process/process_id.h"
#include "process/testing/in_child.h"
#include "process/user_name.h"

namespace remuda::process {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A name that no other test has.
std::string name_of(const std::string& test) {
  return fmt::format("remuda-test-{}-{}/{}", ::getpid(), own_process_id().start_ticks, test);
}

TEST(AbstractSocket, IsSeenWhileItIsHeld) {
  const std::string name = name_of("seen");
  auto held = hold_name(name);
  ASSERT_TRUE(held) << held.error().message;
  const auto names = held_names(name);
  ASSERT_TRUE(names) << names.error().message;
  ASSERT_THAT(*names, SizeIs(1));
  EXPECT_EQ(names->front().name, name);
  held->reset();
  EXPECT_THAT(*held_names(name), IsEmpty());
}

TEST(AbstractSocket, HasOneHolder) {
  const std::string name = name_of("one");
  const auto held = hold_name(name);
  ASSERT_TRUE(held);
  EXPECT_EQ(hold_name(name).error().message, fmt::format("cannot name a socket '{}': Address already in use", name));
}

TEST(AbstractSocket, IsFreeOnceItsHolderWasKilled) {
  const std::string name = name_of("killed");
  const auto end = in_child([&](const Say& say) -> std::string {
    const auto held = hold_name(name);
    say(held ? "held" : held.error().message);
    ::kill(::getpid(), SIGKILL);
    return "";
  });
  EXPECT_EQ(end.said, "held");
  EXPECT_THAT(*held_names(name), IsEmpty());
}

TEST(AbstractSocket, OfTheLongestNameIsSeenWhole) {
  std::string name = name_of("long/");
  name.resize(kLongestSocketName, 'x');
  const auto held = hold_name(name);
  ASSERT_TRUE(held) << held.error().message;
  ASSERT_THAT(*held_names(name), SizeIs(1));
  EXPECT_FALSE(hold_name(name + "x"));
  EXPECT_FALSE(hold_name(""));
}

TEST(AbstractSocket, NamesItsUserAsTheKernelKnowsThem) {
  const std::string name = name_of("user");
  Fd held;
  const auto end = in_child([&](const Say&) -> std::string {
    if (::setgid(12345) != 0 || ::setuid(12345) != 0) return "skip: the user cannot be changed";
    const auto own = hold_name(name);
    if (!own) return own.error().message;
    const auto names = held_names(name);
    const auto user = names && names->size() == 1 ? names->front().user : std::nullopt;
    return user ? std::to_string(*user) : "skip: the kernel does not name users of sockets";
  });
  if (end.said.starts_with("skip")) GTEST_SKIP() << end.said;
  EXPECT_EQ(end.said, "12345");
}

/// A line of its own in the list of sockets, with the inode of another's socket, by a newline in a name.
TEST(AbstractSocket, CannotBeForgedByANameThatHasANewlineInIt) {
  const std::string victims = name_of("victim"), forged = name_of("forged");
  const auto victim = hold_name(victims);
  ASSERT_TRUE(victim);
  struct stat info{};
  ASSERT_EQ(::fstat(victim->get(), &info), 0);
  const auto forger = hold_name(fmt::format("x\n0 0 0 0 0 0 {} @{}", info.st_ino, forged));
  ASSERT_TRUE(forger) << forger.error().message;
  ASSERT_THAT(*held_names(victims), SizeIs(1));
  if (!held_names(victims)->front().user) GTEST_SKIP() << "the kernel does not answer";
  EXPECT_THAT(*held_names(forged), IsEmpty());
}

TEST(UserName, IsTheNumberOfOneWhoHasNoName) {
  EXPECT_EQ(user_name(0), "root");
  EXPECT_EQ(user_name(1234567), "1234567");
}

}  // namespace
}  // namespace remuda::process
