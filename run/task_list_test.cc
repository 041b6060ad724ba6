#include "run/task_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::run {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> texts(const std::vector<Task>& tasks) {
  std::vector<std::string> texts;
  for (const Task& task : tasks) texts.push_back(std::to_string(task.line) + ":" + task.text);
  return texts;
}

std::vector<std::string> parsed(std::string_view text) {
  const auto tasks = parse_tasks(text, "list");
  return tasks ? texts(*tasks) : std::vector{tasks.error().message};
}

TEST(TaskList, TakesALineForATask) {
  EXPECT_THAT(parsed("one\n\n# two\n \t\nthree  \nfour"), ElementsAre("1:one", "5:three  ", "6:four"));
  EXPECT_THAT(parsed(" # no comment\n"), ElementsAre("1: # no comment"));
}

TEST(TaskList, TakesWhatOtherSystemsWrite) {
  EXPECT_THAT(parsed("\xef\xbb\xbfone\r\n\r\ntw\xc3\xb6\r\n"), ElementsAre("1:one", "3:tw\xc3\xb6"));
}

TEST(TaskList, RefusesWhatIsNoText) {
  using namespace std::string_view_literals;
  EXPECT_THAT(parsed("one\ntwo\0\n"sv), ElementsAre("line 2 of list has bytes that are no text in UTF-8"));
  EXPECT_THAT(parsed("\xff\n"), ElementsAre("line 1 of list has bytes that are no text in UTF-8"));
  EXPECT_THAT(parsed("a\x1b[2Jb\n"), ElementsAre(HasSubstr("no text")));
}

TEST(TaskList, RefusesWhatHoldsNoTask) {
  for (const char* text : {"", "\n", "# one\n\n"}) EXPECT_THAT(parsed(text), ElementsAre(HasSubstr("no task in list")));
}

TEST(TaskList, GivesALineToTheShell) {
  const TaskList list{{{1, "echo $HOME"}}, {}};
  EXPECT_THAT(list.argv(0), ElementsAre("/bin/sh", "-c", "echo $HOME"));
}

TEST(TaskList, PutsALineIntoACommandAsItIs) {
  const std::vector<Task> tasks{{1, "a b; {}"}};
  EXPECT_THAT((TaskList{tasks, {"render", "-f", "{}", "--out={}/{}.png"}}.argv(0)),
              ElementsAre("render", "-f", "a b; {}", "--out=a b; {}/a b; {}.png"));
  EXPECT_THAT((TaskList{tasks, {"render"}}.argv(0)), ElementsAre("render", "a b; {}"));
}

}  // namespace
}  // namespace remuda::run
