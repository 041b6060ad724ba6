#include <cstring>
#include <fmt/format.h>
#include <future>
#include <optional>
#include <thread>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "comm/nccl/factory.h"
#include "comm/nccl/lib.h"

namespace remuda::comm::nccl {
namespace {

constexpr double kSpin_s = 100e-6;   // most calls are taken sooner
constexpr double kSleep_s = 100e-6;  // then as long as that between two looks
constexpr double kAbortPatience_s = 5;

bool is_fine(Code code) { return code == kSuccess || code == kInProgress; }

std::string name_of(const Lib& lib) {
  return fmt::format("{} {}", lib.file == file_of("hip") ? "RCCL" : "NCCL", version_text(lib.version));
}

Error error_of(const Lib& lib, const char* call, Code code, Comm comm) {
  const char* last = lib.last_error(comm);
  std::string text = fmt::format("{}: {}: {}", name_of(lib), call, lib.error_text(code));
  if (last && *last) text += fmt::format(" ({})", printable(last));
  return {ErrorKind::failed, text, -1};
}

/// Calls into a library that hangs may do so themselves. One that does keeps its thread, and nothing else.
void abort_within(const Lib& lib, Comm comm, double patience_s) {
  std::promise<void> promise;
  const std::future<void> done = promise.get_future();
  std::thread([abort = lib.abort, comm, promise = std::move(promise)]() mutable {
    abort(comm);
    promise.set_value();
  }).detach();
  done.wait_for(std::chrono::duration<double>(patience_s));
}

class Collectives final : public DeviceCollectives {
 public:
  Collectives(const Lib& lib, int rank, int size, double timeout_s)
      : lib_(lib), rank_(rank), size_(size), timeout_s_(timeout_s) {}
  ~Collectives() override { abort(); }

  Result<void> join(const Id& id) {
    UniqueId unique;
    std::memcpy(&unique, id.data(), sizeof unique);
    Config config;
    const Code code = lib_.init_rank(&comm_, size_, unique, rank_, &config);
    return taken("ncclCommInitRankConfig", code);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string name() const override { return name_of(lib_); }
  DevicePromises promises() const override { return {.same_bits = false}; }
  void set_timeout(double seconds) override { timeout_s_ = seconds; }
  void take_equal_parts_at_once(bool on) override { at_once_ = on; }

  /// The part of each rank is reduced to it: for parts of any size, which the library's own reduce-scatter lacks.
  Result<void> reduce_scatter(Values values, const Parts& parts, void* stream) override {
    REMUDA_CHECK(values.type == Element::float32 || values.type == Element::float64, "a type that is added up here");
    const Type type = values.type == Element::float32 ? kFloat32 : kFloat64;
    if (is_one_call(parts))
      return one_call("ncclReduceScatter", parts, [&](Chunk own) {
        std::byte* const at = values.part(own).bytes.data();
        return lib_.reduce_scatter(values.bytes.data(), at, own.size(), type, kSum, comm_, stream);
      });
    return for_each_part("ncclReduce", parts, [&](Chunk part, int root) {
      std::byte* const at = values.part(part).bytes.data();
      return lib_.reduce(at, at, part.size(), type, kSum, root, comm_, stream);
    });
  }

  Result<void> gather_parts(std::span<std::byte> bytes, const Parts& parts, void* stream) override {
    if (is_one_call(parts))
      return one_call("ncclAllGather", parts, [&](Chunk own) {
        return lib_.all_gather(bytes.data() + own.begin, bytes.data(), own.size(), kUint8, comm_, stream);
      });
    return for_each_part("ncclBroadcast", parts, [&](Chunk part, int root) {
      std::byte* const at = bytes.data() + part.begin;
      return lib_.broadcast(at, at, part.size(), kUint8, root, comm_, stream);
    });
  }

  Result<void> check() override {
    if (!comm_) return failed(fmt::format("{} was ended", name()));
    Code state = kSuccess;
    const Code code = lib_.async_error(comm_, &state);
    if (code != kSuccess) return tl::unexpected(error_of(lib_, "ncclCommGetAsyncError", code, comm_));
    if (!is_fine(state)) return tl::unexpected(error_of(lib_, "in work under way", state, comm_));
    return {};
  }

  void abort() override {
    if (comm_) abort_within(lib_, std::exchange(comm_, nullptr), kAbortPatience_s);
  }

 private:
  bool is_one_call(const Parts& parts) const { return at_once_ && parts.are_equal() && parts.count() > 0; }

  /// In place: `give` is called with this rank's part.
  template <typename Give>
  Result<void> one_call(const char* call, const Parts& parts, Give give) {
    REMUDA_CHECK(parts.ranks() == size_, "each rank has a part");
    REMUDA_TRY(check());
    return taken(call, give(parts.of(rank_)));
  }

  /// One group, which the library takes as a whole.
  template <typename Give>
  Result<void> for_each_part(const char* call, const Parts& parts, Give give) {
    REMUDA_CHECK(parts.ranks() == size_, "each rank has a part");
    REMUDA_TRY(check());
    Code code = lib_.group_start();
    if (!is_fine(code)) return tl::unexpected(error_of(lib_, "ncclGroupStart", code, comm_));
    for (int root = 0; root < size_ && is_fine(code); ++root)
      if (parts.of(root).size() > 0) code = give(parts.of(root), root);
    const Code end = lib_.group_end();
    if (!is_fine(code)) return tl::unexpected(error_of(lib_, call, code, comm_));
    return taken("ncclGroupEnd", end);
  }

  /// Waits until the library has taken the call that returned `code`.
  Result<void> taken(const char* call, Code code) {
    const double start = monotonic_s();
    while (code == kInProgress) {
      const double waited = monotonic_s() - start;
      if (waited > timeout_s_) return failed(fmt::format("{} did not take {} within {:.0f} s", name(), call, waited));
      if (waited > kSpin_s) steady_clock().sleep_s(kSleep_s);
      if (const Code asked = lib_.async_error(comm_, &code); asked != kSuccess) code = asked;
    }
    if (code != kSuccess) return tl::unexpected(error_of(lib_, call, code, comm_));
    return {};
  }

  const Lib lib_;
  const int rank_, size_;
  double timeout_s_;
  bool at_once_ = false;
  Comm comm_ = nullptr;
};

class LoadedLibrary final : public Library {
 public:
  explicit LoadedLibrary(const Lib& lib) : lib_(lib) {}

  std::string name() const override { return name_of(lib_); }

  Result<Id> make_id() const override {
    UniqueId unique;
    if (const Code code = lib_.get_unique_id(&unique); code != kSuccess)
      return tl::unexpected(error_of(lib_, "ncclGetUniqueId", code, nullptr));
    Id id;
    std::memcpy(id.data(), &unique, sizeof unique);
    return id;
  }

  Result<std::unique_ptr<DeviceCollectives>> join(const Id& id, int rank, int size, double timeout_s) const override {
    auto collectives = std::make_unique<Collectives>(lib_, rank, size, timeout_s);
    REMUDA_TRY(collectives->join(id));
    return collectives;
  }

 private:
  const Lib lib_;
};

}  // namespace

Result<std::unique_ptr<Library>> find(const std::string& maker, const std::vector<std::string>& folders) {
  REMUDA_ASSIGN(const Lib lib, load_lib(file_of(maker), folders));
  return std::make_unique<LoadedLibrary>(lib);
}

}  // namespace remuda::comm::nccl
