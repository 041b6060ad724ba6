// Items: what there is to choose on the screen, filtered and sorted, in the order in which it stands there. Keys and
// frames are made from the same list. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "snapshot/hosts.h"
#include "top/choice.h"

namespace remuda::top {

enum class Kind { device, alert, job, waiting };

/// What points into a Seen is valid as long as that.
struct Item {
  Kind kind = Kind::device;
  std::string key;   ///< names it among all, from one reading to the next
  std::string text;  ///< what people call it: "gpu:0", "ana's fit (job 7)"
  const snapshot::Host* host = nullptr;
  const snapshot::View* view = nullptr;        ///< of a device, and of an alert whose device is known
  const snapshot::Alert* alert = nullptr;      ///< of an alert
  const snapshot::Waiting* waiting = nullptr;  ///< of a job that waits
  std::vector<const snapshot::Lease*> leases;  ///< of a job that runs, or of a user without a lease
  int64_t job = 0;                             ///< of both kinds of jobs
};

std::vector<Item> items_of(const snapshot::Seen& seen, const Choice& choice);

/// "gpu:0-1,3", of the devices that the job has.
std::string devices_text(const Item& job);

}  // namespace remuda::top
