// Session: the library's global state. Counts nvmlInit and nvmlShutdown, which come in pairs.
//
// Any thread may call. When the machine's file was replaced, as by a rename, it is loaded again: so the machine can
// change while the library is in use. A loaded machine stays in memory for the life of the process, and a handle refers
// to the same GPU of the newest one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/nvml/faults.h"
#include "tests/nvml/machine.h"

namespace remuda::tests::nvml {

/// Number and time.
using FileId = std::array<int64_t, 3>;

class Session {
 public:
  static Session& instance();

  /// The first time, reads env::test_nvml and env::test_nvml_faults. Errors in them are printed on standard error, and
  /// the code is kUnknown.
  Code start();
  Code stop();
  /// The newest machine; nothing while the library is not started.
  const Machine* machine();
  /// The GPU or instance of a handle that any loaded machine returned, in its current state; null for any other handle.
  Handle newest(Handle handle);
  const Faults& faults() const { return faults_; }

 private:
  Result<void> load();
  void load_again();

  std::mutex mutex_;
  int starts_ = 0;
  FileId file_{};
  std::vector<std::unique_ptr<Machine>> machines_;  ///< the last one is current
  Faults faults_;
};

/// Whether the calling function may use this device: the library is started, the handle is valid, and no fault is
/// simulated. A null handle is an invalid argument; one that the library never returned crashes, as with the real
/// library.
Code admit(Handle handle);

}  // namespace remuda::tests::nvml
