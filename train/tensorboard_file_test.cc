#include "train/tensorboard_file.h"

#include <cstring>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"

namespace remuda::train {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST(TfRecord, IsALengthAndTheBytesEachWithItsMaskedSum) {
  EXPECT_EQ(tf_record("abc"), std::string("\x03\0\0\0\0\0\0\0"
                                          "\xb0\x99I\x0e"
                                          "abc"
                                          "nW\xf1!",
                                          8 + 4 + 3 + 4));
}

TEST(EventOf, EncodesWhatTensorBoardReads) {
  EXPECT_EQ(event_of(300, 1.5, std::vector<Scalar>{{"loss", 0.25}}),
            std::string("\x09\0\0\0\0\0\0\xf8\x3f"  // wall_time, a double
                        "\x10\xac\x02"              // step 300
                        "\x2a\x0d"                  // summary of 13 bytes
                        "\x0a\x0b"                  // value of 11 bytes
                        "\x0a\x04loss"
                        "\x15\0\0\x80\x3e",  // simple_value, a float
                        9 + 3 + 2 + 2 + 6 + 5));
  for (const auto& [step, bytes] : {std::pair(127, "\x10\x7f"), std::pair(128, "\x10\x80\x01")})
    EXPECT_EQ(event_of(step, 0, std::vector<Scalar>{{"loss", 0}}).substr(9, std::strlen(bytes)), bytes);
  EXPECT_EQ(event_of(0, 0, {}), std::string("\x09\0\0\0\0\0\0\0\0", 9) + "\x1a\x0d" + "brain.Event:2");
}

TEST(TensorBoardFile, EachRunHasAFileOfItsOwn) {
  const ScratchFolder folder;
  const std::string logs = folder.path("runs/today");
  auto first = TensorBoardFile::create(logs, 1700000000), second = TensorBoardFile::create(logs, 1700000001);
  ASSERT_TRUE(first && second);
  const std::vector<Scalar> loss{{"loss", 1}};
  first->add(1, 1700000000.5, loss);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(logs)) names.push_back(entry.path().filename());
  EXPECT_THAT(names, ::testing::UnorderedElementsAre(HasSubstr("events.out.tfevents.1700000000."),
                                                     HasSubstr("events.out.tfevents.1700000001.")));
  EXPECT_FALSE(TensorBoardFile::create(logs, 1700000000)) << "nobody writes into another's";
  const std::string head = tf_record(event_of(0, 1700000000, {}));
  for (const std::string& name : names)
    EXPECT_EQ(folder.read("runs/today/" + name), name.find("00000.") != std::string::npos
                                                     ? head + tf_record(event_of(1, 1700000000.5, loss))
                                                     : tf_record(event_of(0, 1700000001, {})));
}

TEST(TensorBoardFile, SaysThatItIsGone) {
  const ScratchFolder folder;
  const auto file = TensorBoardFile::create(folder.path("logs"), 1700000000);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->why_ended(), "");
  fs::remove_all(folder.path("logs"));
  EXPECT_THAT(file->why_ended(), ::testing::EndsWith(".remuda: it was removed meanwhile"));
}

TEST(TensorBoardFile, SaysWhyAFolderCannotBeUsed) {
  const ScratchFolder folder;
  folder.write("file", "");
  const auto refused = TensorBoardFile::create(folder.path("file") + "/runs", 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
  EXPECT_THAT(refused.error().message, HasSubstr("cannot make the folder " + folder.path("file") + "/runs"));
}

}  // namespace
}  // namespace remuda::train
