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

void Money::add(const Money& other) {
  cost += other.cost;
  wasted += other.wasted;
  is_known = is_known || other.is_known;
  is_complete = is_complete && other.is_complete;
}

const policy::Tariff* tariff_of(const std::vector<policy::Tariff>& tariffs, const std::string& model) {
  const auto found = std::ranges::find_if(tariffs, [&](const policy::Tariff& one) {
    return one.model.empty() || (!model.empty() && place::glob_matches(one.model, model));
  });
  return found == tariffs.end() ? nullptr : &*found;
}

Money money_of(const LeaseUse& use, const std::vector<policy::Tariff>& tariffs) {
  const policy::Tariff* const tariff = tariff_of(tariffs, use.model);
  if (!tariff) return {.is_complete = false};
  Money money;
  if (tariff->hour > 0) {
    money.is_known = true;
    money.cost += tariff->hour * use.share * use.held_s / kHour_s;
    money.wasted += tariff->hour * use.share * (use.busy_known_s - use.busy_s) / kHour_s;
  }
  if (tariff->kwh > 0) {
    money.is_known = money.is_known || use.energy_known_s > 0;
    money.cost += tariff->kwh * use.energy_joules / kKwh_joules;
    money.is_complete = use.held_s - use.energy_known_s <= kSlack_s;
  }
  return money;
}

std::string money_text(double amount, const Money& money) {
  if (!money.is_known) return "-";
  return fmt::format("{}{:.2f}", money.is_complete ? "" : ">= ", amount);
}

}  // namespace remuda::monitor
