#include "top/keys.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "top/items.h"
#include "top/testing/demo_picture.h"

namespace remuda::top {
namespace {

using testing::HasSubstr;

class TopKeys : public testing::Test {
 protected:
  Wish press(char32_t key) { return top::press(key, &seen_, choice_); }
  void type(std::u32string_view keys) {
    for (const char32_t key : keys) press(key);
  }
  std::vector<Item> items() const { return items_of(seen_, choice_); }
  /// The labels of devices, in their order.
  std::vector<std::string> devices() const {
    std::vector<std::string> labels;
    for (const Item& item : items())
      if (item.kind == Kind::device) labels.push_back(item.text);
    return labels;
  }
  Kind chosen() const {
    const auto all = items();
    return std::ranges::find(all, choice_.item, &Item::key)->kind;
  }

  Picture picture_ = demo_picture();
  snapshot::Seen& seen_ = *picture_.seen;
  Choice choice_;
};

TEST_F(TopKeys, ArrowsChooseAndStayWithWhatIsChosen) {
  EXPECT_EQ(choice_.item, "");
  press(Key::down);
  EXPECT_EQ(choice_.item, "corral/gpu:0");
  press('j');
  EXPECT_EQ(choice_.item, "corral/gpu:1");
  press('s');
  EXPECT_EQ(choice_.item, "corral/gpu:1") << "where it is now";
  press(Key::home);
  press(Key::up);
  EXPECT_EQ(choice_.item, items().front().key);
  press(Key::end);
  press(Key::down);
  EXPECT_EQ(choice_.item, items().back().key);
}

TEST_F(TopKeys, WithNothingChosenEachEndIsItsEnd) {
  press(Key::end);
  EXPECT_EQ(choice_.item, items().back().key);
  choice_.item.clear();
  press(Key::home);
  EXPECT_EQ(choice_.item, items().front().key);
}

TEST_F(TopKeys, WhatHasGoneIsChosenNoMore) {
  press(Key::end);
  choice_.item = "job corral 99";
  press(Key::down);
  EXPECT_EQ(choice_.item, "corral/gpu:0");
}

TEST_F(TopKeys, TabGoesFromTableToTable) {
  for (const Kind kind : {Kind::device, Kind::alert, Kind::job, Kind::waiting, Kind::device}) {
    press(Key::tab);
    EXPECT_EQ(chosen(), kind);
  }
}

TEST_F(TopKeys, DevicesAreSortedByWhatIsAskedFor) {
  EXPECT_EQ(devices().front(), "gpu:0");
  choice_.order = Order::temperature;
  const auto hottest = devices();
  press('r');
  auto reversed = devices();
  std::ranges::reverse(reversed);
  EXPECT_EQ(reversed, hottest);
  choice_ = {.order = Order::user};
  EXPECT_EQ(devices().front(), "gpu:0") << "ana's";
  EXPECT_EQ(devices().back(), "gpu:6") << "nobody's";
}

TEST_F(TopKeys, WhatIsNotKnownIsSortedLast) {
  seen_.hosts[0].devices[0].device.status.busy = Missing{MissingReason::denied, "no"};
  choice_.order = Order::busy;
  EXPECT_EQ(devices().back(), "gpu:0");
}

TEST_F(TopKeys, AFilterIsTyped) {
  type(U"/AN");
  EXPECT_EQ(choice_.mode, Mode::filter);
  press(Key::backspace);
  type(U"na");
  press(Key::enter);
  EXPECT_EQ(choice_.mode, Mode::list);
  EXPECT_EQ(choice_.filter, "Ana");
  EXPECT_EQ(devices(), (std::vector<std::string>{"gpu:0", "gpu:1"}));
  press(Key::escape);
  EXPECT_EQ(devices().size(), 8u);
}

TEST_F(TopKeys, AFilterIsCutByCharacters) {
  type(U"/a漢ñ");
  EXPECT_EQ(choice_.filter, "a漢ñ");
  press(Key::backspace);
  press(Key::backspace);
  EXPECT_EQ(choice_.filter, "a");
}

TEST_F(TopKeys, AFilterHasAnEnd) {
  type(U"/");
  for (int i = 0; i < 300; ++i) press('x');
  EXPECT_EQ(choice_.filter.size(), 200U);
}

TEST_F(TopKeys, WhatIsBarredIsNoJob) {
  const size_t before = items().size();
  seen_.hosts[0].leases.push_back({.device = "corral/gpu:0", .barred = "is slurm's"});
  EXPECT_EQ(items().size(), before);
}

TEST_F(TopKeys, CancelAsksOnce) {
  seen_.is_recording = false;
  choice_.item = "job corral 44";
  EXPECT_EQ(press('c'), Wish::nothing);
  EXPECT_EQ(choice_.mode, Mode::confirm);
  EXPECT_EQ(press('n'), Wish::nothing);
  EXPECT_EQ(choice_.message, "Nothing was cancelled");
  for (const char32_t key : {char32_t('q'), char32_t(' '), Key::enter, Key::escape, Key::tab}) {
    press('c');
    EXPECT_EQ(press(key), Wish::nothing) << static_cast<uint32_t>(key);
  }
  press('c');
  EXPECT_EQ(press('y'), Wish::cancel);
  EXPECT_EQ(choice_.job, 44);
  EXPECT_EQ(choice_.mode, Mode::list);
}

TEST_F(TopKeys, CancelsAJobThatWaitsToo) {
  seen_.is_recording = false;
  press(Key::down);
  while (chosen() != Kind::waiting) press(Key::tab);
  press('c');
  EXPECT_EQ(choice_.job, 70);
}

TEST_F(TopKeys, CancelNeedsAJobAndALiveMachine) {
  press('c');
  EXPECT_THAT(choice_.message, HasSubstr("Choose a job first"));
  press(Key::down);
  press('c');
  EXPECT_THAT(choice_.message, HasSubstr("Choose a job first"));
  choice_.item = "job corral 44";
  press('c');
  EXPECT_EQ(choice_.mode, Mode::list);
  EXPECT_EQ(choice_.message, "This is a recording: nothing can be cancelled");
  choice_.item = "job corral no lease eve";
  press('c');
  EXPECT_THAT(choice_.message, HasSubstr("Choose a job first")) << "what has no lease is no job";
}

TEST_F(TopKeys, ModesEnd) {
  press('?');
  EXPECT_EQ(choice_.mode, Mode::help);
  press('x');
  EXPECT_EQ(choice_.mode, Mode::list);
  press(Key::enter);
  EXPECT_EQ(choice_.mode, Mode::list) << "nothing is chosen";
  press(Key::down);
  press(Key::enter);
  EXPECT_EQ(choice_.mode, Mode::details);
  press(Key::escape);
  EXPECT_EQ(choice_.mode, Mode::list);
  EXPECT_EQ(press('q'), Wish::quit);
}

TEST_F(TopKeys, BeforeTheFirstReadingKeysDoNoHarm) {
  Choice choice;
  for (const char32_t key : {char32_t('j'), char32_t('c'), Key::enter, Key::tab, Key::end, char32_t('s')})
    EXPECT_EQ(top::press(key, nullptr, choice), Wish::nothing);
  EXPECT_EQ(top::press('q', nullptr, choice), Wish::quit);
}

}  // namespace
}  // namespace remuda::top
