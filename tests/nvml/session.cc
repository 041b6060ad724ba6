#include "tests/nvml/session.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

#include "base/env.h"

namespace remuda::tests::nvml {
namespace {

constexpr std::chrono::minutes kHang{10};

bool concerns(const std::set<int>& gpus, const Gpu& gpu) {
  return gpus.contains((gpu.parent ? *gpu.parent : gpu).index);
}

}  // namespace

Session& Session::instance() {
  static Session session;
  return session;
}

Result<void> Session::load() {
  REMUDA_ASSIGN(faults_, parse_faults(env::get(env::test_nvml_faults).value_or("")));
  REMUDA_ASSIGN(machine_, Machine::load(env::get(env::test_nvml).value_or("")));
  return {};
}

Code Session::start() {
  const std::lock_guard lock(mutex_);
  if (!machine_) {
    if (const auto loaded = load(); !loaded) {
      std::fprintf(stderr, "test NVML: %s\n", loaded.error().message.c_str());
      return kUnknown;
    }
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(faults_.slow_init_ms));
  if (faults_.init == kSuccess) ++starts_;
  return faults_.init;
}

Code Session::stop() {
  const std::lock_guard lock(mutex_);
  if (starts_ == 0) return kUninitialized;
  --starts_;
  return kSuccess;
}

const Machine* Session::machine() const {
  const std::lock_guard lock(mutex_);
  return starts_ > 0 ? machine_.get() : nullptr;
}

Code admit(Handle handle) {
  const Session& session = Session::instance();
  const Machine* machine = session.machine();
  if (!machine) return kUninitialized;
  if (!handle) return kInvalidArgument;
  if (!machine->owns(handle) || concerns(session.faults().crash, *handle)) std::raise(SIGSEGV);
  if (concerns(session.faults().hang, *handle)) std::this_thread::sleep_for(kHang);
  return kSuccess;
}

}  // namespace remuda::tests::nvml
