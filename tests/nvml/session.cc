#include "tests/nvml/session.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <sys/stat.h>
#include <thread>

#include "base/env.h"

namespace remuda::tests::nvml {
namespace {

constexpr std::chrono::minutes kHang{10};

/// Identifies a file; its time distinguishes it from a new file with the inode number of a removed one. Zeros where
/// there is none.
FileId id_of(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return {};
  return {static_cast<int64_t>(info.st_ino), info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

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
  const std::string path = env::get(env::test_nvml).value_or("");
  file_ = id_of(path);
  REMUDA_ASSIGN(auto machine, Machine::load(path));
  machines_.push_back(std::move(machine));
  return {};
}

void Session::load_again() {
  const std::string path = env::get(env::test_nvml).value_or("");
  const FileId file = id_of(path);
  if (file == FileId{} || file == file_) return;
  auto machine = Machine::load(path);
  if (!machine) return;  // the file is incomplete
  file_ = file;
  machines_.push_back(std::move(*machine));
}

Code Session::start() {
  const std::lock_guard lock(mutex_);
  if (machines_.empty()) {
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

const Machine* Session::machine() {
  const std::lock_guard lock(mutex_);
  if (starts_ == 0) return nullptr;
  load_again();
  return machines_.back().get();
}

Handle Session::newest(Handle handle) {
  const std::lock_guard lock(mutex_);
  const auto owner = std::ranges::find_if(machines_, [&](const auto& machine) { return machine->owns(handle); });
  if (owner == machines_.end()) return nullptr;
  const auto& gpus = machines_.back()->gpus();
  const size_t index = static_cast<size_t>((handle->parent ? handle->parent : handle)->index);
  if (index >= gpus.size()) return handle;
  if (!handle->parent) return gpus[index].get();
  const auto& instances = gpus[index]->instances;
  const auto instance = static_cast<size_t>(handle->index);
  return instance < instances.size() ? instances[instance].get() : handle;
}

Code admit(Handle handle) {
  Session& session = Session::instance();
  if (!session.machine()) return kUninitialized;
  if (!handle) return kInvalidArgument;
  if (!session.newest(handle) || concerns(session.faults().crash, *handle)) std::raise(SIGSEGV);
  if (concerns(session.faults().hang, *handle)) std::this_thread::sleep_for(kHang);
  return kSuccess;
}

}  // namespace remuda::tests::nvml
