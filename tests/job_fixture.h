// Tests only: `remuda` on a pool of its own, with a check that nothing is left in it.
#pragma once

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "tests/program.h"

namespace remuda::tests {

/// The machine is a recorded one of eight GPUs, unless a fixture chooses another. When a test ends, no lease may be
/// left, and no process with the pool's folder in its environment.
class JobTest : public testing::Test {
 protected:
  /// Ctrl-C, Ctrl-\ and the end of a terminal have their usual effect, also where a shell has started the tests in the
  /// background, or nohup(1) did, and ignores them, which all processes would inherit.
  JobTest();
  void TearDown() override;

  /// The flags after the subcommand's name.
  virtual std::vector<std::string> machine() const;
  /// XDG_STATE_HOME: where the pool is; OUT: the scratch folder. Claims on devices are separate from those outside this
  /// test.
  virtual process::Environment environment() const;

  /// `remuda SUBCOMMAND --machine ... ARGUMENTS`.
  std::vector<std::string> line(const std::vector<std::string>& arguments) const;
  Finished ask(const std::vector<std::string>& arguments) const;
  std::unique_ptr<RunningProgram> begin(const std::vector<std::string>& arguments) const;

  /// Starts a script in the background; returns the job's number, the only output of `remuda run -d`.
  std::string detach(const std::string& script, std::vector<std::string> flags = {}) const;

  Json pool() const;
  Json leases() const { return pool()["leases"]; }
  size_t waiting() const { return pool()["waiting"].size(); }
  bool comes_free() const;
  bool comes_to_wait(size_t jobs) const;
  /// Waits until a job has written that file completely, with a newline at the end; false when it does not.
  bool comes(const std::string& file) const;
  pid_t pid_in(const std::string& file) const;

  ScratchFolder folder_;
};

/// `text` as one word of a shell.
std::string shell_word(const std::string& text);

}  // namespace remuda::tests
