#include "monitor/notifier.h"

#include <algorithm>

namespace remuda::monitor {

std::vector<Alert> Notifier::take(const std::vector<Alert>& active, double wall_s) {
  std::vector<Alert> news;
  for (const Alert& alert : active) {
    const bool is_quiet = alert.silenced_until_s > 0 || !alert.acknowledged_by.empty();
    const auto said = said_.find(alert.id);
    if (said != said_.end()) {
      said->second = alert;
    } else if (!is_quiet) {
      said_.emplace(alert.id, alert);
      news.push_back(alert);
    }
  }
  std::erase_if(said_, [&](const auto& entry) {
    if (std::ranges::find(active, entry.first, &Alert::id) != active.end()) return false;
    if (entry.second.silenced_until_s <= wall_s) {
      news.push_back(entry.second);
      news.back().ended_s = wall_s;
    }
    return true;
  });
  return news;
}

}  // namespace remuda::monitor
