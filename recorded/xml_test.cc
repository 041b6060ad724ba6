#include "recorded/xml.h"

#include <gmock/gmock.h>

namespace remuda::recorded {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::string refusal(const std::string& text) {
  const auto root = read_xml(text, "a.xml");
  EXPECT_FALSE(root) << text.substr(0, 80);
  return root ? "" : root.error().message;
}

TEST(Xml, IsATree) {
  const Element root =
      read_xml(
          "<?xml version=\"1.0\" ?>\n<!DOCTYPE a SYSTEM \"x.dtd\">\n<a k=\"v\"><b><c>one</c></b><b>t&lt;wo</b></a>\n",
          "a.xml")
          .value();
  EXPECT_EQ(root.name, "a");
  EXPECT_EQ(root.attribute("k"), "v");
  EXPECT_EQ(root.attribute("none"), "");
  ASSERT_THAT(root.children, SizeIs(2));
  EXPECT_EQ(root.child("b/c")->text, "one");
  EXPECT_EQ(root.children[1].text, "t<wo");
  EXPECT_EQ(root.child("b/d"), nullptr);
  EXPECT_EQ(root.child("b/c/d"), nullptr);
}

TEST(Xml, WhatFollowsTheRootIsNotRead) {
  EXPECT_EQ(read_xml("<a/>\nWARNING: infoROM is corrupted\n", "a.xml").value().name, "a");
}

TEST(Xml, ThatIsWrongIsOneSentenceWithALine) {
  EXPECT_EQ(refusal("<a>\n<b></a>"), "a.xml is not XML that can be read: line 2: mismatched tag");
  for (const char* wrong : {"<", "<a", "<a>", "<a></b>", "x", "<a b=c/>", "<a>&nothing;</a>", "<a>\xff</a>"})
    EXPECT_THAT(refusal(wrong), AllOf(StartsWith("a.xml is not XML"), HasSubstr("line 1"))) << wrong;
}

TEST(Xml, GrowsNoEntities) {
  EXPECT_THAT(refusal("<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>"),
              HasSubstr("declarations inside a file are not read"));
  EXPECT_THAT(refusal("<!DOCTYPE a [<!ENTITY x SYSTEM \"/etc/passwd\">]><a>&x;</a>"), HasSubstr("not read"));
}

std::string nested(size_t depth) {
  std::string text;
  for (size_t i = 0; i < depth; ++i) text += "<a>";
  for (size_t i = 0; i < depth; ++i) text += "</a>";
  return text;
}

TEST(Xml, IsBounded) {
  EXPECT_TRUE(read_xml(nested(64), "a.xml"));
  EXPECT_THAT(refusal(nested(65)), HasSubstr("elements nest deeper than 64"));
  std::string many = "<a";
  for (int i = 0; i < 65; ++i) many += " k" + std::to_string(i) + "=''";
  EXPECT_THAT(refusal(many + "/>"), HasSubstr("more than 64 attributes"));
  EXPECT_EQ(read_xml("<a>" + std::string(10000, 'x') + "</a>", "a.xml").value().text.size(), 4096U);
  std::string flood = "<a>";
  for (int i = 0; i < 200'000; ++i) flood += "<b/>";
  EXPECT_THAT(refusal(flood + "</a>"), HasSubstr("more than 200000 elements"));
}

}  // namespace
}  // namespace remuda::recorded
