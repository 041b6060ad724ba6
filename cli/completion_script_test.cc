#include "cli/completion_script.h"

#include <gmock/gmock.h>

namespace remuda::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string script(const std::string& shell) {
  CLI::App app{"A sample", "remuda"};
  std::string text;
  bool flag = false;
  CLI::App* list = app.add_subcommand("list", "Show it's [all]: devices");
  list->add_flag("-j,--json", flag, "As JSON");
  list->add_option("--transport", text, "How")->check(CLI::IsMember({"shm", "tcp"}));
  list->add_option("--out", text, "Write here");
  app.add_subcommand("why", "Ask")->add_option("JOB", text);
  app.add_subcommand("completion", "Print a script")->add_option("SHELL", text)->check(CLI::IsMember({"bash", "zsh"}));
  return completion_script(app, shell);
}

TEST(CompletionShells, AreTheThreeWeKnow) { EXPECT_THAT(completion_shells(), ElementsAre("bash", "zsh", "fish")); }

TEST(CompletionScript, ForBash) {
  EXPECT_EQ(script("bash"), R"sh(_remuda() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local words=
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="-h --help list why completion"
  else
    case "${COMP_WORDS[1]} $before $word" in
      "list --transport "*) words="shm tcp" ;;
      "list --out "*) words="" ;;
      "list "*" -"*) words="-h --help -j --json --transport --out" ;;
      "why "*" -"*) words="-h --help" ;;
      "why "*) words="$(remuda completion --jobs 2>/dev/null)" ;;
      "completion "*" -"*) words="-h --help" ;;
      "completion "*) words="bash zsh" ;;
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o bashdefault -o default -F _remuda remuda
)sh");
}

TEST(CompletionScript, ForZshQuotesTwice) {
  const std::string text = script("zsh");
  EXPECT_THAT(text, HasSubstr(R"('list:Show it'\''s [all]\: devices')"));
  EXPECT_THAT(text, HasSubstr(R"('*--json[As JSON]')"));
  EXPECT_THAT(text, HasSubstr(R"('*--transport[How]:value:(shm tcp)')"));
  EXPECT_THAT(text, HasSubstr(R"('*--out[Write here]:value:_files')"));
  EXPECT_THAT(text, HasSubstr(R"(completion) _arguments '*-h[Print)"));
  EXPECT_THAT(text, HasSubstr(R"(':SHELL:(bash zsh)')"));
  EXPECT_THAT(text, HasSubstr("'*:JOB:{compadd -- $(remuda completion --jobs 2>/dev/null)}'"));
}

TEST(CompletionScript, ForFishIsALinePerWord) {
  const std::string text = script("fish");
  EXPECT_THAT(text, HasSubstr(R"(-a list -d 'Show it\'s [all]: devices')"));
  EXPECT_THAT(text, HasSubstr("-n '__fish_seen_subcommand_from list' -s j -l json -d 'As JSON'\n"));
  EXPECT_THAT(text, HasSubstr("-l transport -x -a 'shm tcp' -d 'How'\n"));
  EXPECT_THAT(text, HasSubstr("-l out -r -d 'Write here'\n"));
  EXPECT_THAT(text, HasSubstr("-n '__fish_seen_subcommand_from completion' -a 'bash zsh'\n"));
  EXPECT_THAT(text, HasSubstr("-n '__fish_seen_subcommand_from why' -a '(remuda completion --jobs 2>/dev/null)'\n"));
}

TEST(CompletionScript, CoversSubcommandsAddedLater) {
  CLI::App app{"A sample", "remuda"};
  for (const std::string& shell : completion_shells())
    EXPECT_THAT(completion_script(app, shell), Not(HasSubstr("later"))) << shell;
  app.add_subcommand("later", "Added last");
  for (const std::string& shell : completion_shells())
    EXPECT_THAT(completion_script(app, shell), HasSubstr("later")) << shell;
}

TEST(CompletionScriptDeathTest, AnUnknownShellIsABug) {
  const CLI::App app{"A sample", "remuda"};
  EXPECT_DEATH(completion_script(app, "tcsh"), "completion_shells");
}

}  // namespace
}  // namespace remuda::cli
