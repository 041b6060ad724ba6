#include "confine/device_guard.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <ranges>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"
#include "confine/bpf.h"

namespace remuda::confine {
namespace {

using Command = std::array<char, 16>;  ///< TASK_COMM_LEN of the kernel

/// A change of these, or of what the map means, takes another name: an older program's map is then left to it.
const std::string kRulesName = "remuda_rules_1";
constexpr bpf::MapShape kRulesShape{BPF_MAP_TYPE_HASH, sizeof(GuardRule), 1, 1 << 17, BPF_F_NO_PREALLOC};
constexpr bpf::MapShape kRefusedShape{BPF_MAP_TYPE_LRU_HASH, 16, sizeof(Command), 4096, 0};

/// Below the root; a cgroup that is let to a device is not deeper.
constexpr int kDeepestLevel = 32;

using bpf::kAnswer, bpf::kFirst, bpf::kFourth, bpf::kSecond, bpf::kStack, bpf::kThird, bpf::Register;
constexpr Register kUser = bpf::kSaved6, kMajor = bpf::kSaved7, kMinor = bpf::kSaved8;
/// Where on its stack a program has what it passes by address.
constexpr int kRuleAt = -16, kAttemptAt = -32, kCommandAt = -48;

class Assembler {
 public:
  void add(const bpf_insn& step) { steps_.push_back(step); }
  void call(int function) { add({BPF_JMP | BPF_CALL, 0, 0, 0, function}); }
  void copy(Register to, Register from) { add({BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0}); }
  void address(Register to, int at) {
    copy(to, kStack);
    add({BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, at});
  }
  void store(int bytes, int at, Register from) {
    const int size = bytes == 8 ? BPF_DW : BPF_W;
    add({static_cast<unsigned char>(BPF_STX | BPF_MEM | size), kStack, from, static_cast<short>(at), 0});
  }
  void map(Register to, int fd) {
    add({BPF_LD | BPF_DW | BPF_IMM, to, BPF_PSEUDO_MAP_FD, 0, fd});
    add({});
  }
  /// A jump to the last part of the program, which allows, or to the part before, which refuses.
  void allow_if(int comparison, Register value, int other) { jump(allowing_, comparison, value, other); }
  void refuse_if(int comparison, Register value, int other) { jump(refusing_, comparison, value, other); }
  void begin_refusing() { land(refusing_); }
  std::vector<bpf_insn> finish() {
    land(allowing_);
    add(bpf::set(kAnswer, 1));
    add(bpf::leave());
    return std::move(steps_);
  }

