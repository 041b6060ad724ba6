#include "data/cifar.h"

#include <array>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"

namespace remuda::data {
namespace {

constexpr size_t kValues = 3072;

/// A record whose values are all `value`.
std::string record10(char label, char value) { return label + std::string(kValues, value); }
std::string record100(char coarse, char fine, char value) {
  return std::string{coarse, fine} + std::string(kValues, value);
}

class CifarTest : public testing::Test {
 protected:
  CifarSet open(const std::string& name, Split split = Split::train) {
    auto set = CifarSet::open(folder_.path(name), split);
    EXPECT_TRUE(set) << (set ? "" : set.error().message);
    return std::move(*set);
  }
  std::string refusal(const std::string& name, Split split = Split::train) {
    const auto set = CifarSet::open(folder_.path(name), split);
    if (set) return "none";
    EXPECT_EQ(set.error().kind, ErrorKind::usage);
    return set.error().message;
  }
  static int value(const CifarSet& set, size_t index) {
    std::vector<uint8_t> values(set.shape().bytes());
    EXPECT_TRUE(set.read(index, values));
    EXPECT_EQ(values.front(), values.back()) << "nothing of the label or of the next record";
    return values.front();
  }

  ScratchFolder folder_;
};

TEST_F(CifarTest, ReadsTheBatchesOfAFolderInOrder) {
  folder_.write("data_batch_2.bin", record10(9, 3));
  folder_.write("data_batch_1.bin", record10(4, 1) + record10(0, 2));
  folder_.write("test_batch.bin", record10(7, 4));
  folder_.write("readme.html", "no images");
  const CifarSet train = open(".");
  ASSERT_EQ(train.size(), 3u);
  EXPECT_EQ(train.shape(), (ImageShape{3, 32, 32}));
  EXPECT_EQ(train.classes(), 10);
  for (const auto& [index, label, values] : {std::array{0, 4, 1}, std::array{1, 0, 2}, std::array{2, 9, 3}}) {
    EXPECT_EQ(train.label(size_t(index)), label);
    EXPECT_EQ(value(train, size_t(index)), values);
  }
  const CifarSet test = open(".", Split::test);
  ASSERT_EQ(test.size(), 1u);
  EXPECT_EQ(test.label(0), 7);
}

TEST_F(CifarTest, HundredClassesHaveTheirFineLabel) {
  folder_.write("train.bin", record100(19, 99, 5) + record100(3, 12, 6));
  folder_.write("test.bin", record100(0, 1, 7));
  const CifarSet train = open(".");
  ASSERT_EQ(train.size(), 2u);
  EXPECT_EQ(train.classes(), 100);
  EXPECT_EQ(train.label(0), 99);
  EXPECT_EQ(train.label(1), 12);
  EXPECT_EQ(value(train, 1), 6);
  EXPECT_EQ(open("test.bin", Split::test).label(0), 1) << "a file by itself";
}

// 3074 records of CIFAR-10 have as many bytes as 3073 of CIFAR-100.
TEST_F(CifarTest, LabelsDecideWhereTheSizeFitsBoth) {
  std::string ten, hundred;
  for (int i = 0; i < 3074; ++i) ten += record10(char(i % 10), char(200));
  for (int i = 0; i < 3073; ++i) hundred += record100(char(i % 20), char(i % 100), char(200));
  folder_.write("ten.bin", ten);
  folder_.write("hundred.bin", hundred);
  EXPECT_EQ(open("ten.bin").classes(), 10);
  EXPECT_EQ(open("hundred.bin").classes(), 100);
}

TEST_F(CifarTest, RefusesWhatIsNone) {
  folder_.write("short.bin", record10(1, 1).substr(1));
  EXPECT_EQ(
      refusal("short.bin"),
      folder_.path("short.bin") +
          " is not a CIFAR file: it has 3072 bytes, neither a multiple of 3073 (CIFAR-10) nor of 3074 (CIFAR-100)");
  folder_.write("empty.bin", "");
  EXPECT_TRUE(refusal("empty.bin").find("it has 0 bytes") != std::string::npos);
  folder_.write("label.bin", record10(9, 1) + record10(10, 1));
  EXPECT_EQ(
      refusal("label.bin"),
      folder_.path("label.bin") + " is not a CIFAR file: the label of record 1 is 10; CIFAR-10 has labels below 10");
  folder_.write("fine.bin", record100(1, 100, 1));
  EXPECT_EQ(
      refusal("fine.bin"),
      folder_.path("fine.bin") + " is not a CIFAR file: the label of record 0 is 100; CIFAR-100 has labels below 100");
}

TEST_F(CifarTest, RefusesAFolderWithoutThem) {
  EXPECT_EQ(refusal("."), folder_.path(".") +
                              " has no CIFAR files to train on (data_batch_1.bin ... of CIFAR-10, train.bin of "
                              "CIFAR-100); those of the \"binary version\" are read");
  folder_.write("data_batch_1.bin", record10(1, 1));
  EXPECT_TRUE(refusal(".", Split::test).find("has no CIFAR files to test with (test_batch.bin") != std::string::npos);
}

TEST_F(CifarTest, RefusesBothKindsInOneFolder) {
  folder_.write("data_batch_1.bin", record10(1, 1));
  folder_.write("data_batch_2.bin", record100(1, 1, 1));
  EXPECT_EQ(refusal("."), folder_.path("./data_batch_2.bin") + " is of CIFAR-100, but " +
                              folder_.path("./data_batch_1.bin") + " of CIFAR-10");
}

}  // namespace
}  // namespace remuda::data
