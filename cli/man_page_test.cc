#include "cli/man_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::cli {
namespace {

using testing::HasSubstr;

class ManPage : public testing::Test {
 protected:
  ManPage() : list_(*app_.add_subcommand("list", "Show things")) {
    list_.add_flag("--json", json_, "Print \\n as it is");
    list_.add_option("-o,--out", out_, "Write there");
    list_.add_option("FILE", file_, "What to read")->required();
    list_.footer("Examples:\n  list .hidden");
  }
  CLI::App app_{"Does things", "tool"};
  CLI::App& list_;
  bool json_ = false;
  std::string out_, file_;
};

TEST_F(ManPage, OfTheProgramNamesItsSubcommands) {
  const std::string page = man_page(app_);
  EXPECT_THAT(page, testing::StartsWith(".TH tool 1 "));
  EXPECT_THAT(page, HasSubstr("tool \\- Does things"));
  EXPECT_THAT(page, HasSubstr("\\fBtool\\-list(1)\\fR\nShow things\n"));
  EXPECT_THAT(page, HasSubstr("NO_COLOR"));
}

TEST_F(ManPage, OfASubcommandHasItsArgumentsAndOptions) {
  const std::string page = man_page(list_);
  EXPECT_THAT(page, HasSubstr("tool list [OPTIONS] FILE\n"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-o, \\-\\-out TEXT\\fR\nWrite there\n"));
  EXPECT_THAT(page, HasSubstr("\\fBFILE\\fR\nWhat to read\n"));
}

TEST_F(ManPage, LeavesNothingForRoffToInterpret) {
  EXPECT_THAT(man_page(list_), HasSubstr("Print \\en as it is"));
  list_.footer(".hidden");
  EXPECT_THAT(man_page(list_), HasSubstr("\n\\&.hidden"));
}

}  // namespace
}  // namespace remuda::cli
