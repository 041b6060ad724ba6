// UserNames: the names of users and of their groups, looked up by a thread: where they come from a network, that may
// take long or never end.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "policy/policy.h"

namespace remuda::agent {

/// A user, with the id under which the pool knows them: that of the owner for a user of a container.
struct Account : policy::User {
  int uid = 0;
};

/// Used by one thread. A name that does not come within `patience_s` is the user's number until it comes, and the user
/// is not known.
class UserNames {
 public:
  using LookUp = std::function<Account(int uid)>;
  explicit UserNames(LookUp look_up, double patience_s = 5);
  ~UserNames();
  UserNames(const UserNames&) = delete;

  /// The name; nothing while it is looked up.
  std::optional<Account> find(int uid, double now_s);
  /// The same without a look-up: nothing unless it was found before.
  std::optional<Account> known(int uid) const;
  /// Readable when a name has come.
  int fd() const { return shared_->ready.get(); }
  void clear();

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable wanted_changed;
    std::vector<int> wanted;
    std::map<int, Account> found;
    bool ends = false;
    Fd ready;
  };
  struct Known {
    std::optional<Account> name;
    double since_s = 0;  ///< when it was found, or first wanted
    bool is_wanted = false;
  };
  static void work(const std::shared_ptr<Shared>& shared, const LookUp& look_up);
  void want(int uid, Known& known, double now_s);

  const double patience_s_;
  std::map<int, Known> known_;
  std::shared_ptr<Shared> shared_;  ///< the thread's, too: it may outlive this object, within a look-up
};

}  // namespace remuda::agent
