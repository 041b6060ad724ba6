#include "place/request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tuple>

#include "base/quantity.h"
#include "base/text.h"

namespace remuda::place {

bool operator==(const Request& a, const Request& b) {
  const auto plain = [](const Request& r) {
    return std::tie(r.count, r.memory_bytes, r.model, r.link, r.any_model, r.devices, r.share, r.cpu, r.cores,
                    r.host_memory_bytes);
  };
  const auto text = [](const auto& part) { return part ? part->text() : ""; };
  return plain(a) == plain(b) && text(a.capability) == text(b.capability) && text(a.where) == text(b.where);
}

Result<void> check(const Request& request) {
  constexpr size_t kLongestModel = 256;
  if (request.count < 1 || request.count > Request::kMostDevices)
    return usage_error(fmt::format("{} devices are wanted; a job takes 1 to {}", request.count, Request::kMostDevices));
  if (!(request.share > 0 && request.share <= 1))
    return usage_error(fmt::format("a share of {} is wanted; a share is above 0 and at most 1", request.share));
  if (request.memory_bytes < 0 || request.host_memory_bytes < 0)
    return usage_error("the memory wanted is less than nothing");
  if (request.cores < 0 || request.cores > Request::kMostCores)
    return usage_error(fmt::format("{} cores are wanted; a job takes at most {}", request.cores, Request::kMostCores));
  if (request.model.size() > kLongestModel)
    return usage_error(fmt::format("the model's name has more than {} characters", kLongestModel));
  const size_t named = request.devices.size();
  if (named > Request::kMostDevices)
    return usage_error(fmt::format("{} devices are named; at most {} can be", named, Request::kMostDevices));
  if (named > 0 && named < static_cast<size_t>(request.count))
    return usage_error(fmt::format("{} devices are wanted and {} named", request.count, named));
  return {};
}

std::string conditions_text(const Request& request, bool of_several) {
  std::vector<std::string> parts;
  if (!request.model.empty())
    parts.push_back(fmt::format("{} called '{}'", of_several ? "are" : "is", printable(request.model)));
  if (request.memory_bytes > 0)
    parts.push_back(fmt::format("{} {} or more", of_several ? "have" : "has", amount_text(request.memory_bytes)));
  if (request.capability) parts.push_back("can do " + request.capability->text());
  if (request.where) parts.push_back(fmt::format("{} {}", of_several ? "meet" : "meets", request.where->text()));
  return parts.empty() ? "can be taken" : fmt::format("{}", fmt::join(parts, " and "));
}

}  // namespace remuda::place
