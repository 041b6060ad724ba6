#include "monitor/money.h"

#include <algorithm>
#include <fmt/format.h>

#include "place/glob.h"

namespace remuda::monitor {
namespace {

constexpr double kHour_s = 3600, kKwh_joules = 3.6e6;
/// Readings are a second apart, and a lease does not begin with one of them.
constexpr double kSlack_s = 10;

}  // namespace

void Amount::add(const Amount& other) {
  value += other.value;
  is_known = is_known || other.is_known;
  is_complete = is_complete && other.is_complete;
}

void Money::add(const Money& other) {
  cost.add(other.cost);
  wasted.add(other.wasted);
}

const policy::Tariff* tariff_of(const std::vector<policy::Tariff>& tariffs, const std::string& model) {
  const auto found = std::ranges::find_if(tariffs, [&](const policy::Tariff& one) {
    return one.model.empty() || (!model.empty() && place::glob_matches(one.model, model));
  });
  return found == tariffs.end() ? nullptr : &*found;
}

Money money_of(const LeaseUse& use, const std::vector<policy::Tariff>& tariffs) {
  const policy::Tariff* const tariff = tariff_of(tariffs, use.model);
  if (!tariff) return {.cost = {.is_complete = false}, .wasted = {.is_complete = false}};
  Money money;
  if (tariff->hour > 0) {
    const double second = tariff->hour * use.share / kHour_s;
    money.cost = {.value = second * use.held_s, .is_known = true};
    money.wasted = {.value = second * (use.busy_known_s - use.busy_s),
                    .is_known = use.busy_known_s > 0,
                    .is_complete = use.held_s - use.busy_known_s <= kSlack_s};
  }
  if (tariff->kwh > 0)
    money.cost.add({.value = tariff->kwh * use.energy_joules / kKwh_joules,
                    .is_known = use.energy_known_s > 0,
                    .is_complete = use.held_s - use.energy_known_s <= kSlack_s});
  return money;
}

std::string money_text(const Amount& amount) {
  if (!amount.is_known) return "-";
  return fmt::format("{}{:.2f}", amount.is_complete ? "" : ">= ", amount.value);
}

}  // namespace remuda::monitor
