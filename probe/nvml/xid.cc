#include "probe/nvml/xid.h"

#include "probe/nvml/ask.h"

namespace remuda::probe::nvml {
namespace {

constexpr const char* kWhat = "fatal errors";
constexpr int kMaxEvents = 1000;  // in one reading; more wait for the next
constexpr size_t kMaxInstances = 64;

}  // namespace

std::optional<Missing> XidWatch::begin(const Lib& lib, Handle gpu) {
  if (!lib.event_set_create || !lib.register_events || !lib.event_wait) return no_call(kWhat);
  const auto types = ask<uint64_t>(kWhat, lib.event_types, gpu);
  if (!types.has_value()) return types.missing();
  if (!(types.value() & kEventXid)) return why(kNotSupported, kWhat);
  if (!events_)
    if (const Code code = lib.event_set_create(&events_); code != kSuccess || !events_)
      return events_ = nullptr, why(code == kSuccess ? kUnknown : code, kWhat);
  if (const Code code = lib.register_events(gpu, kEventXid, events_); code != kSuccess) return why(code, kWhat);
  watching_ = true;
  return std::nullopt;
}

std::optional<Missing> XidWatch::drain(const Lib& lib) {
  for (int i = 0; i < kMaxEvents; ++i) {
    EventData event{.gpu_instance = kWholeGpu, .compute_instance = kWholeGpu};
    const Code code = lib.event_wait(events_, &event, 0);
    if (code == kTimeout) return std::nullopt;
    if (code != kSuccess) return why(code, kWhat);
    if (event.type != kEventXid) continue;
    last_ = static_cast<int>(event.data & 0xFFFF);
    if (event.gpu_instance == kWholeGpu)
      last_of_all_ = last_, by_instance_.clear();
    else if (by_instance_.size() < kMaxInstances)
      by_instance_[event.gpu_instance] = last_;
  }
  return std::nullopt;
}

Reading<int> XidWatch::read(const Lib& lib, Handle gpu) {
  const auto missing = watching_ ? drain(lib) : begin(lib, gpu);
  return answer_ = missing ? Reading<int>(*missing) : Reading<int>(last_);
}

Reading<int> XidWatch::of_instance(unsigned instance) const {
  if (!answer_.has_value()) return answer_;
  const auto own = by_instance_.find(instance);
  return own == by_instance_.end() ? last_of_all_ : own->second;
}

}  // namespace remuda::probe::nvml
