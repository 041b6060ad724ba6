#include "base/env.h"

#include <cctype>
#include <cstdlib>
#include <gmock/gmock.h>
#include <set>

namespace remuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class EnvTest : public ::testing::Test {
 protected:
  void TearDown() override { ::unsetenv(env::rank.name); }
  static void set_rank(const char* value) { ::setenv(env::rank.name, value, 1); }
};

TEST_F(EnvTest, GivesTheValueThatIsSet) {
  set_rank("3");
  EXPECT_EQ(env::get(env::rank), "3");
  EXPECT_EQ(env::get_int(env::rank, 0, 7).value(), 3);
}

TEST_F(EnvTest, TellsUnsetFromEmpty) {
  ::unsetenv(env::rank.name);
  EXPECT_EQ(env::get(env::rank), std::nullopt);
  set_rank("");
  EXPECT_EQ(env::get(env::rank), "");
}

TEST_F(EnvTest, TakesBothEndsOfTheRange) {
  set_rank("-1");
  EXPECT_EQ(env::get_int(env::rank, -1, 7).value(), -1);
  set_rank("7");
  EXPECT_EQ(env::get_int(env::rank, -1, 7).value(), 7);
}

TEST_F(EnvTest, RefusesWhatIsNoIntegerInRange) {
  for (const char* wrong : {"", " 1", "1 ", "one", "1.5", "0x1", "8", "-1", "99999999999999999999"}) {
    set_rank(wrong);
    const Result<int> result = env::get_int(env::rank, 0, 7);
    ASSERT_FALSE(result) << wrong;
    EXPECT_EQ(result.error().kind, ErrorKind::usage);
    EXPECT_THAT(result.error().message, AllOf(HasSubstr("RANK is '" + std::string(wrong) + "'"), HasSubstr("0 to 7")));
  }
}

TEST_F(EnvTest, AnUnsetNumberIsAnErrorThatNamesTheVariable) {
  ::unsetenv(env::rank.name);
  const Result<int> result = env::get_int(env::rank, 0, 7);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("RANK"));
}

TEST(EnvList, NamesAreUniqueAndShellLikeAndExplained) {
  std::set<std::string> names;
  for (const env::Variable& variable : env::all()) {
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name;
    EXPECT_NE(std::string(variable.meaning), "");
    for (const char c : std::string(variable.name)) EXPECT_TRUE(std::isupper(c) || c == '_') << variable.name;
  }
}

}  // namespace
}  // namespace remuda
