#include "checkpoint/pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"
#include "checkpoint/testing/files.h"

namespace remuda::checkpoint {
namespace {

using testing::HasSubstr;
using weights::DType;

TEST(PieceName, IsReadAsItWasWritten) {
  for (const PieceName& name : {PieceName{"parameter", "layer.0.weight", 0}, PieceName{"state1", "a@b/c", 4096}})
    EXPECT_EQ(parse_piece_name(text_of(name)), name) << text_of(name);
  for (const char* text : {"", "weight", "a/b", "a/b@", "a/b@-1", "a/b@1x", "@1/a", "a/b@99999999999999999999"})
    EXPECT_EQ(parse_piece_name(text), std::nullopt) << text;
}

class PiecesTest : public ::testing::Test {
 protected:
  /// Ten numbers in three pieces of two files.
  PiecesTest() {
    write_pieces(folder_.path("a"), {{"parameter/w@0", {0, 1, 2}}, {"parameter/w@7", {7, 8, 9}}});
    write_pieces(folder_.path("b"), {{"parameter/w@3", {3, 4, 5, 6}}, {"other", {1}}});
    manifest_.files = {describe(folder_.path(), "a"), describe(folder_.path(), "b")};
  }
  std::string read(uint64_t first, uint64_t count, DType type = DType::f32, const std::string& tensor = "w") {
    Pieces pieces = Pieces::open(folder_.path(), manifest_).value();
    std::vector<float> values(count);
    const auto there = pieces.want("parameter", tensor, type, first, std::as_writable_bytes(std::span(values)));
    if (!there) return there.error().message;
    EXPECT_TRUE(pieces.fetch());
    for (uint64_t i = 0; i < count; ++i) EXPECT_EQ(values[i], float(first + i));
    return "";
  }

  const ScratchFolder folder_;
  Manifest manifest_;
};

TEST_F(PiecesTest, AnyRangeIsReadFromWhateverPiecesHoldIt) {
  for (uint64_t first = 0; first < 10; ++first)
    for (uint64_t count = 0; first + count <= 10; ++count) EXPECT_EQ(read(first, count), "");
}

TEST_F(PiecesTest, WhatIsInNoPieceIsNamed) {
  EXPECT_EQ(read(8, 3), "the checkpoint has no element 10 of parameter of w");
  EXPECT_EQ(read(0, 1, DType::f32, "v"), "the checkpoint has no element 0 of parameter of v");
  EXPECT_EQ(read(0, 1, DType::i32), "parameter of w is F32 in the checkpoint, but I32 here");
}

TEST_F(PiecesTest, FilesThatAreMissingOrForeignAreNamed) {
  manifest_.files.push_back({"c"});
  EXPECT_THAT(Pieces::open(folder_.path(), manifest_).error().message, HasSubstr(folder_.path("c")));
  folder_.write("c", "<html></html>");
  manifest_.files.back() = describe(folder_.path(), "c");
  EXPECT_THAT(Pieces::open(folder_.path(), manifest_).error().message, HasSubstr("c is"));
}

// A header could say anything then.
TEST_F(PiecesTest, AFileWhoseHeaderIsDamagedIsNotRead) {
  const std::string text = read_text(folder_.path("b")).value();
  flip_bit(folder_.path("b"), long(text.find("parameter/w@3")) + 12);
  EXPECT_THAT(Pieces::open(folder_.path(), manifest_).error().message, HasSubstr("b is damaged: its sum is"));
}

TEST_F(PiecesTest, ThatOneIsDamagedIsKnownOnceItIsFetched) {
  Pieces pieces = Pieces::open(folder_.path(), manifest_).value();
  flip_bit(folder_.path("b"), -1);
  EXPECT_TRUE(pieces.fetch()) << "of nothing";
  EXPECT_FALSE(pieces.is_damaged());
  pieces.want_compared(1, *pieces.find(1, "other"));
  EXPECT_THAT(pieces.fetch().error().message, HasSubstr("b is damaged: its sum is"));
  EXPECT_TRUE(pieces.is_damaged());
  EXPECT_TRUE(pieces.fetch()) << "of nothing";
  EXPECT_TRUE(pieces.is_damaged()) << "it stays so";
}

}  // namespace
}  // namespace remuda::checkpoint
