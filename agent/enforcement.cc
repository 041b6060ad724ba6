#include "agent/enforcement.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <unistd.h>
#include <utility>

#include "base/crc32c.h"
#include "confine/cgroup_place.h"

namespace remuda::agent {
namespace {

using confine::DeviceGuard;
using confine::DeviceNode;
using confine::GuardMode;
using confine::GuardRule;
using policy::Enforce;

constexpr double kLookEvery_s = 1;
constexpr size_t kMostSaid = 20, kMostUnsaid = 1000;  ///< of refusals, at one look, and those that wait for the next

bool is_guarded_by(Enforce enforce) { return enforce == Enforce::audit || enforce == Enforce::everyone; }

}  // namespace

Enforcement::Enforcement(Options options)
    : options_(std::move(options)), exempt_(options_.root), devices_(options_.dev) {}

void Enforcement::update(const policy::Policy& policy, const Inventory& inventory,
                         const std::vector<std::string>& others) {
  wanted_ = policy.enforce;
  if (!may_guard()) {
    if (is_guarded_by(wanted_) && options_.say)
      say_obstacle(said_of_guard_,
                   failed("jobs alone are kept from devices: more takes root and a tree of cgroups of version 2"));
    return;
  }
  exempt_names_ = policy.exempt;
  const std::vector<std::string> unknown =
      is_guarded_by(wanted_) ? note_nodes(inventory, others) : std::vector<std::string>();
  auto done = set_guard();
  if (done && !unknown.empty())
    done =
        failed(fmt::format("the driver does not report the device files of {}: {}", fmt::join(unknown, ", "),
                           hides_devices() ? "nobody but root and exempt units open what may be theirs, and they are "
                                             "granted to nobody"
                                           : "who opens any that may be theirs is said"));
  say_obstacle(said_of_guard_, done);
}

/// Returns the devices whose nodes are not known.
std::vector<std::string> Enforcement::note_nodes(const Inventory& inventory, const std::vector<std::string>& others) {
  std::vector<std::string> unknown;
  std::set<DeviceNode> given_out;
  labels_.clear();
  possible_.clear();
  unknown_.clear();
  for (const confine::DeviceNodes& device : confine::all_nodes(inventory, options_.sysfs)) {
    const Device* found = inventory.find(device.device);
    const std::string label = found ? found->label() : device.device;
    if (std::ranges::find(others, device.device) != others.end()) {
      given_out.insert(device.nodes.begin(), device.nodes.end());
      continue;
    }
    guarded_.insert(device.nodes.begin(), device.nodes.end());
    for (const DeviceNode& node : device.nodes) labels_.emplace(node, label);
    if (device.are_all) continue;
    unknown.push_back(label);
    unknown_.push_back(device.device);
    possible_.insert(device.possible.begin(), device.possible.end());
  }
  for (const DeviceNode& node : given_out) {
    guarded_.erase(node);
    possible_.erase(node);
  }
  return unknown;
}

/// Brings the guard in force that the policy wants, or takes it away.
Result<void> Enforcement::set_guard() {
  if (is_guarded_by(wanted_) && in_force_ == wanted_) {
    look_at_exempt();
    return apply();
  }
  if (!is_guarded_by(wanted_)) {
    if (in_force_ == wanted_) return {};
    guard_.reset();
    refused_.clear();
    REMUDA_ASSIGN(const bool was_there, DeviceGuard::remove(options_.root, options_.name));
    in_force_ = wanted_;
    if (was_there) options_.say("device files are not guarded any more");
    return {};
  }
  const GuardMode mode = wanted_ == Enforce::everyone ? GuardMode::refuse : GuardMode::report;
  REMUDA_ASSIGN(DeviceGuard guard, DeviceGuard::attach(options_.root, options_.name, mode));
  guard_ = std::make_unique<DeviceGuard>(std::move(guard));
  refused_.clear();  // of another mode
  go_on();
  in_force_ = wanted_;
  look_at_exempt();
  REMUDA_TRY(apply());
  options_.say(mode == GuardMode::refuse ? "device files are guarded: only root, exempt units and jobs open them"
                                         : "device files are watched: who would be refused is said here");
  return {};
}

/// What an agent before this one has guarded stays so, and what it has let to the jobs that run: a device of theirs may
/// be lost at the moment.
void Enforcement::go_on() {
  for (const GuardRule& rule : guard_->rules()) {
    if (rule.cgroup == 0) guarded_.insert({rule.major, rule.minor});
    for (auto& [_, job] : jobs_)
      if (job.cgroup == rule.cgroup) job.nodes.insert({rule.major, rule.minor});
  }
}

Result<void> Enforcement::apply() {
  if (!guard_) return {};
  std::set<GuardRule> rules;
  std::set<DeviceNode> guarded = guarded_;
  guarded.insert(possible_.begin(), possible_.end());
  for (const DeviceNode& node : guarded) {
    rules.insert({0, node.major, node.minor});
    for (const uint64_t cgroup : exempt_ids_) rules.insert({cgroup, node.major, node.minor});
  }
  for (const auto& [_, job] : jobs_)
    for (const DeviceNode& node : job.nodes) rules.insert({job.cgroup, node.major, node.minor});
  return guard_->set_rules(rules);
}

Result<void> Enforcement::let(int64_t job, const std::string& cgroup, const std::vector<DeviceNode>& nodes) {
  if (!may_guard()) return {};
  const bool is_below = cgroup.starts_with(options_.root + "/");
  const uint64_t id = is_below ? confine::cgroup_id(cgroup) : 0;
  if (id != 0)
    jobs_[job] = {id, {nodes.begin(), nodes.end()}};
  else
    jobs_.erase(job);
  if (!guard_) return {};
  const bool can_be_let = id != 0 || nodes.empty();
  const auto done = can_be_let ? apply() : failed("only a job in a cgroup of version 2 can be let to device files");
  if (!hides_devices()) {
    if (!done) say_obstacle(said_of_jobs_, done);
    return {};
  }
  return done ? done : failed("the policy keeps everyone from device files: " + done.error().message);
}

void Enforcement::withdraw(int64_t job) {
  if (jobs_.erase(job) > 0) say_obstacle(said_of_rules_, apply());
}

void Enforcement::look_at_exempt() {
  ExemptUnits::Found found = exempt_.look(exempt_names_);
  exempt_ids_ = std::move(found.cgroups);
  report_absent(found.absent);
}

/// Once for a list of exemptions: units come and go.
void Enforcement::report_absent(const std::vector<std::string>& absent) {
  std::string names = fmt::format("{}", fmt::join(exempt_names_, ", "));
  if (names == said_of_absent_) return;
  said_of_absent_ = std::move(names);
  if (!absent.empty())
    options_.say(
        fmt::format("these exempt units have no cgroup at the moment: {}; they do not run, or have another name "
                    "(systemctl show -p Id UNIT)",
                    fmt::join(absent, ", ")));
}

void Enforcement::step(double now_s) {
  if (!guard_) return exempt_.drain();  // of a guard that is gone
  if (now_s < next_look_s_ && !exempt_.has_news()) return;
  if (std::set<uint64_t> ids = exempt_.look(exempt_names_).cgroups; ids != exempt_ids_) {
    exempt_ids_ = std::move(ids);
    say_obstacle(said_of_rules_, apply());
  }
  if (now_s < next_look_s_) return;
  next_look_s_ = now_s + kLookEvery_s;
  report_refused();
}

void Enforcement::report_refused() {
  std::ranges::move(guard_->take_refused(), std::back_inserter(refused_));
  const char* verb = hides_devices() ? "was kept from" : "would be kept from";
  for (size_t i = 0; i < kMostSaid && !refused_.empty(); ++i) {
    const confine::Refused one = std::move(refused_.front());
    refused_.pop_front();
    const auto label = labels_.find(one.node);
    options_.say(fmt::format("process {} ({}) of user {} {} {} (device file {}:{})", one.pid, one.command, one.uid,
                             verb, label == labels_.end() ? "a device" : label->second, one.node.major,
                             one.node.minor));
  }
  if (refused_.size() <= kMostUnsaid) return;
  options_.say(fmt::format("and so {} {} more", verb, refused_.size()));
  refused_.clear();
}

/// An obstacle that lasts is said when it comes.
void Enforcement::say_obstacle(std::string& said, const Result<void>& done) {
  const std::string obstacle =
      done ? "" : fmt::format("enforce = \"{}\": {}", to_string(wanted_), done.error().message);
  if (obstacle != said && !obstacle.empty()) options_.say(obstacle);
  said = obstacle;
}

Enforcement::Options guard_of(const std::string& pool, const std::function<void(const std::string&)>& say) {
  Enforcement::Options options{.name = fmt::format("remuda_{:08x}", crc32c(pool)), .say = say};
  for (const confine::CgroupPlace& place : confine::own_cgroup_places())
    if (place.version == 2 && ::geteuid() == 0) options.root = place.mount;
  return options;
}

}  // namespace remuda::agent
