// RunBoard: where a job says how its run goes: a file without a name that its keeper has made, and whose descriptor its
// processes inherit (REMUDA_RUN_FD). It holds one JSON text, {"step": 7, "steps": 100, "step_s": 0.5, "parts":
// [{"device": ID, "share": 0.5, "waiting": 0.1}]} and what else RunNotice has, which is written over as a whole. Nobody
// waits for anybody by it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/file.h"
#include "pool/run_notice.h"

namespace remuda::run {

/// The keeper's side; one thread.
class RunBoard {
 public:
  /// How often a keeper looks at it.
  static constexpr double kLook_s = 15;

  /// Without a file where the system gives none: then nothing is ever read.
  RunBoard();
  int fd() const { return file_.get(); }
  /// What was written since the last call, also where it is the same again; nothing where that is no notice.
  std::optional<pool::RunNotice> read();

 private:
  Fd file_;
  std::string last_;
  int64_t last_written_ns_ = 0;
};

/// The job's side: the descriptor that the environment names, where it is such a file indeed; -1: none.
int run_board_fd();
/// Writes over what is there. What cannot be written is left out.
void write_notice(int fd, const pool::RunNotice& notice);

}  // namespace remuda::run
