#include "weights/writer.h"

#include <csignal>
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/testing/scratch_folder.h"
#include "weights/reader.h"

namespace remuda::weights {
namespace {

using ::testing::IsEmpty;

class WeightsWriter : public ::testing::Test {
 protected:
  Writer create() {
    auto file = PendingFile::create(folder_.path("w"));
    EXPECT_TRUE(file);
    return Writer::create(std::move(*file), {{{"a", DType::u8, {3}}, {"b", DType::f32, {2}}}, {{"steps", "12"}}})
        .value();
  }
  static std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

  const ScratchFolder folder_;
};

TEST_F(WeightsWriter, WritesWhatTheReaderReads) {
  Writer writer = create();
  EXPECT_EQ(writer.header().tensors.at(0).name, "b") << "floats are to stand at multiples of four";
  for (const char* piece : {"flo", "at8bytes", ""}) ASSERT_TRUE(writer.append(bytes(piece)));
  ASSERT_TRUE(writer.commit());
  EXPECT_EQ(folder_.read("w").size(), writer.file_bytes());

  const auto reader = Reader::open(folder_.path("w"));
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader->header(), writer.header());
  std::string text(3, ' ');
  ASSERT_TRUE(reader->read(reader->header().tensors.at(1), 0, std::as_writable_bytes(std::span(text))));
  EXPECT_EQ(text, "tes");
}

TEST_F(WeightsWriter, LeavesNothingUnlessItIsComplete) {
  {
    Writer writer = create();
    ASSERT_TRUE(writer.append(bytes("flo")));
  }
  EXPECT_THAT(folder_.names(), IsEmpty());
}

TEST_F(WeightsWriter, WritingMoreOrLessThanWasAnnouncedIsABug) {
  Writer writer = create();
  ASSERT_TRUE(writer.append(bytes("12345678901")));
  EXPECT_DEATH((void)writer.append(bytes("x")), "no more is written");
  Writer other = create();
  EXPECT_DEATH((void)other.commit(), "all values are written");
}

// In a process of its own, which may write one byte only: as on a disk that is full.
TEST_F(WeightsWriter, FailsAtTheEndWhenAPieceCouldNotBeWritten) {
  const auto fill = [this] {
    std::signal(SIGXFSZ, SIG_IGN);
    Writer writer = create();
    const rlimit one_byte = {1, 1};
    setrlimit(RLIMIT_FSIZE, &one_byte);
    const bool refused = !writer.append(bytes("12345678901")) && !writer.commit();
    std::_Exit(refused && folder_.names().empty() ? 0 : 1);
  };
  EXPECT_EXIT(fill(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace remuda::weights
