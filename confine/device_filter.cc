#include "confine/device_filter.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

namespace remuda::confine {
namespace {

constexpr size_t kMostDenied = 4096;  ///< a jump spans 32767 instructions at most, and each node takes two

enum Register : unsigned char { kAnswer = BPF_REG_0, kContext = BPF_REG_1, kType = BPF_REG_2, kMajor, kMinor };

bpf_insn load(Register to, size_t offset) {
  return {BPF_LDX | BPF_MEM | BPF_W, to, kContext, static_cast<short>(offset), 0};
}
bpf_insn keep_bits(Register value, int bits) { return {BPF_ALU | BPF_AND | BPF_K, value, 0, 0, bits}; }
bpf_insn skip_if(int comparison, Register value, unsigned other, size_t skipped) {
  return {static_cast<unsigned char>(BPF_JMP | comparison | BPF_K), value, 0, static_cast<short>(skipped),
          static_cast<int>(other)};
}
bpf_insn answer(int value) { return {BPF_ALU64 | BPF_MOV | BPF_K, kAnswer, 0, 0, value}; }
bpf_insn leave() { return {BPF_JMP | BPF_EXIT, 0, 0, 0, 0}; }

long bpf(int command, bpf_attr& attributes) { return ::syscall(SYS_bpf, command, &attributes, sizeof attributes); }

template <typename T>
uint64_t pointer(T* memory) {
  return reinterpret_cast<uint64_t>(memory);
}

Fd load(const std::vector<bpf_insn>& program, std::string* log) {
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  attributes.insns = pointer(program.data());
  attributes.insn_cnt = static_cast<uint32_t>(program.size());
  attributes.license = pointer("Apache-2.0");
  if (log) {
    attributes.log_buf = pointer(log->data());
    attributes.log_size = static_cast<uint32_t>(log->size());
    attributes.log_level = 1;
  }
  return Fd(static_cast<int>(bpf(BPF_PROG_LOAD, attributes)));
}

/// The end of the verifier's log, on one line; empty when it was not the verifier that refused.
std::string verifier_words(const std::vector<bpf_insn>& program) {
  constexpr size_t kLog = 64 << 10, kShown = 200;
  std::string log(kLog, '\0');
  const Fd loaded = load(program, &log);
  log.resize(std::strlen(log.c_str()));
  if (log.size() > kShown) log = log.substr(log.size() - kShown);
  for (char& c : log)
    if (c == '\n') c = ' ';
  return printable(log);
}

Result<void> attach(int cgroup, const std::vector<DeviceNode>& denied) {
  const std::vector<bpf_insn> program = device_filter(denied);
  const Fd loaded = load(program, nullptr);
  if (!loaded) {
    const int error = errno;
    if (error == EPERM) return failed("no permission to load a device filter, which takes CAP_BPF and CAP_NET_ADMIN");
    const std::string words = verifier_words(program);
    if (words.empty()) return failed(fmt::format("the kernel takes no device filter: {}", errno_text(error)));
    return failed(fmt::format("the kernel's verifier refuses the device filter: {}", words));
  }
  bpf_attr attributes{};
  attributes.target_fd = static_cast<uint32_t>(cgroup);
  attributes.attach_bpf_fd = static_cast<uint32_t>(loaded.get());
  attributes.attach_type = BPF_CGROUP_DEVICE;
  attributes.attach_flags = BPF_F_ALLOW_MULTI;  // in addition to those of the cgroups above, which stay in force
  if (bpf(BPF_PROG_ATTACH, attributes) == 0) return {};
  return failed(fmt::format("the cgroup takes no device filter: {}", errno_text(errno)));
}

Result<void> write_denials(int cgroup, const std::vector<DeviceNode>& denied) {
  const Fd file(::openat(cgroup, "devices.deny", O_WRONLY | O_CLOEXEC));
  if (!file) return failed(fmt::format("the cgroup takes no device list: {}", errno_text(errno)));
  for (const DeviceNode& node : denied) {
    const std::string line = fmt::format("c {}:{} rwm", node.major, node.minor);
    if (::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      return failed(fmt::format("the cgroup does not take '{}': {}", line, errno_text(errno)));
  }
  return {};
}

}  // namespace

std::vector<bpf_insn> device_filter(const std::vector<DeviceNode>& denied) {
  constexpr int kTypeBits = 0xffff;  // the upper half is the kind of access: read, write, mknod
  const size_t tests = 2 * denied.size();
  std::vector<bpf_insn> program{load(kType, offsetof(bpf_cgroup_dev_ctx, access_type)),
                                load(kMajor, offsetof(bpf_cgroup_dev_ctx, major)),
                                load(kMinor, offsetof(bpf_cgroup_dev_ctx, minor)), keep_bits(kType, kTypeBits),
                                skip_if(BPF_JNE, kType, BPF_DEVCG_DEV_CHAR, tests)};
  for (size_t i = 0; i < denied.size(); ++i) {
    const size_t to_denial = 2 * (denied.size() - 1 - i) + 2;  // past the other tests and the instructions that allow
    program.push_back(skip_if(BPF_JNE, kMajor, denied[i].major, 1));
    program.push_back(skip_if(BPF_JEQ, kMinor, denied[i].minor, to_denial));
  }
  for (const int value : {1, 0}) {
    program.push_back(answer(value));
    program.push_back(leave());
  }
  return program;
}

Result<void> deny_devices(int cgroup, int version, const std::vector<DeviceNode>& denied) {
  if (denied.size() > kMostDenied)
    return failed(fmt::format("{} device files are more than a filter holds", denied.size()));
  return version == 2 ? attach(cgroup, denied) : write_denials(cgroup, denied);
}

}  // namespace remuda::confine
