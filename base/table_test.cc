#include "base/table.h"

#include <gmock/gmock.h>

namespace remuda {
namespace {

TEST(Table, OfAHeaderAloneIsOneLine) { EXPECT_EQ(Table({"ID", "CORES"}).text(), "ID  CORES\n"); }

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  Table table({"ID", "MODEL"});
  table.add({"cpu:0", "a"});
  table.add({"cpu:10", "longer"});
  EXPECT_EQ(table.text(),
            "ID      MODEL\n"
            "cpu:0   a\n"
            "cpu:10  longer\n");
}

TEST(Table, NumbersAreAlignedRight) {
  Table table({"NAME", "SHARE", "TIME"});
  table.add({"a", "7", "1.5"});
  table.add({"b", "12%", ""});
  EXPECT_EQ(table.text(),
            "NAME  SHARE  TIME\n"
            "a         7   1.5\n"
            "b       12%\n");
}

TEST(Table, OneCellOfTextAlignsItsColumnLeft) {
  Table table({"NUMA"});
  table.add({"0"});
  table.add({"unknown"});
  EXPECT_EQ(table.text(), "NUMA\n0\nunknown\n");
}

TEST(Table, WidthCountsCharactersNotBytes) {
  Table table({"A", "B"});
  table.add({"é", "x"});
  table.add({"ab", "y"});
  EXPECT_EQ(table.text(), "A   B\né   x\nab  y\n");
}

TEST(Table, TheWidestColumnsGiveWayWhereThereIsNoRoom) {
  Table table({"JOB", "WHAT", "WHY"});
  table.add({"12", "sleep 100 # größer", "waits for the end of job 11"});
  EXPECT_EQ(table.text(100), table.text());
  EXPECT_EQ(table.text(44),
            "JOB  WHAT                WHY\n"
            " 12  sleep 100 # größer  waits for the en...\n");
  EXPECT_EQ(table.text(30),
            "JOB  WHAT         WHY\n"
            " 12  sleep 10...  waits for...\n");
  EXPECT_EQ(table.text(1),
            "JOB  WHAT      WHY\n"
            " 12  sleep...  waits...\n");
}

TEST(Table, EmptyRowsLeaveNoTrailingSpaces) {
  Table table({"A", "B"});
  table.add({"", ""});
  EXPECT_EQ(table.text(), "A  B\n\n");
}

TEST(TableDeathTest, ARowOfAnotherLengthIsABug) {
  Table table({"A", "B"});
  EXPECT_DEATH(table.add({"only one"}), "as many cells as the header");
}

}  // namespace
}  // namespace remuda
