#include "train/kept_balance.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace remuda::train {
namespace {

using balance::BatchTime;

Json times_json(const std::vector<BatchTime>& times) {
  Json json = Json::array();
  for (const BatchTime& time : times) json.push_back({time.batch, time.seconds});  // infinite: null
  return json;
}

std::optional<std::vector<BatchTime>> parse_times(const Json& json) {
  if (!json.is_array()) return std::nullopt;
  std::vector<BatchTime> times;
  for (const Json& pair : json) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_integer()) return std::nullopt;
    if (!pair[1].is_number() && !pair[1].is_null()) return std::nullopt;
    const auto batch = pair[0].get<int64_t>();
    const double seconds = pair[1].is_null() ? INFINITY : pair[1].get<double>();
    if (batch < 1 || batch > INT32_MAX || !(seconds > 0)) return std::nullopt;
    times.push_back({.batch = int(batch), .seconds = seconds});
  }
  return times;
}

std::optional<MemoryNeed> parse_need(const Json& json) {
  if (json.is_null()) return MemoryNeed{};
  if (!json.is_array() || json.size() != 3) return std::nullopt;
  for (const Json& bytes : json)
    if (!bytes.is_number() || !(bytes.get<double>() >= 0)) return std::nullopt;
  return MemoryNeed{
      .known = 1, .fixed = json[0].get<double>(), .per_sample = json[1].get<double>(), .least = json[2].get<double>()};
}

std::optional<KeptDevice> parse_device(const Json& json) {
  if (!json.is_object() || !json.contains("device") || !json["device"].is_string()) return std::nullopt;
  const auto text = json["device"].get<std::string>();
  KeptDevice kept;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), kept.device, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const auto part = [&](const char* key) { return json.contains(key) ? json[key] : Json(); };
  const auto alone = parse_times(part("alone")), known = parse_times(part("known"));
  const auto need = parse_need(part("memory"));
  if (!alone || !known || !need) return std::nullopt;
  kept.alone = *alone;
  kept.known = *known;
  kept.need = *need;
  const Json update = part("update_s");
  if (!update.is_null() && (!update.is_number() || !(update.get<double>() >= 0))) return std::nullopt;
  kept.update_s = update.is_null() ? 0 : update.get<double>();
  return kept;
}

}  // namespace

bool KeptBalance::is_of(const std::vector<uint64_t>& devices) const {
  return std::ranges::equal(ranks, devices, {}, &KeptDevice::device);
}

KeptBalance KeptBalance::with(const std::vector<uint64_t>& devices) const {
  KeptBalance other = *this;
  other.ranks.clear();
  for (size_t rank = 0; rank < devices.size(); ++rank)
    other.ranks.push_back(rank < ranks.size() && ranks[rank].device == devices[rank]
                              ? ranks[rank]
                              : KeptDevice{.device = devices[rank], .is_known = false});
  return other;
}

const std::vector<balance::BatchTime>* KeptBalance::alone_of(int rank) const {
  const KeptDevice& device = ranks.at(size_t(rank));
  return device.is_known ? &device.alone : nullptr;
}

bool KeptBalance::knows_all() const { return std::ranges::all_of(ranks, &KeptDevice::is_known); }

Json to_json(const KeptBalance& balance) {
  Json ranks = Json::array();
  for (const KeptDevice& kept : balance.ranks) {
    Json rank{{"device", fmt::format("{:016x}", kept.device)},
              {"alone", times_json(kept.alone)},
              {"known", times_json(kept.known)}};
    if (kept.update_s > 0) rank["update_s"] = kept.update_s;
    if (kept.need.known > 0) rank["memory"] = Json::array({kept.need.fixed, kept.need.per_sample, kept.need.least});
    ranks.push_back(std::move(rank));
  }
  return {{"recomputes", balance.recomputes}, {"spills", balance.spills}, {"ranks", std::move(ranks)}};
}

std::optional<KeptBalance> parse_kept_balance(const Json& json) {
  if (!json.is_object() || !json.contains("recomputes") || !json["recomputes"].is_boolean()) return std::nullopt;
  if (!json.contains("ranks") || !json["ranks"].is_array()) return std::nullopt;
  KeptBalance balance{.recomputes = json["recomputes"].get<bool>(),
                      .spills = json.value("spills", Json(false)) == Json(true)};
  for (const Json& rank : json["ranks"]) {
    auto device = parse_device(rank);
    if (!device) return std::nullopt;
    balance.ranks.push_back(std::move(*device));
  }
  return balance;
}

}  // namespace remuda::train
