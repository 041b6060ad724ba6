#include "weights/parse_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

/// What is wrong with a header for so many bytes of tensors.
std::string wrong(const std::string& text, uint64_t data_bytes = 8) {
  const auto header = parse_header(text, data_bytes);
  if (header) return "nothing";
  EXPECT_EQ(header.error().kind, ErrorKind::usage);
  EXPECT_EQ(header.error().message.find('\n'), std::string::npos);
  return header.error().message;
}

std::string entry(const std::string& name, const std::string& type, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + R"(": {"dtype": ")" + type + R"(", "shape": [)" + shape + R"(], "data_offsets": [)" + offsets +
         "]}";
}

TEST(WeightsHeader, SaysWhatTheFileHoldsInTheOrderOfItsBytes) {
  const auto header =
      parse_header(R"({"__metadata__": {"format": "pt", "steps": "7"}, )" + entry("b", "I64", "", "24, 32") + ", " +
                       entry("a", "F32", "2, 3", "0, 24") + ", " + entry("none", "BF16", "0, 9", "24, 24") + "}  ",
                   32);
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_THAT(header->metadata, ElementsAre(Pair("format", "pt"), Pair("steps", "7")));
  EXPECT_THAT(header->tensors,
              ElementsAre(TensorInfo{"a", DType::f32, {2, 3}, 0, 24}, TensorInfo{"none", DType::bf16, {0, 9}, 24, 24},
                          TensorInfo{"b", DType::i64, {}, 24, 32}));
}

TEST(WeightsHeader, MayBeEmpty) {
  EXPECT_EQ(wrong("{}", 0), "nothing");
  EXPECT_EQ(wrong(R"({"__metadata__": {}})", 0), "nothing");
}

TEST(WeightsHeader, MustBeJsonOfTheRightForm) {
  EXPECT_EQ(wrong("{"), "its header is not JSON: error at byte 2");
  EXPECT_EQ(wrong("[]"), "its header is no JSON object");
  EXPECT_EQ(wrong(R"({"a": 1})"), "the entry 'a' is no object");
  EXPECT_EQ(wrong(R"({"a": [1]})"), "the entry 'a' is no object");
  EXPECT_EQ(wrong(R"({"__metadata__": {"steps": 7}})"), "'steps' of __metadata__ is no text");
  EXPECT_EQ(wrong(R"({"__metadata__": {"steps": {}}})"), "'steps' of __metadata__ is no text");
  const std::string form = "tensor 'a' must have a dtype (a text), a shape and two data_offsets (whole numbers)";
  for (const char* tensor :
       {R"({})", R"({"dtype": "F32", "shape": [2]})", R"({"dtype": "F32", "data_offsets": [0, 8]})", R"({"dtype": 32})",
        R"({"dtype": ["F32"]})", R"({"shape": 2})", R"({"shape": [-2]})", R"({"shape": [2.0]})",
        R"({"shape": [99999999999999999999]})", R"({"shape": [[2]]})", R"({"shape": ["2"]})", R"({"shape": {"2": 2}})",
        R"({"data_offsets": [0, 8, 9]})", R"({"dtype": "F32", "shape": [2], "data_offsets": [0]})", R"({"more": 1})"})
    EXPECT_EQ(wrong(std::string("{\"a\": ") + tensor + "}"), form) << tensor;
  EXPECT_EQ(wrong("{" + entry("a", "F33", "2", "0, 8") + "}"), "tensor 'a' has the unknown dtype 'F33'");
}

TEST(WeightsHeader, NamesNothingTwice) {
  const std::string a = entry("a", "F32", "2", "0, 8");
  EXPECT_EQ(wrong("{" + a + ", " + a + "}"), "it holds 'a' twice");
  EXPECT_EQ(wrong(R"({"__metadata__": {"x": "1", "x": "1"}})"), "its __metadata__ holds 'x' twice");
  EXPECT_EQ(wrong(R"({"__metadata__": {}, "__metadata__": {}})"), "it holds '__metadata__' twice");
  EXPECT_EQ(wrong(R"({"a": {"shape": [2], "shape": [2]}})"), "tensor 'a' has shape twice");
}

TEST(WeightsHeader, TensorsStandInsideTheFile) {
  EXPECT_EQ(wrong("{" + entry("a", "F32", "2", "0, 8") + "}"), "nothing");
  EXPECT_EQ(wrong("{" + entry("a", "F32", "2", "1, 9") + "}"), "tensor 'a' stands at bytes 1 to 9, but there are 8");
  EXPECT_EQ(wrong("{" + entry("a", "F32", "2", "8, 0") + "}"), "tensor 'a' stands at bytes 8 to 0, but there are 8");
  EXPECT_THAT(wrong("{" + entry("a", "F32", "2", "18446744073709551608, 18446744073709551615") + "}"),
              HasSubstr("but there are 8"));
}

TEST(WeightsHeader, TypeAndShapeFitTheBytes) {
  EXPECT_EQ(wrong("{" + entry("a", "F16", "2, 1", "0, 8") + "}"),
            "tensor 'a' has 8 bytes, but F16 of shape [2, 1] needs 4");
  EXPECT_EQ(wrong("{" + entry("a", "F64", "", "0, 8") + "}"), "nothing");
  // 2^62 + 2 elements of 4 bytes are 8 bytes modulo 2^64.
  EXPECT_EQ(wrong("{" + entry("a", "F32", "4611686018427387906", "0, 8") + "}"),
            "tensor 'a' has 8 bytes, but F32 of shape [4611686018427387906] needs more than there can be");
  EXPECT_THAT(wrong("{" + entry("a", "F32", "4294967296, 4294967296, 2", "0, 8") + "}"),
              HasSubstr("more than there can be"));
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ", 1";
  EXPECT_EQ(wrong("{" + entry("a", "F32", ones, "0, 8") + "}"), "tensor 'a' has more than 64 dimensions");
}

TEST(WeightsHeader, EachByteIsOfOneTensor) {
  const std::string a = entry("a", "F32", "1", "0, 4");
  EXPECT_EQ(wrong("{" + a + ", " + entry("b", "F32", "1", "4, 8") + "}"), "nothing");
  EXPECT_EQ(wrong("{" + entry("b", "F32", "1", "2, 6") + ", " + a + "}", 6), "tensors 'a' and 'b' overlap");
  EXPECT_EQ(wrong("{" + entry("b", "F32", "1", "0, 4") + ", " + a + "}", 4), "tensors 'a' and 'b' overlap");
  EXPECT_EQ(wrong("{" + entry("b", "F16", "1", "6, 8") + ", " + a + "}"), "2 bytes before tensor 'b' are of no tensor");
  EXPECT_EQ(wrong("{" + a + "}"), "its last 4 bytes are of no tensor");
  EXPECT_EQ(wrong("{}"), "its last 8 bytes are of no tensor");
}

TEST(WeightsHeader, NamesAreFitForATerminal) {
  EXPECT_EQ(wrong("{\"a\\u001b[2J" + std::string(200, 'x') + "\": 1}"),
            "the entry 'a?[2J" + std::string(72, 'x') + "...' is no object");
  EXPECT_THAT(wrong("{\"\xff\": 1}"), HasSubstr("not JSON")) << "no UTF-8";
}

TEST(WeightsHeader, IsWrittenWithWiderTypesFirstAndReadsBackAsItWas) {
  Header header{{{"flag \"1\"\n", DType::boolean, {3}},
                 {"w", DType::f32, {2, 3}},
                 {"steps", DType::i64, {}},
                 {"v", DType::f32, {5}}},
                {{"format", "pt"}}};
  place_tensors(header);
  EXPECT_THAT(
      header.tensors,
      ElementsAre(TensorInfo{"steps", DType::i64, {}, 0, 8}, TensorInfo{"w", DType::f32, {2, 3}, 8, 32},
                  TensorInfo{"v", DType::f32, {5}, 32, 52}, TensorInfo{"flag \"1\"\n", DType::boolean, {3}, 52, 55}));
  const std::string bytes = header_bytes(header);
  EXPECT_EQ(bytes.size() % 8, 0u);
  uint64_t length = 0;
  std::copy_n(bytes.data(), 8, reinterpret_cast<char*>(&length));
  EXPECT_EQ(length, bytes.size() - 8);
  const auto read = parse_header(bytes.substr(8), 55);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, header);
}

}  // namespace
}  // namespace remuda::weights
