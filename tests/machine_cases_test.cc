// Machines in files that were once misread, as users ask of them: testdata/cases, where each README says what is right.
#include <gmock/gmock.h>

#include "base/testing/scratch_folder.h"
#include "tests/program.h"

namespace remuda::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Finished ask(const std::vector<std::string>& words, const std::string& file) {
  const ScratchFolder folder;
  std::vector<std::string> argv{REMUDA_PROGRAM};
  argv.insert(argv.end(), words.begin(), words.end());
  argv.push_back(std::string(REMUDA_CASES) + "/" + file);
  return run(argv, {{"XDG_STATE_HOME", folder.path("state")}});
}

TEST(MachineCases, OneSensorsErrorIsNoLostCard) {
  const std::string file = "smi-one-sensor-error/power-err.xml";
  const Finished place = ask({"place", "-n", "1", "--machine"}, file);
  EXPECT_EQ(place.exit.status, 0) << place;
  EXPECT_EQ(place.out, "gpu:0\n");
  EXPECT_THAT(ask({"doctor", "--machine"}, file).out, HasSubstr("PASS  lost"));
  EXPECT_THAT(ask({"list", "gpu:0", "--machine"}, file).out, HasSubstr("unsupported: nvidia-smi says [Unknown Error]"));
}

TEST(MachineCases, AProcessThatComputesAndDrawsIsOne) {
  EXPECT_THAT(ask({"list", "--machine"}, "smi-process-twice/twice.xml").out, HasSubstr(" pid 199237\n"));
}

TEST(MachineCases, BytesInAProcesssNameHideNoMachine) {
  const Finished list = ask({"list", "--machine"}, "smi-bytes-in-process-name/ff-process.xml");
  EXPECT_EQ(list.exit.status, 0) << list;
  EXPECT_THAT(list.out, AllOf(HasSubstr("gpu:0"), HasSubstr("gpu:1")));
}

TEST(MachineCases, WhatTheTableDoesNotShowNeedsNoReason) {
  EXPECT_THAT(ask({"list", "--machine"}, "list-unnamed-reason/serial.json").out, Not(HasSubstr("left out")));
}

TEST(MachineCases, FailuresAreQuoted) {
  const Finished mismatch = ask({"import"}, "smi-says-error/mismatch.txt");
  EXPECT_EQ(mismatch.exit.status, 2) << mismatch;
  EXPECT_THAT(mismatch.err, HasSubstr("Failed to initialize NVML: Driver/library version mismatch"));
}

TEST(MachineCases, TheMatrixOfAGraceHasItsColumns) {
  EXPECT_THAT(ask({"topo", "--machine"}, "topo-gpu-numa-id/gh200-1.txt").out,
              AllOf(HasSubstr("0-71"), Not(HasSubstr("note"))));
}

}  // namespace
}  // namespace remuda::tests
