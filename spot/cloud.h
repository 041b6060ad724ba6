// Cloud: how each of the large clouds says that it is about to take a spot machine away.
//
//   aws     IMDSv2: a token, then spot/instance-action, which is not there until there is a notice: two minutes before
//   gcp     instance/preempted becomes TRUE: 30 seconds before
//   azure   scheduledevents has an event Preempt or Terminate for this machine: 30 seconds before, or more
//
// Source: the clouds' documentation, as of November 2026 (see docs/administrators.md).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "device/words.h"
#include "spot/http.h"

namespace remuda::spot {

enum class Cloud { aws, gcp, azure };

/// Asks the cloud's metadata address.
using Ask = std::function<Result<HttpAnswer>(const HttpRequest&)>;

/// What the cloud says, for people: "AWS takes this machine away (terminate) at 2026-11-25T10:00:00Z".
struct Notice {
  std::string sentence;
  bool operator==(const Notice&) const = default;
};

/// Watches one machine; one thread.
class Watch {
 public:
  /// Nothing: whichever of them answers is looked for.
  Watch(std::optional<Cloud> cloud, Ask ask) : cloud_(cloud), ask_(std::move(ask)) {}

  /// Asks once. Nothing where there is no notice; an error where the cloud does not say.
  Result<std::optional<Notice>> look();
  /// The one that was named or found.
  std::optional<Cloud> cloud() const { return cloud_; }

 private:
  Result<Cloud> find() const;
  Result<std::string> new_token() const;
  Result<std::string> azure_name() const;
  Result<std::optional<Notice>> look_at_aws();
  Result<std::optional<Notice>> look_at_gcp() const;
  Result<std::optional<Notice>> look_at_azure();

  std::optional<Cloud> cloud_;
  Ask ask_;
  std::string token_;  ///< of AWS; empty: none, or it is too old
  std::string name_;   ///< of this machine, on Azure
};

/// What these answers say: the body of AWS's spot/instance-action, of GCP's instance/preempted, and of Azure's
/// scheduledevents for the machine of that name. Pure; bytes of any kind.
Result<std::optional<Notice>> aws_notice(std::string_view body);
Result<std::optional<Notice>> gcp_notice(std::string_view body);
Result<std::optional<Notice>> azure_notice(std::string_view body, const std::string& name);

}  // namespace remuda::spot

template <>
struct remuda::Words<remuda::spot::Cloud> {
  static constexpr std::array table{std::pair{spot::Cloud::aws, "aws"}, std::pair{spot::Cloud::gcp, "gcp"},
                                    std::pair{spot::Cloud::azure, "azure"}};
};
