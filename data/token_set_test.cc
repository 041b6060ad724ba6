#include "data/token_set.h"

#include <gmock/gmock.h>
#include <numeric>

#include "base/testing/scratch_folder.h"
#include "data/testing/files.h"

namespace remuda::data {
namespace {

using testing::ElementsAre;

class TokenSetTest : public testing::Test {
 protected:
  Result<TokenSet> open(const std::vector<int>& tokens, int context, int vocabulary = 65536) {
    return TokenSet::open(folder_.write("tokens", token_bytes(tokens)), context, vocabulary);
  }
  std::string error_of(const std::vector<int>& tokens, int context, int vocabulary = 65536) {
    const auto set = open(tokens, context, vocabulary);
    if (set) return "";
    EXPECT_EQ(set.error().kind, ErrorKind::usage);
    return set.error().message;
  }
  ScratchFolder folder_;
  const std::string path_ = folder_.path("tokens");
};

TEST_F(TokenSetTest, CutsWindowsThatShareOneToken) {
  const auto set = open({10, 11, 12, 13, 14, 15, 16, 17}, 3);
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->size(), 2u);
  EXPECT_THAT(set->window(0), ElementsAre(10, 11, 12, 13));
  EXPECT_THAT(set->window(1), ElementsAre(13, 14, 15, 16));
}

TEST_F(TokenSetTest, TakesExactlyOneWindow) {
  const auto set = open({1, 2, 65535}, 2);
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->size(), 1u);
  EXPECT_THAT(set->window(0), ElementsAre(1, 2, 65535));
}

TEST_F(TokenSetTest, RefusesLessThanOneWindow) {
  EXPECT_EQ(error_of({1, 2}, 2), path_ + " holds 2 tokens; one window of data.context = 2 needs 3");
  EXPECT_EQ(error_of({}, 2), path_ + " holds 0 tokens; one window of data.context = 2 needs 3");
}

TEST_F(TokenSetTest, RefusesATokenOutsideTheVocabulary) {
  EXPECT_EQ(error_of({1, 2, 3, 300, 400}, 2, 256), path_ + " holds token 300 at position 3; model.vocabulary is 256");
  EXPECT_EQ(error_of({1, 2, 256}, 2, 256), path_ + " holds token 256 at position 2; model.vocabulary is 256");
  EXPECT_EQ(error_of({1, 2, 255}, 2, 256), "");
}

TEST_F(TokenSetTest, ChecksTokensAfterTheLastWholeWindow) {
  EXPECT_EQ(error_of({1, 2, 3, 9}, 2, 9), path_ + " holds token 9 at position 3; model.vocabulary is 9");
}

TEST_F(TokenSetTest, RefusesHalfATokenAtTheEnd) {
  const auto set = TokenSet::open(folder_.write("tokens", "12345"), 1, 65536);
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().message, path_ + " has 5 bytes, an odd number; tokens are uint16, two bytes each");
}

TEST_F(TokenSetTest, RefusesAMissingFile) {
  const auto set = TokenSet::open(folder_.path("none"), 1, 10);
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().message, "cannot read " + folder_.path("none") + ": No such file or directory");
}

TEST_F(TokenSetTest, OutlivesAMove) {
  std::vector<int> tokens(100000);
  std::iota(tokens.begin(), tokens.end(), 0);
  for (int& token : tokens) token %= 1000;
  auto set = open(tokens, 64, 1000);
  ASSERT_TRUE(set) << set.error().message;
  const TokenSet moved = std::move(*set);
  ASSERT_EQ(moved.size(), 1562u);
  EXPECT_EQ(moved.window(1561).back(), 1562 * 64 % 1000);
}

}  // namespace
}  // namespace remuda::data
