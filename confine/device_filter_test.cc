#include "confine/device_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::confine {
namespace {

using testing::HasSubstr;

/// Interprets the program as the kernel does: its result for an access, or -1 where it does what the kernel forbids.
int ask(const std::vector<bpf_insn>& program, unsigned access, unsigned major, unsigned minor) {
  const unsigned context[] = {access, major, minor};
  uint64_t registers[11] = {};
  for (size_t at = 0; at < program.size(); ++at) {
    const bpf_insn& step = program[at];
    uint64_t& value = registers[step.dst_reg];
    switch (step.code) {
      case BPF_LDX | BPF_MEM | BPF_W:
        value = context[step.off / 4];
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        value &= static_cast<unsigned>(step.imm);
        break;
      case BPF_ALU64 | BPF_MOV | BPF_K:
        value = static_cast<uint64_t>(step.imm);
        break;
      case BPF_JMP | BPF_JNE | BPF_K:
      case BPF_JMP | BPF_JEQ | BPF_K:
        if (step.off < 0) return -1;
        if ((value == static_cast<uint64_t>(step.imm)) == (BPF_OP(step.code) == BPF_JEQ)) at += step.off;
        break;
      case BPF_JMP | BPF_EXIT:
        return static_cast<int>(registers[0]);
      default:
        return -1;
    }
  }
  return -1;
}

constexpr unsigned kReadAndWrite = (BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE) << 16;
constexpr unsigned kCharacter = kReadAndWrite | BPF_DEVCG_DEV_CHAR, kBlock = kReadAndWrite | BPF_DEVCG_DEV_BLOCK;

TEST(DeviceFilter, DeniesWhatIsListedAndNothingElse) {
  const auto program = device_filter({{195, 0}, {195, 2}, {226, 128}});
  for (const auto& [major, minor, answer] : {std::tuple{195, 0, 0},
                                             {195, 1, 1},
                                             {195, 2, 0},
                                             {195, 128, 1},
                                             {195, 255, 1},
                                             {226, 128, 0},
                                             {226, 0, 1},
                                             {226, 2, 1},
                                             {1, 3, 1},
                                             {0, 0, 1}})
    EXPECT_EQ(ask(program, kCharacter, major, minor), answer) << major << ':' << minor;
}

TEST(DeviceFilter, DeniesEveryUse) {
  const auto program = device_filter({{195, 0}});
  for (const unsigned use : {BPF_DEVCG_ACC_READ, BPF_DEVCG_ACC_WRITE, BPF_DEVCG_ACC_MKNOD})
    EXPECT_EQ(ask(program, use << 16 | BPF_DEVCG_DEV_CHAR, 195, 0), 0);
}

TEST(DeviceFilter, LeavesBlockDevicesAlone) { EXPECT_EQ(ask(device_filter({{8, 0}}), kBlock, 8, 0), 1); }

TEST(DeviceFilter, OfNothingAllowsAll) { EXPECT_EQ(ask(device_filter({}), kCharacter, 195, 0), 1); }

TEST(DeviceFilter, IsThisProgram) {
  const auto program = device_filter({{195, 7}});
  ASSERT_EQ(program.size(), 11U);
  const auto* bytes = reinterpret_cast<const unsigned char*>(program.data());
  const std::vector<unsigned char> tests(bytes + 4 * sizeof(bpf_insn), bytes + 7 * sizeof(bpf_insn));
  EXPECT_EQ(tests, (std::vector<unsigned char>{0x55, 0x02, 2, 0, 2,   0, 0, 0,    // if type != character skip 2
                                               0x55, 0x03, 1, 0, 195, 0, 0, 0,    // if major != 195 skip 1
                                               0x15, 0x04, 2, 0, 7,   0, 0, 0}))  // if minor == 7 skip 2
      << "little endian";
}

TEST(DeviceFilter, RefusesMoreThanItHolds) {
  const auto denied = deny_devices(-1, 2, std::vector<DeviceNode>(5000));
  ASSERT_FALSE(denied);
  EXPECT_THAT(denied.error().message, HasSubstr("5000 device files"));
}

TEST(DeviceFilter, SaysWhatStandsInTheWay) {
  EXPECT_FALSE(deny_devices(-1, 2, {{195, 0}}));
  EXPECT_FALSE(deny_devices(-1, 1, {{195, 0}}));
}

}  // namespace
}  // namespace remuda::confine
