#include "run/mail.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pwd.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/env.h"
#include "base/local_time.h"
#include "base/named_lines.h"
#include "base/text.h"
#include "pool/stage.h"

namespace remuda::run {
namespace {

constexpr size_t kLongestAddress = 254;  // RFC 5321, 4.5.3.1.3, without the angle brackets

bool is_in_address(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || std::string_view(".@_+-=%").find(c) != std::string_view::npos;
}

/// Header lines are ASCII (RFC 5322, 2.2), so a name that is not stands in the body alone.
std::string subject_of(const pool::Job& job) {
  const bool is_plain = std::ranges::all_of(job.name, [](char c) { return c >= ' ' && c <= '~'; });
  const std::string name = job.name.empty() || !is_plain ? "" : fmt::format(" ({})", job.name);
  return fmt::format("remuda: job {}{} {}", name_of(job), name, to_string(stage_of(job)));
}

std::string moment(double at_s) { return at_s > 0 ? local_time_text(at_s) : ""; }

}  // namespace

Result<std::string> mail_program() {
  std::vector<std::string> folders = split(env::get(env::path).value_or(""), ':');
  folders.insert(folders.end(), {"/usr/sbin", "/usr/lib"});
  for (const std::string& folder : folders)
    if (std::string path = folder + "/sendmail"; folder.starts_with('/') && ::access(path.c_str(), X_OK) == 0)
      return path;
  return usage_error(
      "--mail: this machine has no sendmail, the program that sends mail; one comes with postfix, exim or msmtp-mta. "
      "--at-end runs a command in its place");
}

Result<void> check_mail(const std::string& address) {
  const auto ats = std::ranges::count(address, '@');
  const bool is_address = !address.empty() && address.size() <= kLongestAddress && address.front() != '-' &&
                          std::ranges::all_of(address, is_in_address) && ats <= 1 && !address.starts_with('@') &&
                          !address.ends_with('@');
  if (!is_address)
    return usage_error(
        fmt::format("--mail: '{}' is no address; write one such as ada@example.org, or a user of this machine",
                    printable(address)));
  // A command that stands where the address should be is seldom a user's name.
  if (ats == 0 && !::getpwnam(address.c_str()))
    return usage_error(
        fmt::format("--mail: {} is no user of this machine; write an address such as ada@example.org", address));
  REMUDA_TRY(mail_program());
  return {};
}

std::string end_mail(const pool::Job& job, const std::string& host) {
  NamedLines body;
  body.add("job", fmt::format("{} on {}", name_of(job), host));
  body.add("name", job.name);
  body.add("state", to_string(stage_of(job)));
  body.add("exit", std::to_string(exit_status_of(job)));
  body.add("why", job.why);
  body.add("submitted", moment(job.submitted_s));
  body.add("started", moment(job.started_s));
  body.add("ended", moment(job.ended_s));
  if (job.started_s > 0) body.add("ran for", duration_text(std::max(0.0, job.ended_s - job.started_s)));
  body.add("command", fmt::format("{}", fmt::join(job.command, " ")));
  body.add("folder", job.folder);
  body.add("log", job.log);
  return fmt::format(
      "To: {}\nSubject: {}\nAuto-Submitted: auto-generated\nMIME-Version: 1.0\nContent-Type: text/plain; "
      "charset=UTF-8\nContent-Transfer-Encoding: 8bit\n\n{}",
      job.mail, subject_of(job), body.text());
}

std::string host_name() {
  char name[256] = "this machine";
  ::gethostname(name, sizeof name - 1);
  return printable(name);
}

}  // namespace remuda::run
