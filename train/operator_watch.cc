#include "train/operator_watch.h"

#include <c10/util/ThreadLocalDebugInfo.h>
#include <deque>
#include <mutex>
#include <ranges>

namespace remuda::train {
namespace {

/// libtorch hands it on to the threads that it starts. It has no use for this kind itself.
const auto kKind = c10::DebugInfoKind::PRODUCER_INFO;

/// Threads of libtorch's outlive recorders, so what they have joined is looked at again each time.
profile::Track& track_of(profile::Recorder& recorder) {
  thread_local uint64_t t_recorder = 0;
  thread_local profile::Track* t_track = nullptr;
  if (profile::recorder_here() == &recorder) return *profile::track_here();
  if (t_recorder != recorder.id()) {
    t_recorder = recorder.id();
    t_track = &recorder.add_track("backward");
  }
  return *t_track;
}

}  // namespace

/// Marks before and after each operator, on all threads, until the device has passed them.
class OperatorWatch::DeviceTimes {
 public:
  struct Operation {
    std::string name;
    Operation* caller;  ///< on the same thread, or null
    DeviceTimer::Mark from, to = nullptr;
    double within_s = 0;  ///< of the operations that it calls
  };

  explicit DeviceTimes(const DeviceTimer& timer) : timer_(timer) {}

  /// Null where there are too many already.
  Operation* begin(const char* name) {
    const std::lock_guard lock(mutex_);
    if (operations_.size() == profile::Recorder::kMostOperations) return nullptr;
    operations_.push_back({name, t_open, timer_.mark()});
    return t_open = &operations_.back();
  }
  void end(Operation& operation) {
    operation.to = timer_.mark();
    t_open = operation.caller;
  }
  /// Once all have ended. The last ones first: an operation begins before those that it calls.
  void add_to(profile::Recorder& recorder) {
    const std::lock_guard lock(mutex_);
    for (const Operation& one : std::views::reverse(operations_)) {
      if (!one.to) continue;
      const double total_s = timer_.seconds(one.from, one.to);
      if (one.caller) one.caller->within_s += total_s;
      recorder.add_device_time(one.name, total_s, total_s - one.within_s);
    }
  }

 private:
  static thread_local Operation* t_open;
  const DeviceTimer timer_;
  std::mutex mutex_;
  std::deque<Operation> operations_;  ///< which stay where they are
};

thread_local OperatorWatch::DeviceTimes::Operation* OperatorWatch::DeviceTimes::t_open = nullptr;

struct OperatorWatch::Watched final : c10::DebugInfoBase {
  Watched(profile::Recorder& to, std::shared_ptr<DeviceTimes> on_device) : recorder(to), device(std::move(on_device)) {}
  profile::Recorder& recorder;
  const std::shared_ptr<DeviceTimes> device;
};

/// What has begun, for the callback at its end.
struct OperatorWatch::Begun final : at::ObserverContext {
  Begun(profile::Track& on, size_t at) : track(on), depth(at) {}
  profile::Track& track;
  size_t depth;
  std::shared_ptr<DeviceTimes> device;          ///< of `operation`
  DeviceTimes::Operation* operation = nullptr;  ///< null where the device's time is not taken
};

std::unique_ptr<at::ObserverContext> OperatorWatch::begin(const at::RecordFunction& function) {
  auto* const watched = static_cast<Watched*>(c10::ThreadLocalDebugInfo::get(kKind));
  if (!watched || !watched->recorder.is_recording()) return nullptr;
  profile::Track& track = track_of(watched->recorder);
  auto begun = std::make_unique<Begun>(track, track.begin(function.name(), profile::Kind::operation));
  if (!watched->device) return begun;
  begun->operation = watched->device->begin(function.name());
  begun->device = watched->device;
  return begun;
}

void OperatorWatch::end(const at::RecordFunction&, at::ObserverContext* context) {
  auto* const begun = static_cast<Begun*>(context);
  if (!begun) return;
  if (begun->operation) begun->device->end(*begun->operation);
  begun->track.end(begun->depth);
}

at::CallbackHandle OperatorWatch::add_callback() {
  using at::RecordScope;
  return at::addThreadLocalCallback(
      at::RecordFunctionCallback(begin, end)
          .scopes({RecordScope::FUNCTION, RecordScope::BACKWARD_FUNCTION, RecordScope::USER_SCOPE}));
}

OperatorWatch::OperatorWatch(profile::Recorder& recorder, std::optional<DeviceTimer> timer)
    : to_(recorder),
      device_(timer ? std::make_shared<DeviceTimes>(*timer) : nullptr),
      recorder_(kKind, std::make_shared<Watched>(recorder, device_)),
      handle_(add_callback()) {}

OperatorWatch::~OperatorWatch() {
  at::removeCallback(handle_);
  if (!device_) return;
  try {
    device_->add_to(to_);
  } catch (const std::exception&) {
    return;  // the device is lost, which the step that was recorded reports
  }
}

}  // namespace remuda::train
