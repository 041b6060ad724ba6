#include "weights/reader.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"
#include "weights/parse_header.h"

namespace remuda::weights {
namespace {

using ::testing::HasSubstr;

std::string length(uint64_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

/// A file with one tensor of three floats, at an address that is no multiple of four.
std::string small_file() {
  const std::string header = R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})" + std::string(2, ' ');
  const std::array<float, 3> values{1, -2, 0.5};
  return length(header.size()) + header + std::string(reinterpret_cast<const char*>(values.data()), sizeof values);
}

class WeightsReader : public ::testing::Test {
 protected:
  /// Why a file with these bytes cannot be read.
  std::string refusal(const std::string& bytes) {
    const std::string path = folder_.write("w", bytes);
    const auto reader = Reader::open(path);
    if (reader) return "none";
    EXPECT_EQ(reader.error().kind, ErrorKind::usage);
    EXPECT_THAT(reader.error().message, ::testing::StartsWith(path));
    return reader.error().message.substr(path.size() + 1);
  }

  const ScratchFolder folder_;
};

TEST_F(WeightsReader, GivesValuesInPiecesWhereverTheyStand) {
  ASSERT_NE((small_file().size() - 12) % 4, 0u);
  const auto reader = Reader::open(folder_.write("w", small_file()));
  ASSERT_TRUE(reader) << reader.error().message;
  const TensorInfo& tensor = reader->header().tensors.at(0);
  EXPECT_EQ(tensor.name, "w");
  std::array<float, 2> last{};
  ASSERT_TRUE(reader->read(tensor, 4, std::as_writable_bytes(std::span(last))));
  EXPECT_THAT(last, ::testing::ElementsAre(-2, 0.5));
}

TEST_F(WeightsReader, NamesAFileThatIsNotThere) {
  const auto reader = Reader::open(folder_.path("absent"));
  ASSERT_FALSE(reader);
  EXPECT_THAT(reader.error().message, HasSubstr(folder_.path("absent") + ": No such file or directory"));
}

TEST_F(WeightsReader, RefusesAFileThatIsCutOffAnywhere) {
  const std::string whole = small_file();
  ASSERT_EQ(refusal(whole), "none");
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_NE(refusal(whole.substr(0, size)), "none") << size;
  EXPECT_THAT(refusal(whole.substr(0, 20)),
              HasSubstr("is a damaged safetensors file: its header has 57 bytes, but the file"));
  EXPECT_THAT(refusal(whole.substr(0, whole.size() - 1)),
              HasSubstr("tensor 'w' stands at bytes 0 to 12, but there are 11"));
  EXPECT_THAT(refusal(whole + "x"), HasSubstr("its last 1 bytes are of no tensor"));
}

TEST_F(WeightsReader, RefusesAHeaderThatIsTooLarge) {
  const std::string path = folder_.write("w", length(kMostHeaderBytes + 1) + "{");
  std::filesystem::resize_file(path, kMostHeaderBytes + 100);  // sparse: it takes no room
  const auto reader = Reader::open(path);
  ASSERT_FALSE(reader);
  EXPECT_THAT(reader.error().message, HasSubstr("is no safetensors file"));
}

TEST_F(WeightsReader, SaysWhatAForeignFileIs) {
  const std::string way = "; weights are read from safetensors files: in Python, safetensors.torch.save_file(";
  EXPECT_THAT(refusal(std::string("PK\x03\x04") + std::string(40, 'x')),
              HasSubstr("is a ZIP archive (torch.save() and NumPy's .npz are)" + way));
  EXPECT_THAT(refusal("\x80\x02}q" + std::string(1, '\0') + "(X\x06" + std::string(30, '\0')),
              HasSubstr("is a Python pickle" + way));
  EXPECT_THAT(refusal("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03."),
              HasSubstr("is a file of an old torch.save()" + way));
  EXPECT_THAT(refusal("<!DOCTYPE html>\n<html><body>404</body></html>\n"), HasSubstr("is an HTML page" + way));
  EXPECT_THAT(refusal("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
              HasSubstr("is a pointer of Git LFS, not the file itself" + way));
  EXPECT_THAT(refusal(""), HasSubstr("is no safetensors file" + way));
  EXPECT_THAT(refusal(std::string(100, '\1')), HasSubstr("is no safetensors file" + way));
  EXPECT_THAT(Reader::open(folder_.path("")).error().message, HasSubstr("it is a directory, not a file"));
}

TEST_F(WeightsReader, SaysThatTheFileHasShrunkSinceItWasOpened) {
  const std::string path = folder_.write("w", small_file());
  const auto reader = Reader::open(path);
  ASSERT_TRUE(reader);
  std::filesystem::resize_file(path, 10);
  std::array<float, 3> values{};
  const auto read = reader->read(reader->header().tensors.at(0), 0, std::as_writable_bytes(std::span(values)));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, path + " has become shorter while it was read");
}

}  // namespace
}  // namespace remuda::weights
