#include "wire/frame.h"

#include <gtest/gtest.h>

namespace remuda::wire {
namespace {

std::string big_endian(uint32_t length) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(length >> shift & 0xff);
  return bytes;
}

TEST(Frame, BeginsWithItsLength) { EXPECT_EQ(frame_of("{}"), big_endian(2) + "{}"); }

TEST(Frame, IsReadFromPiecesOfAnySize) {
  const std::string bytes = frame_of("first") + frame_of("second, which is longer") + frame_of("3");
  for (size_t step = 1; step <= bytes.size(); ++step) {
    FrameReader reader(64);
    std::vector<std::string> payloads;
    for (size_t at = 0; at < bytes.size(); at += step) {
      reader.add(std::string_view(bytes).substr(at, step));
      for (auto next = reader.next(); next && *next; next = reader.next()) payloads.push_back(**next);
    }
    EXPECT_EQ(payloads, (std::vector<std::string>{"first", "second, which is longer", "3"})) << step;
    EXPECT_EQ(reader.size(), 0U);
  }
}

TEST(Frame, AHalfOneIsNothingYet) {
  FrameReader reader(64);
  reader.add(frame_of("whole").substr(0, 7));
  const auto next = reader.next();
  ASSERT_TRUE(next);
  EXPECT_FALSE(*next);
  EXPECT_EQ(reader.size(), 7U);
}

TEST(Frame, AnEmptyOneAndOneThatIsTooLargeAreRefusedBeforeTheyHaveCome) {
  for (const uint32_t length : {0U, 65U, 0xffffffffU}) {
    FrameReader reader(64);
    reader.add(big_endian(length));
    const auto next = reader.next();
    ASSERT_FALSE(next) << length;
    EXPECT_EQ(next.error().message, "a message has " + std::to_string(length) + " bytes; it must have 1 to 64");
  }
}

}  // namespace
}  // namespace remuda::wire
