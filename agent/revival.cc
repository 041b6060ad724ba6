#include "agent/revival.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>
#include <unistd.h>
#include <utility>

#include "base/env.h"
#include "base/text.h"

namespace remuda::agent {
namespace {

/// Each is a few processes for a moment; a job that waits can wait for that.
constexpr size_t kMostStarting = 4;
constexpr double kStartLook_s = 0.1, kStartAgain_s = 30, kStartPatience_s = 60;
/// A user's folder may come from a network that is not there yet.
constexpr int kMostFailures = 10;
constexpr size_t kMostOutput = 4096;

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

/// A keeper that is lost at once, again and again, is not started as often.
void Revival::remove(int64_t job) {
  const auto found = attempts_.find(job);
  if (found == attempts_.end()) return;
  found->second.is_wanted = false;
  found->second.failures = 0;
}

bool Revival::has_ended(int64_t job, Started& started, double now_s) {
  char bytes[1024];
  for (ssize_t got; (got = ::read(started.process.output(), bytes, sizeof bytes)) > 0;)
    if (started.said.size() < kMostOutput) started.said.append(bytes, static_cast<size_t>(got));
  const auto state = started.process.exit_state();
  if (!state && now_s < started.since_s + kStartPatience_s) return false;
  Attempt& attempt = attempts_.at(job);
  if (state && state->ok()) return true;
  ++attempt.failures;
  const std::string line = last_line(started.said);
  attempt.why = !line.empty() ? line
                : state       ? "the program that starts it " + to_string(*state)
                              : "that takes too long";
  return true;
}

void Revival::begin(int64_t job, Attempt& attempt, double now_s) {
  attempt.not_before_s = now_s + kStartAgain_s;
  auto process = start_ ? start_(attempt.job) : failed("this agent starts none");
  if (process) {
    started_.emplace(job, Started{std::move(*process), now_s, {}});
    return;
  }
  ++attempt.failures;
  attempt.why = process.error().message;
}

std::vector<Revival::GivenUp> Revival::step(double now_s) {
  if (now_s < next_s_) return {};
  for (auto one = started_.begin(); one != started_.end();)
    one = has_ended(one->first, one->second, now_s) ? started_.erase(one) : std::next(one);
  next_s_ = started_.empty() ? kNever_s : now_s + kStartLook_s;
  std::vector<GivenUp> given_up;
  for (auto& [job, attempt] : attempts_) {
    if (!attempt.is_wanted || started_.contains(job)) continue;
    if (attempt.failures >= kMostFailures) {
      given_up.push_back({job, "its process was lost, and cannot be started again: " + attempt.why});
    } else if (now_s < attempt.not_before_s) {
      next_s_ = std::min(next_s_, attempt.not_before_s);
    } else {
      next_s_ = std::min(next_s_, now_s + kStartLook_s);
      if (started_.size() < kMostStarting) begin(job, attempt, now_s);
    }
  }
  for (const GivenUp& one : given_up) attempts_.erase(one.job);
  std::erase_if(attempts_, [&](const auto& one) {
    return !one.second.is_wanted && !started_.contains(one.first) && now_s >= one.second.not_before_s;
  });
  return given_up;
}

Revival::Start reviver_at(const std::string& socket, const std::vector<std::string>& machine) {
  return [socket, machine](const pool::Job& job) -> Result<process::ChildProcess> {
    std::error_code error;
    const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
    if (error) return failed(fmt::format("cannot find this program: {}", error.message()));
    process::ProcessSpec spec{.argv = {program, "rerun", std::to_string(job.id)}, .folder = "/"};
    std::ranges::copy(machine, std::back_inserter(spec.argv));
    spec.environment.emplace_back(env::agent.name, socket);
    const bool is_own = job.uid == static_cast<int>(::geteuid());
    if (!is_own && ::geteuid() != 0) return failed("an agent that is not root starts nothing for others");
    if (!is_own) {  // in a session of its own: a terminal of this one's is not for users
      const std::vector<std::string> as_user{
          "setsid", "--wait", "choom", "--adjust=0", "--", "runuser", "--user=" + job.user, "--"};
      spec.argv.insert(spec.argv.begin(), as_user.begin(), as_user.end());
    }
    return process::ChildProcess::spawn(std::move(spec));
  };
}

}  // namespace remuda::agent
