#include "pool/machine_view.h"

#include <algorithm>
#include <iterator>

#include "base/clock.h"
#include "place/place.h"
#include "pool/admission.h"

namespace remuda::pool {

MachineView::MachineView(std::string folder, ReadMachine read, ReadPolicy read_policy, bool live)
    : folder_(std::move(folder)), read_(std::move(read)), read_policy_(std::move(read_policy)), live_(live) {}

Result<MachineView> MachineView::open(std::string folder, ReadMachine read, ReadPolicy read_policy, bool live,
                                      ReadAllocations read_allocations, OthersClaims others) {
  MachineView view(std::move(folder), std::move(read), std::move(read_policy), live);
  view.others_ = others;
  view.read_allocations_ = std::move(read_allocations);
  REMUDA_TRY(view.read());
  return view;
}

Result<void> MachineView::read() {
  REMUDA_ASSIGN(inventory_, read_());
  if (live_ && others_ == OthersClaims::count) claimed_ = claimed_by_others(folder_, inventory_);
  if (read_allocations_) allocations_ = read_allocations_(inventory_);
  read_policy();
  read_at_s_ = monotonic_s();
  return {};
}

void MachineView::read_policy() {
  policy_ = read_policy_();
  if (policy_) last_policy_ = *policy_;
}

void MachineView::follow(const MachineView& older) {
  if (!policy_) last_policy_ = older.last_policy_;
}

Result<void> MachineView::read_if_old() {
  constexpr double kOld_s = 2;  // age of a reading from which it is taken again before devices are granted
  return monotonic_s() - read_at_s_ < kOld_s ? Result<void>{} : read();
}

std::vector<place::Held> MachineView::held_without_lease(const PoolState& state) const {
  std::vector<place::Held> held = place::held_by_processes(inventory_);
  std::erase_if(held, [&](const place::Held& one) {
    return std::ranges::find(state.leases, one.device, &Lease::device) != state.leases.end() ||
           std::ranges::find(claimed_, one.device, &place::Held::device) != claimed_.end() ||
           std::ranges::find(allocations_, one.device, &Allocation::device) != allocations_.end();
  });
  std::ranges::copy(claimed_, std::back_inserter(held));
  std::ranges::move(held_by_allocations(allocations_), std::back_inserter(held));
  return held;
}

}  // namespace remuda::pool
