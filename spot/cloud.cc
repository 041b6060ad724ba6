#include "spot/cloud.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"

namespace remuda::spot {
namespace {

constexpr int kFound = 200, kUnauthorized = 401, kNone = 404;
constexpr size_t kLongestWord = 64, kLongestToken = 1024;

const std::pair<std::string, std::string> kForGcp{"Metadata-Flavor", "Google"}, kForAzure{"Metadata", "true"};
constexpr const char* kEvents = "/metadata/scheduledevents?api-version=2020-07-01";
constexpr const char* kName = "/metadata/instance/compute/name?api-version=2021-02-01&format=text";

tl::unexpected<Error> says(const char* who, const HttpAnswer& answer) {
  return failed(fmt::format("{} answers with status {}", who, answer.status));
}

/// A word of an answer that people may be shown.
std::string word(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? printable(found->get<std::string>().substr(0, kLongestWord)) : "";
}

std::string sentence(const char* who, const std::string& what, const std::string& when) {
  return fmt::format("{} takes this machine away ({}){}", who, what, when.empty() ? "" : ", not before " + when);
}

bool names(const Json& event, const std::string& name) {
  const auto resources = event.find("Resources");
  if (resources == event.end() || !resources->is_array()) return false;
  return std::ranges::any_of(*resources,
                             [&](const Json& one) { return one.is_string() && one.get<std::string>() == name; });
}

}  // namespace

Result<std::optional<Notice>> aws_notice(std::string_view body) {
  REMUDA_ASSIGN(const Json json, parse_json(body, "AWS's instance-action"));
  const std::string action = json.is_object() ? word(json, "action") : "";
  if (action.empty()) return failed("AWS's instance-action names no action");
  return Notice{sentence("AWS", action, word(json, "time"))};
}

Result<std::optional<Notice>> gcp_notice(std::string_view body) {
  const std::string said(trimmed(body.substr(0, kLongestWord)));
  if (said == "FALSE") return std::nullopt;
  if (said == "TRUE") return Notice{sentence("Google Cloud", "preempted", "")};
  return failed(fmt::format("Google Cloud's instance/preempted is '{}'", printable(said)));
}

Result<std::optional<Notice>> azure_notice(std::string_view body, const std::string& name) {
  REMUDA_ASSIGN(const Json json, parse_json(body, "Azure's scheduledevents"));
  const auto events = json.is_object() ? json.find("Events") : json.end();
  if (!json.is_object() || events == json.end() || !events->is_array())
    return failed("Azure's scheduledevents has no events");
  for (const Json& event : *events) {
    if (!event.is_object()) continue;
    const std::string type = word(event, "EventType");
    if ((type == "Preempt" || type == "Terminate") && names(event, name))
      return Notice{sentence("Azure", type, word(event, "NotBefore"))};
  }
  return std::nullopt;
}

Result<std::string> Watch::new_token() const {
  REMUDA_ASSIGN(const HttpAnswer answer,
                ask_({"PUT", "/latest/api/token", {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}}}));
  if (answer.status != kFound) return says("AWS's token address", answer);
  std::string token(trimmed(answer.body));
  const bool is_token = !token.empty() && token.size() <= kLongestToken &&
                        std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; });
  return is_token ? Result<std::string>(std::move(token)) : failed("AWS's token address gives no token");
}

Result<std::optional<Notice>> Watch::look_at_aws() {
  for (int turn = 0; turn < 2; ++turn) {
    if (token_.empty()) {
      REMUDA_ASSIGN(token_, new_token());
    }
    REMUDA_ASSIGN(const HttpAnswer answer,
                  ask_({"GET", "/latest/meta-data/spot/instance-action", {{"X-aws-ec2-metadata-token", token_}}}));
    if (answer.status == kFound) return aws_notice(answer.body);
    if (answer.status == kNone) return std::nullopt;
    if (answer.status != kUnauthorized) return says("AWS", answer);
    token_.clear();  // it has become too old
  }
  return failed("AWS does not accept its own token");
}

Result<std::optional<Notice>> Watch::look_at_gcp() const {
  REMUDA_ASSIGN(const HttpAnswer answer, ask_({"GET", "/computeMetadata/v1/instance/preempted", {kForGcp}}));
  if (answer.status != kFound) return says("Google Cloud", answer);
  return gcp_notice(answer.body);
}

Result<std::string> Watch::azure_name() const {
  REMUDA_ASSIGN(const HttpAnswer answer, ask_({"GET", kName, {kForAzure}}));
  if (answer.status != kFound) return says("Azure", answer);
  std::string name(trimmed(std::string_view(answer.body).substr(0, kLongestToken)));
  return name.empty() ? failed("Azure does not say what this machine is called") : Result<std::string>(std::move(name));
}

Result<std::optional<Notice>> Watch::look_at_azure() {
  if (name_.empty()) {
    REMUDA_ASSIGN(name_, azure_name());
  }
  REMUDA_ASSIGN(const HttpAnswer answer, ask_({"GET", kEvents, {kForAzure}}));
  if (answer.status != kFound) return says("Azure", answer);
  return azure_notice(answer.body, name_);
}

Result<Cloud> Watch::find() const {
  if (new_token()) return Cloud::aws;
  const auto google = ask_({"GET", "/computeMetadata/v1/instance/preempted", {kForGcp}});
  if (google && google->status == kFound && google->header("metadata-flavor") == "Google") return Cloud::gcp;
  if (azure_name()) return Cloud::azure;
  return failed("no cloud's metadata address answers");
}

Result<std::optional<Notice>> Watch::look() {
  if (!cloud_) {
    REMUDA_ASSIGN(cloud_, find());
  }
  switch (*cloud_) {
    case Cloud::aws:
      return look_at_aws();
    case Cloud::gcp:
      return look_at_gcp();
    case Cloud::azure:
      return look_at_azure();
  }
  return failed("there is no such cloud");
}

}  // namespace remuda::spot
