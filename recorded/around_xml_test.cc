#include "recorded/around_xml.h"

#include <gmock/gmock.h>

#include "recorded/xml.h"

namespace remuda::recorded {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// What the parser reads of the name of the only process.
std::string name_in(const std::string& name) {
  const auto around = find_xml("<nvidia_smi_log>\n<process_name>" + name + "</process_name>\n</nvidia_smi_log>\n");
  const auto root = read_xml(around.value().xml, "x");
  EXPECT_TRUE(root) << root.error().message;
  return root ? root->child("process_name")->text : "";
}

TEST(AroundXml, IsWhatIsPrintedBeforeAndAfter) {
  const auto around =
      find_xml("WARNING: one\r\n\n<?xml version=\"1.0\" ?>\n<nvidia_smi_log>\n<gpu/>\n</nvidia_smi_log>\ntwo\n");
  ASSERT_TRUE(around);
  EXPECT_THAT(around->lines, ElementsAre("WARNING: one", "two"));
  EXPECT_EQ(around->further, 0);
  EXPECT_EQ(around->xml, "<?xml version=\"1.0\" ?>\n<nvidia_smi_log>\n<gpu/>\n</nvidia_smi_log>");
}

TEST(AroundXml, MayBeFurtherDocuments) {
  const std::string one = "<?xml version=\"1.0\" ?>\n<nvidia_smi_log>\n</nvidia_smi_log>\n";
  const auto around = find_xml(one + "between\n" + one + one);
  ASSERT_TRUE(around);
  EXPECT_EQ(around->further, 2);
  EXPECT_THAT(around->lines, ElementsAre("between"));
}

TEST(AroundXml, IsFoundBehindAnyNumberOfLines) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "WARNING: infoROM is corrupted\n";
  const auto around = find_xml(text + "<nvidia_smi_log/>");
  ASSERT_TRUE(around);
  ASSERT_THAT(around->lines, SizeIs(17));
  EXPECT_EQ(around->lines.back(), "and 984 lines more");
}

TEST(AroundXml, CommentsAreNoWarnings) {
  const auto around = find_xml("# source: a/b#1\n# more\n<system version=\"1\"></system>");
  ASSERT_TRUE(around);
  EXPECT_EQ(around->comment, "a/b#1");
  EXPECT_THAT(around->lines, IsEmpty());
}

TEST(AroundXml, IsNothingWhereThereIsNoXml) {
  for (const char* text : {"", "\n", "GPU0\tGPU1\n", "a <system \n"}) EXPECT_FALSE(find_xml(text)) << text;
  for (const char* text : {"<", "<a", "<?xml", "<?xml\n", "<nvidia_smi_log", "<a></a"})
    EXPECT_TRUE(find_xml(text)) << text;
}

/// testdata/cases/smi-bytes-in-process-name and what else a program can call itself.
TEST(AroundXml, AProcessMayBeCalledAnything) {
  EXPECT_EQ(name_in("\xff\xfe\xff"), "???");
  EXPECT_EQ(name_in("a\x01\x7f"
                    "b"),
            "a??b");
  EXPECT_EQ(name_in("a&b <c> ]]> &amp; &none; &#0;"), "a&b <c> ]]> & &none; &#0;");
  EXPECT_EQ(name_in("</process_name>"), "</process_name>");
  EXPECT_EQ(name_in("two\nlines"), "two\nlines");
  EXPECT_EQ(name_in(""), "");
}

}  // namespace
}  // namespace remuda::recorded
