#include "doctor/doctor.h"

#include <gmock/gmock.h>
#include <set>

#include "doctor/testing/machine.h"

namespace remuda::doctor {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

const Diagnosis kPassed{Verdict::pass, "all is well", "", "", "ecc", "health"};
const Diagnosis kWarned{Verdict::warn, "gpu:0 is slow", "make it fast", "GPU-0", "pcie", "wiring"};
const Diagnosis kFailed{Verdict::fail, "gpu:1 is gone", "bring it back", "GPU-1", "lost", "health"};
const Diagnosis kSkipped{Verdict::skip, "not told", "", "", "xid", "health"};

TEST(Examine, RunsEveryCheckAndNamesIt) {
  std::set<std::string> names;
  for (const Diagnosis& diagnosis : examine(made_machine(2), {})) {
    names.insert(diagnosis.name);
    EXPECT_FALSE(diagnosis.group.empty()) << diagnosis.name;
    EXPECT_FALSE(diagnosis.sentence.empty()) << diagnosis.name;
    const bool is_bad = diagnosis.verdict == Verdict::warn || diagnosis.verdict == Verdict::fail;
    EXPECT_EQ(diagnosis.remedy.empty(), !is_bad) << diagnosis.name;
  }
  EXPECT_EQ(names.size(), 33u);
}

TEST(Examine, FindsNothingWrongWithAMachineThatTellsNothing) {
  EXPECT_EQ(tally(examine(made_machine(2), {})).failed, 0u);
  EXPECT_EQ(tally(examine(Inventory{}, {})).failed, 0u);
}

TEST(Examine, AMachineThatDoesNotAnswerIsAFailure) {
  HostFacts facts;
  facts.open_files = 65536;
  const auto all = examine(failed("the search for devices did not answer within 2.7 s"), facts);
  EXPECT_EQ(all.front().verdict, Verdict::fail);
  EXPECT_EQ(all.front().name, "machine");
  EXPECT_EQ(tally(all).failed, 1u);
  EXPECT_EQ(tally(all).passed, 1u) << "checks of the host run all the same";
  EXPECT_THAT(words_of(all), HasSubstr("did not answer within 2.7 s"));
}

TEST(ReportText, ShowsRemediesAndTheTally) {
  EXPECT_EQ(report_text({kPassed, kFailed, kSkipped, kWarned}, false),
            "health\n"
            "  PASS  ecc   all is well\n"
            "  FAIL  lost  gpu:1 is gone\n"
            "              -> bring it back\n"
            "  SKIP  xid   not told\n"
            "\n"
            "wiring\n"
            "  WARN  pcie  gpu:0 is slow\n"
            "              -> make it fast\n"
            "\n"
            "1 passed, 1 warning, 1 failed, 1 skipped\n");
}

TEST(ReportText, NamesACheckOnceHoweverOftenItIsSkipped) {
  EXPECT_THAT(report_text({kSkipped, kSkipped}, false), testing::HasSubstr("  SKIP  2 checks  not told (xid)\n"));
}

TEST(ReportText, FoldsWhatIsSkippedForTheSameReason) {
  Diagnosis other = kSkipped, elsewhere = kSkipped;
  other.name = "ecc";
  elsewhere.group = "modes";
  EXPECT_EQ(report_text({kSkipped, other, elsewhere}, false),
            "health\n"
            "  SKIP  2 checks  not told (xid, ecc)\n"
            "\n"
            "modes\n"
            "  SKIP  xid       not told\n"
            "\n"
            "0 passed, 0 warnings, 0 failed, 3 skipped\n");
}

TEST(ReportText, ColoursTheVerdictAlone) {
  const std::string text = report_text({kFailed}, true);
  EXPECT_THAT(text, HasSubstr("\x1b[1;31mFAIL\x1b[0m  lost"));
  EXPECT_THAT(report_text({kFailed}, false), Not(HasSubstr("\x1b")));
}

TEST(ReportText, LetsNoForeignControlCharacterThrough) {
  Diagnosis hostile = kFailed;
  hostile.sentence = "gpu:\x1b[2J";
  EXPECT_THAT(report_text({hostile}, false), Each(Not('\x1b')));
}

TEST(ReportJson, LeavesOutWhatIsEmpty) {
  EXPECT_EQ(to_line(report_json({kPassed, kFailed})),
            R"({"checks":[{"name":"ecc","verdict":"PASS","sentence":"all is well"},)"
            R"({"name":"lost","verdict":"FAIL","sentence":"gpu:1 is gone","remedy":"bring it back","device":"GPU-1"}],)"
            R"("passed":1,"warnings":0,"failed":1,"skipped":0})");
}

}  // namespace
}  // namespace remuda::doctor
