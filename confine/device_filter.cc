#include "confine/device_filter.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "confine/bpf.h"

namespace remuda::confine {
namespace {

constexpr size_t kMostDenied = 4096;  ///< a jump spans 32767 instructions at most, and each node takes two

constexpr auto kContext = bpf::kFirst, kType = bpf::kSecond, kMajorOfNode = bpf::kThird, kMinorOfNode = bpf::kFourth;

Result<void> attach(int cgroup, const std::vector<DeviceNode>& denied) {
  const std::vector<bpf_insn> program = device_filter(denied);
  REMUDA_ASSIGN(const Fd loaded, bpf::load_device_program("remuda_job", program));
  bpf_attr attributes{};
  attributes.target_fd = static_cast<uint32_t>(cgroup);
  attributes.attach_bpf_fd = static_cast<uint32_t>(loaded.get());
  attributes.attach_type = BPF_CGROUP_DEVICE;
  attributes.attach_flags = BPF_F_ALLOW_MULTI;  // in addition to those of the cgroups above, which stay in force
  if (bpf::call(BPF_PROG_ATTACH, attributes) == 0) return {};
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
  std::vector<bpf_insn> program{bpf::load_word(kType, kContext, offsetof(bpf_cgroup_dev_ctx, access_type)),
                                bpf::load_word(kMajorOfNode, kContext, offsetof(bpf_cgroup_dev_ctx, major)),
                                bpf::load_word(kMinorOfNode, kContext, offsetof(bpf_cgroup_dev_ctx, minor)),
                                bpf::keep_bits(kType, kTypeBits),
                                bpf::skip_if(BPF_JNE, kType, BPF_DEVCG_DEV_CHAR, tests)};
  for (size_t i = 0; i < denied.size(); ++i) {
    const size_t to_denial = 2 * (denied.size() - 1 - i) + 2;  // past the other tests and the instructions that allow
    program.push_back(bpf::skip_if(BPF_JNE, kMajorOfNode, denied[i].major, 1));
    program.push_back(bpf::skip_if(BPF_JEQ, kMinorOfNode, denied[i].minor, to_denial));
  }
  for (const int value : {1, 0}) {
    program.push_back(bpf::set(bpf::kAnswer, value));
    program.push_back(bpf::leave());
  }
  return program;
}

Result<void> deny_devices(int cgroup, int version, const std::vector<DeviceNode>& denied) {
  if (denied.size() > kMostDenied)
    return failed(fmt::format("{} device files are more than a filter holds", denied.size()));
  return version == 2 ? attach(cgroup, denied) : write_denials(cgroup, denied);
}

}  // namespace remuda::confine