 private:
  void jump(std::vector<size_t>& from, int comparison, Register value, int other) {
    from.push_back(steps_.size());
    add(bpf::skip_if(comparison, value, static_cast<unsigned>(other), 0));
  }
  void land(const std::vector<size_t>& from) {
    for (const size_t at : from) steps_[at].off = static_cast<short>(steps_.size() - at - 1);
  }
  std::vector<bpf_insn> steps_;
  std::vector<size_t> allowing_, refusing_;
};

/// The answer is null unless there is a rule for the cgroup on the stack.
void look_up_rule(Assembler& program, int rules) {
  program.map(kFirst, rules);
  program.address(kSecond, kRuleAt);
  program.call(BPF_FUNC_map_lookup_elem);
}

void note_attempt(Assembler& program, int refused) {
  program.call(BPF_FUNC_get_current_pid_tgid);
  program.add({BPF_ALU64 | BPF_RSH | BPF_K, kAnswer, 0, 0, 32});
  program.store(4, kAttemptAt, kUser);
  program.store(4, kAttemptAt + 4, kAnswer);
  program.store(4, kAttemptAt + 8, kMajor);
  program.store(4, kAttemptAt + 12, kMinor);
  program.address(kFirst, kCommandAt);
  program.add(bpf::set(kSecond, sizeof(Command)));
  program.call(BPF_FUNC_get_current_comm);
  program.map(kFirst, refused);
  program.address(kSecond, kAttemptAt);
  program.address(kThird, kCommandAt);
  program.add(bpf::set(kFourth, BPF_ANY));
  program.call(BPF_FUNC_map_update_elem);
}

tl::unexpected<Error> cannot_use(const std::string& root, const char* what) {
  return failed(fmt::format("{} {}: {}", root, what, errno_text(errno)));
}

Result<Fd> open_root(const std::string& root) {
  Fd folder(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder ? Result<Fd>(std::move(folder)) : cannot_use(root, "cannot be opened");
}

struct Attached {
  Fd program;
  std::optional<bpf::Map> rules;
};

/// The program of that number, where it has this name; its maps are no more than ours has.
std::optional<Attached> find_program(uint32_t id, const std::string& name) {
  bpf_attr attributes{};
  attributes.prog_id = id;
  Attached found{Fd(static_cast<int>(bpf::call(BPF_PROG_GET_FD_BY_ID, attributes))), {}};
  uint32_t maps[8] = {};
  bpf_prog_info info{};
  info.nr_map_ids = std::size(maps);
  info.map_ids = bpf::pointer(maps);
  attributes = {};
  attributes.info.bpf_fd = static_cast<uint32_t>(found.program.get());
  attributes.info.info_len = sizeof info;
  attributes.info.info = bpf::pointer(&info);
  if (!found.program || bpf::call(BPF_OBJ_GET_INFO_BY_FD, attributes) != 0 || name != info.name) return std::nullopt;
  for (size_t i = 0; i < std::min<size_t>(info.nr_map_ids, std::size(maps)) && !found.rules; ++i)
    found.rules = bpf::Map::find(maps[i], kRulesName, kRulesShape);
  return found;
}

Result<std::vector<Attached>> find_attached(int root, const std::string& path, const std::string& name) {
  std::array<uint32_t, 64> ids{};  // the kernel's limit for a cgroup
  bpf_attr attributes{};
  attributes.query.target_fd = static_cast<uint32_t>(root);
  attributes.query.attach_type = BPF_CGROUP_DEVICE;
  attributes.query.prog_ids = bpf::pointer(ids.data());
  attributes.query.prog_cnt = ids.size();
  if (bpf::call(BPF_PROG_QUERY, attributes) != 0) return cannot_use(path, "does not report its device filters");
  std::vector<Attached> found;
  for (size_t i = 0; i < std::min<size_t>(attributes.query.prog_cnt, ids.size()); ++i)
    if (auto one = find_program(ids[i], name)) found.push_back(std::move(*one));
  return found;
}

bool detach(int root, int program) {
  bpf_attr attributes{};
  attributes.target_fd = static_cast<uint32_t>(root);
  attributes.attach_bpf_fd = static_cast<uint32_t>(program);
  attributes.attach_type = BPF_CGROUP_DEVICE;
  return bpf::call(BPF_PROG_DETACH, attributes) == 0;
}

/// In place of `old`, in one step, where that is a program.
bool put_in_force(int root, int program, int old) {
  bpf_attr attributes{};
  attributes.target_fd = static_cast<uint32_t>(root);
  attributes.attach_bpf_fd = static_cast<uint32_t>(program);
  attributes.attach_type = BPF_CGROUP_DEVICE;
  attributes.attach_flags = BPF_F_ALLOW_MULTI;  // beside those of others, and of the cgroups below
  if (old >= 0) attributes.attach_flags |= BPF_F_REPLACE;
  if (old >= 0) attributes.replace_bpf_fd = static_cast<uint32_t>(old);
  return bpf::call(BPF_PROG_ATTACH, attributes) == 0;
}

}  // namespace

uint64_t cgroup_id(const std::string& folder) {
  struct stat info{};
  return ::stat(folder.c_str(), &info) == 0 ? info.st_ino : 0;
}

std::vector<bpf_insn> guard_program(GuardMode mode, int rules, int refused) {
  constexpr int kTypeBits = 0xffff;  // the upper half is the kind of access: read, write, mknod
  Assembler program;
  program.add(bpf::load_word(kMajor, kFirst, offsetof(bpf_cgroup_dev_ctx, major)));
  program.add(bpf::load_word(kMinor, kFirst, offsetof(bpf_cgroup_dev_ctx, minor)));
  program.add(bpf::load_word(kSecond, kFirst, offsetof(bpf_cgroup_dev_ctx, access_type)));
  program.add(bpf::keep_bits(kSecond, kTypeBits));
  program.allow_if(BPF_JNE, kSecond, BPF_DEVCG_DEV_CHAR);
  program.add(bpf::set(kSecond, 0));
  program.store(8, kRuleAt, kSecond);
  program.store(4, kRuleAt + 8, kMajor);
  program.store(4, kRuleAt + 12, kMinor);
  look_up_rule(program, rules);
  program.allow_if(BPF_JEQ, kAnswer, 0);  // nobody guards it
  program.call(BPF_FUNC_get_current_uid_gid);
  program.copy(kUser, kAnswer);
  program.add({BPF_ALU64 | BPF_LSH | BPF_K, kUser, 0, 0, 32});
  program.add({BPF_ALU64 | BPF_RSH | BPF_K, kUser, 0, 0, 32});  // the upper half is the group
  program.allow_if(BPF_JEQ, kUser, 0);
  for (int level = 0; level <= kDeepestLevel; ++level) {
    program.add(bpf::set(kFirst, level));
    program.call(BPF_FUNC_get_current_ancestor_cgroup_id);
    program.refuse_if(BPF_JEQ, kAnswer, 0);  // it is not as deep
    program.store(8, kRuleAt, kAnswer);
    look_up_rule(program, rules);
    program.allow_if(BPF_JNE, kAnswer, 0);
  }
  program.begin_refusing();
  note_attempt(program, refused);
  program.add(bpf::set(kAnswer, mode == GuardMode::report ? 1 : 0));
  program.add(bpf::leave());
  return program.finish();
}

DeviceGuard::DeviceGuard(bpf::Map rules, bpf::Map refused) : rules_(std::move(rules)), refused_(std::move(refused)) {
  const std::vector<GuardRule> rules_in_force = rules_.keys<GuardRule>();
  known_.insert(rules_in_force.begin(), rules_in_force.end());
}

Result<DeviceGuard> DeviceGuard::attach(const std::string& root, const std::string& name, GuardMode mode) {
  REMUDA_ASSIGN(const Fd folder, open_root(root));
  REMUDA_ASSIGN(std::vector<Attached> before, find_attached(folder.get(), root, name));
  std::optional<bpf::Map> rules;
  for (Attached& one : before)
    if (!rules) rules = std::move(one.rules);
  if (!rules) {
    REMUDA_ASSIGN(rules, bpf::Map::make(kRulesName, kRulesShape));
  }
  REMUDA_ASSIGN(bpf::Map refused, bpf::Map::make("remuda_refused", kRefusedShape));
  REMUDA_ASSIGN(const Fd program, bpf::load_device_program(name, guard_program(mode, rules->fd(), refused.fd())));
  if (!put_in_force(folder.get(), program.get(), before.empty() ? -1 : before.front().program.get()))
    return cannot_use(root, "takes no device filter");
  for (size_t i = 1; i < before.size(); ++i) detach(folder.get(), before[i].program.get());
  return DeviceGuard(std::move(*rules), std::move(refused));
}

Result<bool> DeviceGuard::remove(const std::string& root, const std::string& name) {
  REMUDA_ASSIGN(const Fd folder, open_root(root));
  REMUDA_ASSIGN(const std::vector<Attached> there, find_attached(folder.get(), root, name));
  for (const Attached& one : there)
    if (!detach(folder.get(), one.program.get())) return cannot_use(root, "keeps its device filter");
  return !there.empty();
}

Result<void> DeviceGuard::set_rules(const std::set<GuardRule>& rules) {
  constexpr uint8_t kThere = 1;
  bool all = true;
  for (const GuardRule& rule : std::ranges::reverse_view(rules)) {  // cgroup 0, which guards, comes last
    if (known_.contains(rule)) continue;
    if (rules_.put(&rule, &kThere))
      known_.insert(rule);
    else
      all = false;
  }
  std::erase_if(known_, [&](const GuardRule& rule) {
    if (rules.contains(rule)) return false;
    rules_.erase(&rule);
    return true;
  });
  if (all) return {};
  return failed(fmt::format("the kernel has no room for {} rules about device files", rules.size()));
}

std::vector<Refused> DeviceGuard::take_refused() {
  const std::vector<Attempt> there = refused_.keys<Attempt>();
  std::vector<Refused> fresh;
  for (const Attempt& one : there) {
    Command command{};
    if (told_.contains(one) || !refused_.get(&one, command.data())) continue;
    command.back() = '\0';
    fresh.push_back({static_cast<int>(one.uid),
                     static_cast<int>(one.pid),
                     {one.major, one.minor},
                     printable(std::string(command.data()))});
  }
  told_ = {there.begin(), there.end()};
  return fresh;
}

}  // namespace remuda::confine
