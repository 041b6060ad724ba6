// What a cloud says of this machine, as drains of its devices.
#include <utility>

#include "agent/service.h"

namespace remuda::agent {
namespace {

/// Who drains devices, as people see it, when the cloud takes the machine away; and when that is tried again.
constexpr const char* kSpotNotice = "spot notice";

}  // namespace

void Service::take_notice(std::optional<std::string> why) { news_ = News{std::move(why)}; }

/// What could not be recorded is tried again.
void Service::heed_notice(double now_s) {
  if (!news_) return;
  pool::UndrainDevices undrain;
  for (const pool::Drain& drain : pool_.seen().drains)
    if (drain.by == kSpotNotice) undrain.devices.push_back(drain.device);
  if (news_->why) {
    if (change(pool::LeaveHost{*news_->why, kSpotNotice}, now_s)) news_.reset();
  } else if (undrain.devices.empty() || change(undrain, now_s)) {
    news_.reset();
  }
}

}  // namespace remuda::agent
