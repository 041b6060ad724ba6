#include "tests/job_fixture.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>

#include "base/env.h"
#include "base/file.h"

namespace remuda::tests {
namespace {

std::vector<pid_t> carriers_of(const std::string& entry) {
  std::vector<pid_t> found;
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    const auto environment = read_text(process.path().string() + "/environ");
    if (!environment || environment->find(entry) == std::string::npos) continue;
    const pid_t pid = std::atoi(process.path().filename().c_str());
    if (is_running(pid)) found.push_back(pid);
  }
  return found;
}

}  // namespace

JobTest::JobTest() {
  for (const int number : {SIGHUP, SIGINT, SIGQUIT}) ::signal(number, SIG_DFL);
}

void JobTest::TearDown() {
  EXPECT_TRUE(comes_free()) << "leases are left";
  std::vector<pid_t> left;
  eventually([&] { return (left = carriers_of("XDG_STATE_HOME=" + folder_.path("state"))).empty(); }, kPatience_s);
  EXPECT_THAT(left, testing::IsEmpty());
}

std::vector<std::string> JobTest::machine() const {
  return {"--machine", REMUDA_MACHINES "/nv-dgx1-v100-8gpu-4nic.json"};
}

process::Environment JobTest::environment() const {
  return {{"XDG_STATE_HOME", folder_.path("state")}, {"OUT", folder_.path("")}, {env::claims.name, folder_.path("")}};
}

std::vector<std::string> JobTest::line(const std::vector<std::string>& arguments) const {
  std::vector<std::string> argv{REMUDA_PROGRAM, arguments.at(0)};
  std::ranges::copy(machine(), std::back_inserter(argv));
  argv.insert(argv.end(), arguments.begin() + 1, arguments.end());
  return argv;
}

Finished JobTest::ask(const std::vector<std::string>& arguments) const { return run(line(arguments), environment()); }

std::unique_ptr<RunningProgram> JobTest::begin(const std::vector<std::string>& arguments) const {
  return std::make_unique<RunningProgram>(line(arguments), environment());
}

std::string JobTest::detach(const std::string& script, std::vector<std::string> flags) const {
  flags.insert(flags.begin(), {"run", "-d"});
  flags.insert(flags.end(), {"--", "/bin/sh", "-c", script});
  const Finished finished = ask(flags);
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_EQ(finished.err, "") << finished;
  EXPECT_TRUE(finished.out.ends_with('\n')) << finished;
  return finished.out.substr(0, finished.out.find('\n'));
}

Json JobTest::pool() const { return parse_json(ask({"ps", "--json"}).out, "ps").value_or(Json{}); }

bool JobTest::comes_free() const {
  return eventually([&] { return leases().empty(); }, kPatience_s);
}

bool JobTest::comes_to_wait(size_t jobs) const {
  return eventually([&] { return waiting() == jobs; }, kPatience_s);
}

bool JobTest::comes(const std::string& file) const {
  return eventually([&] { return folder_.has(file) && folder_.read(file).ends_with('\n'); }, kPatience_s);
}

pid_t JobTest::pid_in(const std::string& file) const {
  EXPECT_TRUE(comes(file)) << file;
  return std::stoi("0" + folder_.read(file));
}

std::string shell_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace remuda::tests
