// Session: the library's one state. Started by nvmlInit as often as it is stopped by nvmlShutdown.
//
// Any thread may call. When the machine's file is another one than before, as after a rename, it is loaded anew: so
// things happen to the machine while the library is in use. A machine once loaded stays for the life of the process,
// and a handle stands for the same GPU of the newest one.
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

  /// Reads what env::test_nvml and env::test_nvml_faults name, the first time. What is wrong with them goes to standard
  /// error, and the code is kUnknown.
  Code start();
  Code stop();
  /// The newest machine; nothing while the library is not started.
  const Machine* machine();
  /// The GPU or instance behind a handle that some machine gave out, as it is now; null for any other handle.
  Handle newest(Handle handle);
  const Faults& faults() const { return faults_; }

 private:
  Result<void> load();
  void load_again();

  std::mutex mutex_;
  int starts_ = 0;
  FileId file_{};
  std::vector<std::unique_ptr<Machine>> machines_;  ///< the last one counts
  Faults faults_;
};

/// Whether the calling function may work on this device: started, a handle of this library, and no fault in the way. A
/// null handle is an invalid argument; one that the library never gave out crashes, as the real library does.
Code admit(Handle handle);

}  // namespace remuda::tests::nvml
