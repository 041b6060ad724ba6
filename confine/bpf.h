// Programs of the kernel's BPF machine (bpf(2)): written as instructions, loaded, and found where they are attached.
#pragma once

#include <cstdint>
#include <linux/bpf.h>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace remuda::confine::bpf {

/// The longest name of a program or map; longer ones are refused.
inline constexpr size_t kLongestName = BPF_OBJ_NAME_LEN - 1;

/// The system call. Negative, with errno, where the kernel refuses.
long call(int command, bpf_attr& attributes);

template <typename T>
uint64_t pointer(T* memory) {
  return reinterpret_cast<uint64_t>(memory);
}

/// Where a function's answer and its arguments are, and the address above a program's stack. What is in registers 6 to
/// 9 stays over calls.
enum Register : unsigned char {
  kAnswer = BPF_REG_0,
  kFirst = BPF_REG_1,
  kSecond,
  kThird,
  kFourth,
  kSaved6 = BPF_REG_6,
  kSaved7,
  kSaved8,
  kStack = BPF_REG_10
};

/// `to` = the 32 bits at `offset` from `from`.
bpf_insn load_word(Register to, Register from, size_t offset);
bpf_insn keep_bits(Register value, int bits);
/// A jump past `skipped` instructions if `value` compares so (BPF_JEQ, BPF_JNE) with `other`.
bpf_insn skip_if(int comparison, Register value, unsigned other, size_t skipped);
bpf_insn set(Register to, int value);
bpf_insn leave();

/// Loads a program that is asked about the use of device files (BPF_PROG_TYPE_CGROUP_DEVICE). The error is a clause
/// that names the cause, with the end of the verifier's log where that has refused it.
Result<Fd> load_device_program(const std::string& name, const std::vector<bpf_insn>& program);

}  // namespace remuda::confine::bpf
