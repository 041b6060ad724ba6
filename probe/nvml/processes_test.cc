#include "probe/nvml/processes.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "probe/nvml/testing/fake_lib.h"

namespace remuda::probe::nvml {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ProcessInfo record(unsigned pid, uint64_t memory, unsigned instance = kWholeGpu) {
  return {.pid = pid, .used_memory = memory, .gpu_instance = instance, .compute_instance = instance};
}

std::vector<std::byte> bytes_of(const std::vector<ProcessInfo>& records, size_t size) {
  std::vector<std::byte> bytes(records.size() * sizeof(ProcessInfo));
  for (size_t i = 0; i < records.size(); ++i) std::memcpy(&bytes[i * size], &records[i], size);
  return bytes;
}

std::vector<unsigned> pids(const std::vector<ProcessInfo>& records) {
  std::vector<unsigned> pids;
  for (const ProcessInfo& record : records) pids.push_back(record.pid);
  return pids;
}

class Processes : public ::testing::Test {
 protected:
  void SetUp() override { fake::machine() = {.gpus = {fake::gpu(0x27)}}; }
  fake::Gpu& gpu() { return fake::machine().gpus.front(); }
  Handle handle() { return reinterpret_cast<Handle>(&gpu()); }
};

TEST_F(Processes, RecordSizeFollowsTheCallsThatAreThere) {
  Lib lib = fake::new_driver();
  EXPECT_EQ(record_size(lib), 24);
  lib.process_details = nullptr;
  EXPECT_EQ(record_size(lib), 32);
  lib.protected_memory_info = nullptr;
  EXPECT_EQ(record_size(lib), 24);
  EXPECT_EQ(record_size(fake::old_driver()), 16);
}

TEST_F(Processes, AreReadInEachLayout) {
  Lib lib = fake::new_driver();
  gpu().compute = {record(100, 5 << 20), record(200, 6 << 20), record(300, 7 << 20)};
  const auto read = [&](const Lib& from, size_t size) {
    fake::machine().record_size = size;
    return read_processes(from, handle()).value();
  };
  const auto usual = read(lib, 24);
  ASSERT_EQ(usual.size(), 3);
  EXPECT_EQ(usual[2].pid, 300);
  EXPECT_EQ(usual[2].memory_bytes.value(), 7 << 20);
  EXPECT_EQ(read(fake::old_driver(), 16), usual);
  lib.process_details = nullptr;
  EXPECT_EQ(read(lib, 32), usual);
}

TEST_F(Processes, RecordsThatCannotBeAreReadInTheOtherLayout) {
  const std::vector<ProcessInfo> records{record(100, 5ULL << 30), record(200, 6ULL << 30), record(300, 7ULL << 30)};
  for (const size_t written : {24, 32})
    for (const size_t expected : {24, 32})
      EXPECT_THAT(pids(read_records(bytes_of(records, written), 3, expected)), ElementsAre(100, 200, 300))
          << written << " read as " << expected;
}

TEST_F(Processes, OneMemoryIsUnknownNotZero) {
  gpu().compute = {record(100, UINT64_MAX)};
  const auto processes = read_processes(fake::new_driver(), handle()).value();
  ASSERT_EQ(processes.size(), 1);
  EXPECT_EQ(processes[0].memory_bytes.missing().reason, MissingReason::unsupported);
}

TEST_F(Processes, OneInSeveralListsStandsOnce) {
  gpu().compute = {record(100, 1), record(200, 1)};
  gpu().mps = {record(200, 1)};
  gpu().graphics = {record(100, 1), record(300, 1)};
  std::vector<std::pair<int, std::string>> seen;
  const auto processes = read_processes(fake::new_driver(), handle()).value();
  for (const Process& process : processes) seen.emplace_back(process.pid, process.type);
  using Seen = std::pair<int, std::string>;
  EXPECT_THAT(seen, ElementsAre(Seen(100, "compute"), Seen(200, "shared"), Seen(300, "graphics")));
}

TEST_F(Processes, OfAnInstanceAreItsOwn) {
  gpu().compute = {record(100, 1, 1), record(200, 1, 2), record(300, 1, 1)};
  const auto processes = read_processes(fake::new_driver(), handle(), 1).value();
  ASSERT_EQ(processes.size(), 2);
  EXPECT_EQ(processes[0].pid, 100);
  EXPECT_EQ(processes[1].pid, 300);
}

TEST_F(Processes, MoreThanTheFirstBufferHolds) {
  for (unsigned pid = 1; pid <= 500; ++pid) gpu().compute.push_back(record(pid, 1));
  EXPECT_EQ(read_processes(fake::new_driver(), handle()).value().size(), 500);
}

TEST_F(Processes, OfALibraryThatNeverHasEnoughRoomAreMissing) {
  Lib lib = fake::new_driver();
  lib.compute_processes = [](Handle, unsigned* count, void*) { return *count = UINT32_MAX, kInsufficientSize; };
  EXPECT_FALSE(read_processes(lib, handle()).has_value());
  lib.compute_processes = [](Handle, unsigned* count, void*) { return *count = UINT32_MAX, kSuccess; };
  EXPECT_THAT(read_processes(lib, handle()).value(), IsEmpty());  // records without a pid
}

TEST_F(Processes, AreMissingWithTheDriversReason) {
  gpu().answers = kNoPermission;
  EXPECT_EQ(read_processes(fake::new_driver(), handle()).missing().reason, MissingReason::denied);
  EXPECT_EQ(read_processes({}, handle()).missing().detail, "processes: not offered by this version of the driver");
}

TEST_F(Processes, BusyIsTheLatestSampleAndZeroForThoseNotMentioned) {
  gpu().samples = {{.pid = 100, .time_us = 9, .sm = 60}, {.pid = 100, .time_us = 5, .sm = 20}, {.pid = 7, .sm = 101}};
  std::vector<Process> processes{{.pid = 100}, {.pid = 200}, {.pid = 7}};
  add_busy(fake::new_driver(), handle(), processes);
  EXPECT_EQ(processes[0].busy.value(), 0.6);
  EXPECT_EQ(processes[1].busy.value(), 0.0);
  EXPECT_FALSE(processes[2].busy.has_value());  // 101 percent cannot be
}

TEST_F(Processes, BusyIsMissingWithoutSamplesAndWithoutTheCall) {
  std::vector<Process> processes{{.pid = 100}};
  add_busy(fake::new_driver(), handle(), processes);
  EXPECT_EQ(processes[0].busy.missing().detail, "share of time of a process: the driver has no sample of the last 2 s");
  add_busy(fake::old_driver(), handle(), processes);
  EXPECT_EQ(processes[0].busy.missing().reason, MissingReason::unsupported);
}

}  // namespace
}  // namespace remuda::probe::nvml
