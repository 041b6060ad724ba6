#include "run/caretaker.h"

#include "run/file_pool.h"
#include "run/policy_file.h"
#include "share/job_sharing.h"

namespace remuda::run {

Result<Caretaker> Caretaker::open(const std::string& folder, pool::ReadMachine read, bool live) {
  const auto read_policy = [folder] { return policy_of(folder); };
  REMUDA_ASSIGN(auto machine, pool::MachineView::open(folder, std::move(read), read_policy, live));
  auto view = std::make_unique<pool::MachineView>(std::move(machine));
  REMUDA_ASSIGN(auto pool, FilePool::open(folder, *view));
  return Caretaker(std::move(view), std::move(pool));
}

Result<void> Caretaker::tidy() {
  const auto tidied = pool_->tidy();
  share::stop_unused_daemons(folder(), *pool_);
  return tidied;
}

}  // namespace remuda::run
