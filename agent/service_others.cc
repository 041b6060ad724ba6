// Devices that other managers of this machine give out: nobody is kept from them here.
#include <algorithm>
#include <iterator>

#include "agent/service.h"

namespace remuda::agent {

std::vector<std::string> Service::given_out() const {
  std::vector<std::string> devices;
  for (const pool::Allocation& one : view_.allocations()) devices.push_back(one.device);
  return devices;
}

confine::Withheld Service::withheld_from(int64_t job) const {
  std::vector<std::string> open = devices_of(job);
  std::ranges::move(given_out(), std::back_inserter(open));
  return confine::withheld_nodes(view_.inventory(), open);
}

}  // namespace remuda::agent
