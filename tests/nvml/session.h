// Session: the library's one state. Started by nvmlInit as often as it is stopped by nvmlShutdown.
//
// Any thread may call; a machine once loaded stays for the life of the process, so that a handle in use survives a
// shutdown by another thread.
#pragma once

#include <memory>
#include <mutex>

#include "tests/nvml/faults.h"
#include "tests/nvml/machine.h"

namespace remuda::tests::nvml {

class Session {
 public:
  static Session& instance();

  /// Reads what env::test_nvml and env::test_nvml_faults name, the first time. What is wrong with them goes to standard
  /// error, and the code is kUnknown.
  Code start();
  Code stop();
  /// The machine; nothing while the library is not started.
  const Machine* machine() const;
  const Faults& faults() const { return faults_; }

 private:
  Result<void> load();

  mutable std::mutex mutex_;
  int starts_ = 0;
  std::unique_ptr<Machine> machine_;
  Faults faults_;
};

/// Whether the calling function may work on this device: started, a handle of this library, and no fault in the way. A
/// null handle is an invalid argument; one that the library never gave out crashes, as the real library does.
Code admit(Handle handle);

}  // namespace remuda::tests::nvml
