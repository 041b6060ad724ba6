#include "agent/user_names.h"

#include <cstdint>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace remuda::agent {
namespace {

constexpr double kNameFresh_s = 600;    // how long a name is taken to be right
constexpr double kNameAgain_s = 60;     // after a look-up that has failed
constexpr size_t kMostKnown = 1 << 16;  // users of a machine, and of its containers

bool is_number(const Account& account) { return account.name == std::to_string(account.uid); }

}  // namespace

UserNames::UserNames(LookUp look_up, double patience_s) : patience_s_(patience_s), shared_(std::make_shared<Shared>()) {
  shared_->ready.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::thread([shared = shared_, look_up = std::move(look_up)] { work(shared, look_up); }).detach();
}

UserNames::~UserNames() {
  const std::lock_guard lock(shared_->mutex);
  shared_->ends = true;
  shared_->wanted_changed.notify_one();
}

void UserNames::work(const std::shared_ptr<Shared>& shared, const LookUp& look_up) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    shared->wanted_changed.wait(lock, [&] { return shared->ends || !shared->wanted.empty(); });
    if (shared->ends) return;
    const int uid = shared->wanted.back();
    shared->wanted.pop_back();
    lock.unlock();
    Account name = look_up(uid);
    lock.lock();
    shared->found.insert_or_assign(uid, std::move(name));
    const uint64_t one = 1;
    (void)!::write(shared->ready.get(), &one, sizeof one);
  }
}

void UserNames::clear() {
  uint64_t count = 0;
  (void)!::read(shared_->ready.get(), &count, sizeof count);
}

void UserNames::want(int uid, Known& known, double now_s) {
  known.is_wanted = true;
  known.since_s = now_s;
  const std::lock_guard lock(shared_->mutex);
  shared_->wanted.push_back(uid);
  shared_->wanted_changed.notify_one();
}

std::optional<Account> UserNames::known(int uid) const {
  const auto found = known_.find(uid);
  return found == known_.end() ? std::nullopt : found->second.name;
}

std::optional<Account> UserNames::find(int uid, double now_s) {
  if (known_.size() > kMostKnown) known_.clear();
  Known& known = known_[uid];
  if (known.is_wanted) {
    const std::lock_guard lock(shared_->mutex);
    if (const auto found = shared_->found.find(uid); found != shared_->found.end()) {
      // A name does not become a number: the databases have failed, and are asked again soon.
      const bool is_worse = known.name && is_number(found->second) && !is_number(*known.name);
      const bool has_failed = is_worse || !found->second.is_known;
      known.since_s = has_failed ? now_s - kNameFresh_s + kNameAgain_s : now_s;
      if (!is_worse) known.name = std::move(found->second);
      known.is_wanted = false;
      shared_->found.erase(found);
    }
  } else if (!known.name || now_s - known.since_s > kNameFresh_s) {
    want(uid, known, now_s);
  }
  if (known.is_wanted && !known.name && now_s - known.since_s >= patience_s_)
    return Account{{std::to_string(uid), {}, /*is_known=*/false}, uid};
  return known.name;
}

}  // namespace remuda::agent
