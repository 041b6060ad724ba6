// Events: sets of GPUs that are watched, and the XID events that wait there.
//
// A set delivers one event for each watched GPU that has an XID, recorded or requested as a fault, and one more when
// the machine's file has another XID than before; other waits end with their timeout.
#include <chrono>
#include <deque>
#include <map>
#include <thread>

#include "tests/nvml/answer.h"

namespace remuda::tests::nvml {

struct EventSet {
  std::mutex mutex;
  std::deque<EventData> waiting;
  std::map<Handle, int> watched;  ///< with the XID that was last seen
};

namespace {

/// 0 when there is none.
int xid_of(const Gpu& gpu) {
  const auto& asked_for = Session::instance().faults().xid;
  const auto fault = asked_for.find(gpu.index);
  return fault == asked_for.end() ? gpu.device.status.xid.value_or(0) : fault->second;
}

/// To be called with the lock held.
void look_for_news(EventSet& set) {
  for (auto& [handle, seen] : set.watched) {
    const Gpu& gpu = *Session::instance().newest(handle);
    const int xid = xid_of(gpu);
    if (xid != seen && xid != 0)
      set.waiting.push_back({&gpu, kXidEvent, static_cast<unsigned long long>(xid), kNoInstance, kNoInstance});
    seen = xid;
  }
}

bool take(EventSet& set, EventData& data) {
  const std::lock_guard lock(set.mutex);
  look_for_news(set);
  if (set.waiting.empty()) return false;
  data = set.waiting.front();
  set.waiting.pop_front();
  return true;
}

Code wait(EventSet* set, EventData& data, unsigned timeout_ms) {
  if (!Session::instance().machine()) return kUninitialized;
  if (!set) return kInvalidArgument;
  if (take(*set, data)) return kSuccess;
  std::this_thread::sleep_for(std::chrono::milliseconds(timeout_ms));
  return kTimeout;
}

}  // namespace

NVML_EXPORT Code nvmlEventSetCreate(EventSet** set) {
  if (!Session::instance().machine()) return kUninitialized;
  if (!set) return kInvalidArgument;
  *set = new EventSet;
  return kSuccess;
}

NVML_EXPORT Code nvmlEventSetFree(EventSet* set) {
  if (!set) return kInvalidArgument;
  delete set;
  return kSuccess;
}

NVML_EXPORT Code nvmlDeviceGetSupportedEventTypes(Handle handle, unsigned long long* types) {
  return ask(handle, types, [&](const Gpu& gpu) {
    *types = gpu.parent ? 0 : kXidEvent;
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceRegisterEvents(Handle handle, unsigned long long types, EventSet* set) {
  return ask(handle, set, [&](const Gpu& gpu) {
    if (gpu.parent || (types & ~kXidEvent) != 0) return kNotSupported;
    if ((types & kXidEvent) == 0) return kSuccess;
    const std::lock_guard lock(set->mutex);
    set->watched.emplace(handle, 0);
    look_for_news(*set);
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlEventSetWait_v2(EventSet* set, EventData* data, unsigned timeout_ms) {
  return data ? wait(set, *data, timeout_ms) : kInvalidArgument;
}

/// Does not support instances: their ids are not written.
NVML_EXPORT Code nvmlEventSetWait(EventSet* set, EventData* data, unsigned timeout_ms) {
  if (!data) return kInvalidArgument;
  EventData event{};
  const Code code = wait(set, event, timeout_ms);
  if (code != kSuccess) return code;
  data->device = event.device;
  data->type = event.type;
  data->data = event.data;
  return kSuccess;
}

}  // namespace remuda::tests::nvml
