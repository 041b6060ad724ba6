#include "confine/bpf.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"

namespace remuda::confine::bpf {
namespace {

Fd load(const std::string& name, const std::vector<bpf_insn>& program, std::string* log) {
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  attributes.insns = pointer(program.data());
  attributes.insn_cnt = static_cast<uint32_t>(program.size());
  attributes.license = pointer("Apache-2.0");
  name.copy(attributes.prog_name, kLongestName);
  if (log) {
    attributes.log_buf = pointer(log->data());
    attributes.log_size = static_cast<uint32_t>(log->size());
    attributes.log_level = 1;
  }
  return Fd(static_cast<int>(call(BPF_PROG_LOAD, attributes)));
}

/// The end of the verifier's log, on one line; empty when it was not the verifier that refused.
std::string verifier_log(const std::string& name, const std::vector<bpf_insn>& program) {
  constexpr size_t kLog = 64 << 10, kShown = 200;
  std::string log(kLog, '\0');
  const Fd loaded = load(name, program, &log);
  log.resize(std::strlen(log.c_str()));
  if (log.size() > kShown) log = log.substr(log.size() - kShown);
  for (char& c : log)
    if (c == '\n') c = ' ';
  return printable(log);
}

}  // namespace

long call(int command, bpf_attr& attributes) { return ::syscall(SYS_bpf, command, &attributes, sizeof attributes); }

bpf_insn load_word(Register to, Register from, size_t offset) {
  return {BPF_LDX | BPF_MEM | BPF_W, to, from, static_cast<short>(offset), 0};
}
bpf_insn keep_bits(Register value, int bits) { return {BPF_ALU | BPF_AND | BPF_K, value, 0, 0, bits}; }
bpf_insn skip_if(int comparison, Register value, unsigned other, size_t skipped) {
  return {static_cast<unsigned char>(BPF_JMP | comparison | BPF_K), value, 0, static_cast<short>(skipped),
          static_cast<int>(other)};
}
bpf_insn set(Register to, int value) { return {BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value}; }
bpf_insn leave() { return {BPF_JMP | BPF_EXIT, 0, 0, 0, 0}; }

Result<Fd> load_device_program(const std::string& name, const std::vector<bpf_insn>& program) {
  Fd loaded = load(name, program, nullptr);
  if (loaded) return loaded;
  const int error = errno;
  if (error == EPERM) return failed("no permission to load a device filter, which takes CAP_BPF and CAP_NET_ADMIN");
  const std::string words = verifier_log(name, program);
  if (words.empty()) return failed(fmt::format("the kernel takes no device filter: {}", errno_text(error)));
  return failed(fmt::format("the kernel's verifier refuses the device filter: {}", words));
}

}  // namespace remuda::confine::bpf
