// `remuda doctor`, run as users run it.
#include <filesystem>
#include <gmock/gmock.h>
#include <map>

#include "base/json.h"
#include "tests/program.h"

namespace remuda::tests {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

Json checked_json(const Finished& doctor) {
  const auto json = parse_json(doctor.out, "output");
  EXPECT_TRUE(json) << doctor;
  return json.value_or(Json::object());
}

Json find_check(const Json& report, const std::string& name) {
  for (const Json& check : report["checks"])
    if (check["name"] == name) return check;
  return Json::object();
}

TEST(Doctor, ExamineThisMachine) {
  const Finished doctor = run({REMUDA_PROGRAM, "doctor"});
  EXPECT_THAT(doctor.out, HasSubstr("\nframework\n")) << doctor;
  EXPECT_THAT(doctor.out, HasSubstr(" skipped\n"));
  EXPECT_THAT(doctor.exit.status, AnyOf(0, 1));
  EXPECT_EQ(doctor.err, "");
}

TEST(Doctor, JsonCountsItsChecks) {
  const Finished doctor = run({REMUDA_PROGRAM, "doctor", "--json"});
  const Json report = checked_json(doctor);
  std::map<std::string, int> count;
  for (const Json& check : report["checks"]) {
    ++count[check["verdict"]];
    const bool is_bad = check["verdict"] == "WARN" || check["verdict"] == "FAIL";
    EXPECT_EQ(check.contains("remedy"), is_bad) << check;
    EXPECT_NE(check["sentence"], "") << check;
  }
  EXPECT_EQ(report["passed"], count["PASS"]);
  EXPECT_EQ(report["warnings"], count["WARN"]);
  EXPECT_EQ(report["failed"], count["FAIL"]);
  EXPECT_EQ(report["skipped"], count["SKIP"]);
  EXPECT_EQ(doctor.exit.status, count["FAIL"] > 0 ? 1 : 0);
}

TEST(Doctor, SaysWhatIsWrongWithARecordedMachine) {
  const ScratchFolder folder;
  folder.write("machine.json", R"({"version": 1, "host": "node7", "devices": [{"id": "GPU-1", "kind": "gpu", "index": 0,
      "vendor": "NVIDIA", "model": "A100", "status": {"ecc_uncorrected": 3}}]})");
  const Finished doctor = run({REMUDA_PROGRAM, "doctor", "--json", "--machine", folder.path("machine.json")});
  EXPECT_EQ(doctor.exit.status, 1) << doctor;
  const Json report = checked_json(doctor);
  EXPECT_EQ(find_check(report, "ecc")["verdict"], "FAIL");
  EXPECT_EQ(find_check(report, "ecc")["device"], "GPU-1");
  EXPECT_EQ(find_check(report, "open_files")["sentence"], "a recorded machine does not report it");
}

TEST(Doctor, AFileThatIsNoMachineIsAUsageError) {
  const ScratchFolder folder;
  folder.write("machine.json", "{");
  const Finished doctor = run({REMUDA_PROGRAM, "doctor", "--machine", folder.path("machine.json")});
  EXPECT_EQ(doctor.exit.status, 2) << doctor;
  EXPECT_THAT(doctor.err, HasSubstr("machine.json"));
}

TEST(Doctor, APythonThatHangsIsSkippedAndLeavesNoProcess) {
  const ScratchFolder folder;
  folder.write("python3", "#!/bin/sh\necho $$ > " + folder.path("pid") + "\nsleep 1000\n");
  std::filesystem::permissions(folder.path("python3"), std::filesystem::perms::owner_all);
  const Finished doctor =
      run({REMUDA_PROGRAM, "doctor", "--json"}, {{"PATH", folder.path("") + ":/usr/bin:/bin"}, {"VIRTUAL_ENV", ""}});
  const Json torch = find_check(checked_json(doctor), "torch");
  EXPECT_EQ(torch["verdict"], "SKIP");
  EXPECT_THAT(torch["sentence"].get<std::string>(), HasSubstr("python3 did not answer within"));
  const pid_t hanging = std::stoi(folder.read("pid"));
  EXPECT_TRUE(eventually([&] { return !is_running(hanging); }, 10));
}

}  // namespace
}  // namespace remuda::tests
