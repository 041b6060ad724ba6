// Any bytes are a policy or a usage error of one line, and a policy can be shown and asked.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "policy/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace remuda::policy;
  const auto policy = parse_policy({reinterpret_cast<const char*>(data), size}, "policy.toml");
  if (!policy) {
    REMUDA_CHECK(policy.error().kind == remuda::ErrorKind::usage, "a wrong policy is the administrator's error");
    REMUDA_CHECK(policy.error().message.find('\n') == std::string::npos, "an error is one line");
    return 0;
  }
  REMUDA_CHECK(policy->half_life_s > 0 && policy->patience_s > 0, "times are above 0");
  REMUDA_CHECK(policy->health.probe_timeout_s > 0, "a probe has time");
  REMUDA_CHECK(!policy_text(*policy).empty(), "it can be shown");
  for (const Reservation& reservation : policy->reservations)
    (void)reservation.hours.meet(1e9, 1e9 + 3600, policy->utc_offset_s);
  (void)policy->find(&Limit::devices, {"alice", {"gpu"}});
  return 0;
}
