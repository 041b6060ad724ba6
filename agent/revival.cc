#include "agent/revival.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fmt/format.h>
#include <iterator>
#include <tuple>
#include <unistd.h>
#include <utility>

#include "base/env.h"
#include "base/text.h"
#include "process/tree.h"

namespace remuda::agent {
namespace {

/// Each is a few processes for a moment; a job that waits can wait for that.
constexpr int kMostStarting = 4, kMostOfUser = kMostStarting - 1;
constexpr double kStartLook_s = 0.1, kStartAgain_s = 30;
/// One that hangs keeps others waiting for the first of these, and no longer where it has failed more often; a machine
/// that has just been started, with the keepers of all users, may need the last.
constexpr double kFirstPatience_s = 10, kLongestPatience_s = 80;
/// A user's folder may come from a network that is not there yet.
constexpr int kMostFailures = 10;
constexpr size_t kMostOutput = 4096;
/// Where Debian has env(1), setsid(1), choom(1) and runuser(1).
constexpr const char* kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::string last_line(const std::string& text) {
  std::string last;
  for (const std::string& line : split(text, '\n'))
    if (!line.empty()) last = line;
  constexpr std::string_view kOwn = "remuda: ";
  return printable(last.starts_with(kOwn) ? last.substr(kOwn.size()) : last);
}

}  // namespace

void Revival::add(const pool::Job& job) {
  Attempt& attempt = attempts_[job.id];
  attempt.job = job;
  attempt.is_wanted = true;
  next_s_ = 0;
}

/// A keeper that is lost at once, again and again, is not started as often: step() forgets the rest.
void Revival::remove(int64_t job) {
  for (Started& started : started_) {
    if (started.job != job || std::exchange(started.has_worked, true)) continue;
    int& at_once = at_once_.try_emplace(started.user, 1).first->second;
    at_once = std::min(2 * at_once, kMostOfUser);
  }
  const auto found = attempts_.find(job);
  if (found == attempts_.end()) return;
  found->second.is_wanted = false;
  found->second.failures = 0;
  next_s_ = 0;  // the user's next one
}

bool Revival::has_tried(int64_t job, double now_s) const {
  const auto found = attempts_.find(job);
  return found != attempts_.end() && now_s < found->second.not_before_s;
}

bool Revival::has_ended(Started& started, double now_s) {
  char bytes[kMostOutput];  // once for each look: a user's environment can make it write without end
  const ssize_t got = ::read(started.process.output(), bytes, sizeof bytes);
  if (got > 0 && started.said.size() < kMostOutput) started.said.append(bytes, static_cast<size_t>(got));
  const auto state = started.process.exit_state();
  if (!state && now_s < started.until_s) return false;
  const auto found = attempts_.find(started.job);
  if (started.has_worked || found == attempts_.end()) return true;
  if (!state)  // in a session of their own, so not killed with it
    for (const process::ProcessId& one : process::all_descendants(started.process.pid()))
      process::send_signal(one, SIGTERM);
  const std::string line = last_line(started.said);
  fail(found->second, !line.empty()  ? line
                      : !state       ? "that takes too long"
                      : !state->ok() ? "the program that starts it " + to_string(*state)
                                     : "the program that starts it ended, and no process keeps the job");
  return true;
}

void Revival::fail(Attempt& attempt, std::string why) {
  ++attempt.failures;
  at_once_.erase(attempt.job.uid);
  attempt.why = std::move(why);
  failed_.push_back(attempt.job.id);
}

int Revival::starting_for(int user) const {
  return static_cast<int>(
      std::ranges::count_if(started_, [&](const Started& one) { return one.user == user && !one.has_worked; }));
}

/// How many more may be started.
int Revival::room_of(int user) const {
  const auto known = at_once_.find(user);
  return (known == at_once_.end() ? 1 : known->second) - starting_for(user);
}

/// Ends one that is slow, and was so before, where all places are taken: its user's folder may be dead.
bool Revival::has_room_for(const Attempt& attempt, double now_s) {
  if (std::ranges::count(started_, false, &Started::has_worked) < kMostStarting) return true;
  const auto slow = std::ranges::find_if(started_, [&](const Started& one) {
    const auto its = attempts_.find(one.job);
    return !one.has_worked && now_s >= one.begun_s + kFirstPatience_s && its != attempts_.end() &&
           its->second.failures > attempt.failures;
  });
  if (slow == started_.end()) return false;
  slow->until_s = now_s;
  if (has_ended(*slow, now_s)) started_.erase(slow);
  return true;
}

void Revival::begin(Attempt& attempt, double now_s) {
  attempt.not_before_s = now_s + kStartAgain_s;
  auto process = start_ ? start_(attempt.job) : failed("this agent starts none");
  if (process) {
    const double patience_s = std::min(kLongestPatience_s, kFirstPatience_s * std::exp2(attempt.failures));
    started_.push_back({.process = std::move(*process),
                        .job = attempt.job.id,
                        .user = attempt.job.uid,
                        .begun_s = now_s,
                        .until_s = now_s + patience_s,
                        .said = ""});
    return;
  }
  fail(attempt, process.error().message);
}

/// Of each user for whom more may be started, those jobs that have been due longest.
std::map<int, std::vector<Revival::Attempt*>> Revival::due_of_users(double now_s) {
  std::map<int, std::vector<Attempt*>> due;
  for (auto& [_, attempt] : attempts_) {
    if (!attempt.is_wanted || room_of(attempt.job.uid) <= 0) continue;
    next_s_ = std::min(next_s_, std::max(attempt.not_before_s, now_s + kStartLook_s));
    if (now_s >= attempt.not_before_s) due[attempt.job.uid].push_back(&attempt);
  }
  for (auto& [user, attempts] : due) {
    std::ranges::stable_sort(attempts, {}, &Attempt::not_before_s);
    attempts.resize(std::min(attempts.size(), static_cast<size_t>(room_of(user))));
  }
  return due;
}

/// Users have their turns round by round; one for whom some are being started has had those.
std::vector<Revival::Attempt*> Revival::in_turn(double now_s) {
  std::vector<std::tuple<int, int, bool, int, Attempt*>> turns;
  for (const auto& [user, attempts] : due_of_users(now_s)) {
    int round = starting_for(user);
    for (Attempt* attempt : attempts) turns.emplace_back(attempt->failures, round++, user <= last_user_, user, attempt);
  }
  std::ranges::sort(turns);
  std::vector<Attempt*> attempts;
  for (const auto& turn : turns) attempts.push_back(std::get<Attempt*>(turn));
  return attempts;
}

std::vector<Revival::GivenUp> Revival::step(double now_s) {
  if (now_s < next_s_) return {};
  std::erase_if(started_, [&](Started& one) { return has_ended(one, now_s); });
  std::erase_if(attempts_, [&](const auto& one) { return !one.second.is_wanted && now_s >= one.second.not_before_s; });
  next_s_ = started_.empty() ? kNever_s : now_s + kStartLook_s;
  std::vector<GivenUp> given_up;
  for (Attempt* const attempt : in_turn(now_s)) {
    if (attempt->failures >= kMostFailures) {
      given_up.push_back({attempt->job.id, "the process that keeps it cannot be started: " + attempt->why});
      attempt->not_before_s = now_s + kStartAgain_s;
    } else if (has_room_for(*attempt, now_s)) {
      begin(*attempt, now_s);
      last_user_ = attempt->job.uid;
    }
  }
  if (!started_.empty()) next_s_ = std::min(next_s_, now_s + kStartLook_s);
  return given_up;
}

Revival::Start reviver_at(const std::string& socket, const std::vector<std::string>& machine,
                          const std::string& program) {
  return [=](const pool::Job& job) -> Result<process::ChildProcess> {
    const bool is_root = ::geteuid() == 0;
    if (!is_root && job.uid != static_cast<int>(::geteuid()))
      return failed("an agent that is not root starts nothing for others");
    std::vector<std::string> words{"env", "--ignore-environment", fmt::format("{}={}", env::path.name, kPath),
                                   fmt::format("{}={}", env::agent.name, socket)};
    if (is_root) {  // in a session of its own: a terminal of this one's is not for users
      for (const char* word : {"setsid", "--wait", "choom", "--adjust=0", "--", "runuser"}) words.emplace_back(word);
      words.insert(words.end(), {"--user=" + job.user, "--"});
    } else {  // runuser(1) would say whose folder has what the job was started with
      for (const env::Variable& one : {env::home, env::state_home})
        if (const auto value = env::get(one)) words.push_back(fmt::format("{}={}", one.name, *value));
    }
    words.insert(words.end(), {program, "rerun", std::to_string(job.id)});
    std::ranges::copy(machine, std::back_inserter(words));
    return process::ChildProcess::spawn({.argv = std::move(words), .folder = "/"});
  };
}

}  // namespace remuda::agent
