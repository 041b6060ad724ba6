#include "train/operator_watch.h"

#include <c10/util/ThreadLocalDebugInfo.h>

namespace remuda::train {
namespace {

/// libtorch hands it on to the threads that it starts. It has no use for this kind itself.
constexpr auto kKind = c10::DebugInfoKind::PRODUCER_INFO;

struct Watched final : c10::DebugInfoBase {
  explicit Watched(profile::Recorder& to) : recorder(to) {}
  profile::Recorder& recorder;
};

/// What has begun, for the callback at its end.
struct Begun final : at::ObserverContext {
  Begun(profile::Track& on, size_t at) : track(on), depth(at) {}
  profile::Track& track;
  size_t depth;
};

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

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  auto* const watched = static_cast<Watched*>(c10::ThreadLocalDebugInfo::get(kKind));
  if (!watched || !watched->recorder.is_recording()) return nullptr;
  profile::Track& track = track_of(watched->recorder);
  return std::make_unique<Begun>(track, track.begin(function.name(), profile::Kind::operation));
}

void end(const at::RecordFunction&, at::ObserverContext* context) {
  if (const auto* begun = static_cast<Begun*>(context)) begun->track.end(begun->depth);
}

at::CallbackHandle add_callback() {
  using at::RecordScope;
  return at::addThreadLocalCallback(
      at::RecordFunctionCallback(begin, end)
          .scopes({RecordScope::FUNCTION, RecordScope::BACKWARD_FUNCTION, RecordScope::USER_SCOPE}));
}

}  // namespace

OperatorWatch::OperatorWatch(profile::Recorder& recorder)
    : recorder_(kKind, std::make_shared<Watched>(recorder)), handle_(add_callback()) {}

OperatorWatch::~OperatorWatch() { at::removeCallback(handle_); }

}  // namespace remuda::train
