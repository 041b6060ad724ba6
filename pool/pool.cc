#include "pool/pool.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fmt/format.h>
#include <poll.h>
#include <set>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/state_folder.h"
#include "pool/bell.h"
#include "pool/clocks.h"
#include "pool/kept_state.h"
#include "pool/lifeline.h"
#include "pool/store.h"
#include "pool/transitions.h"

namespace remuda::pool {
namespace {

/// The number of open pools, and the process that opened them: a forked child has them too, and must not use them.
int open_pools = 0;
pid_t owner = 0;

void count_pool(int more) {
  REMUDA_CHECK(open_pools == 0 || owner == ::getpid(), "a pool does not cross a fork");
  owner = ::getpid();
  open_pools += more;
}

/// Descriptors by which the kernel reports the end of processes, where it supports that (pidfd).
class ProcessWatch {
 public:
  ProcessWatch(const std::string& folder, const std::vector<process::ProcessId>& processes)
      : folder_(folder), processes_(processes) {
    for (const process::ProcessId& process : processes) fds_.push_back(end_of(folder, process));
  }
  bool all_live() const {
    return std::ranges::all_of(processes_,
                               [this](const process::ProcessId& process) { return lives(folder_, process); });
  }
  bool sees_all() const {
    return std::ranges::all_of(fds_, [](const Fd& fd) { return static_cast<bool>(fd); });
  }
  void add_to(std::vector<pollfd>& polled) const {
    for (const Fd& fd : fds_)
      if (fd) polled.push_back({fd.get(), POLLIN, 0});
  }

 private:
  const std::string& folder_;
  const std::vector<process::ProcessId>& processes_;
  std::vector<Fd> fds_;
};

int poll_timeout_ms(double seconds) { return static_cast<int>(std::ceil(std::clamp(seconds, 0.0, 86400.0) * 1000)); }

}  // namespace

struct Pool::Impl {
  Impl(std::string at, Store opened) : folder(std::move(at)), store(std::move(opened)), process(::getpid()) {
    count_pool(1);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (process == ::getpid())
      count_pool(-1);
    else
      store.database().abandon();
  }

  /// Called at the start of each public function.
  Result<void> check_usable() {
    store.database().begin_call();
    cannot_create_bell = false;
    REMUDA_CHECK(process == ::getpid(), "a pool does not cross a fork");
    if (store.database().has_moved())
      return failed(fmt::format("{} is not the file that was opened: somebody moved or removed it", store.path()));
    return {};
  }

  /// Reads the state, unless no other process has changed it since. Within a transaction.
  Result<void> read_within() {
    REMUDA_ASSIGN(seen, store.version());
    if (kept_version == seen) return {};
    kept_version.reset();
    REMUDA_ASSIGN(PoolState state, store.read({}));
    kept.set(std::move(state));
    kept_version = seen;
    return {};
  }

  /// Adds the ended jobs that are wanted, and returns those that were not known.
  Result<std::vector<int64_t>> add_ended(const std::vector<int64_t>& with) {
    std::set<int64_t> wanted(with.begin(), with.end());
    std::vector<int64_t> added;
    std::vector<Job> jobs;
    for (const int64_t id : wanted) {
      if (kept.state().find(id)) continue;
      REMUDA_ASSIGN(auto job, store.find(id));
      if (!job) continue;
      jobs.push_back(std::move(*job));
      added.push_back(id);
    }
    if (!jobs.empty()) kept.add(jobs);
    return added;
  }

  Result<void> write(const std::function<Result<void>(PoolState&)>& transition) {
    const Clocks clocks = Clocks::now();
    follow_clocks(kept.draft(), clocks);
    REMUDA_TRY(transition(kept.draft()));
    note_clocks(kept.draft(), clocks);
    changed = kept.clean_changed();
    if (changed.empty() && !kept.differs_beside_jobs()) return {};
    const std::string broken = check(kept.draft());
    REMUDA_CHECK(broken.empty(), broken.c_str());
    return store.write(kept.state(), kept.draft(), changed);
  }

  Result<bool> has_news() {
    REMUDA_ASSIGN(const int64_t version, store.version());
    return version != seen;
  }

  std::string folder;
  Store store;
  pid_t process;
  std::optional<Bell> bell;  ///< made at the first wait
  bool cannot_create_bell = false;
  int64_t seen = 0;  ///< version that was read last
  KeptState kept;
  std::optional<int64_t> kept_version;  ///< of `kept`; nothing: it is to be read
  std::vector<int64_t> changed;         ///< by the last change()
};

Pool::Pool(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Pool::Pool(Pool&&) noexcept = default;
Pool& Pool::operator=(Pool&&) noexcept = default;
Pool::~Pool() = default;

Result<Pool> Pool::open(const std::string& folder) {
  count_pool(0);
  REMUDA_TRY(make_folder(folder));
  REMUDA_ASSIGN(Store store, Store::open(folder));
  REMUDA_TRY(make_bell_folder(folder));
  auto impl = std::make_unique<Impl>(folder, std::move(store));
  REMUDA_ASSIGN(impl->seen, impl->store.version());
  return Pool(std::move(impl));
}

Result<PoolState> Pool::read() {
  REMUDA_TRY(impl_->check_usable());
  REMUDA_ASSIGN(const auto transaction, sqlite::Transaction::reading(impl_->store.database()));
  REMUDA_TRY(impl_->read_within());
  return impl_->kept.state();
}

const PoolState& Pool::seen() const { return impl_->kept.state(); }

const std::vector<int64_t>& Pool::changed() const { return impl_->changed; }

Result<void> Pool::change(const std::function<Result<void>(PoolState&)>& transition, const std::vector<int64_t>& with) {
  impl_->changed.clear();
  REMUDA_TRY(impl_->check_usable());
  REMUDA_ASSIGN(auto transaction, sqlite::Transaction::writing(impl_->store.database()));
  REMUDA_TRY(impl_->read_within());
  REMUDA_ASSIGN(const std::vector<int64_t> added, impl_->add_ended(with));
  auto written = impl_->write(transition);
  const bool has_changed = written && (!impl_->changed.empty() || impl_->kept.differs_beside_jobs());
  if (has_changed) written = transaction.commit();
  if (has_changed && !written) impl_->store.undone();
  if (written)
    impl_->kept.accept(impl_->changed);
  else
    impl_->kept.undo();
  impl_->kept.forget_ended(added);
  impl_->kept.forget_ended(impl_->changed);
  if (impl_->kept.lacks_awaited(impl_->changed)) impl_->kept_version.reset();
  if (!written) impl_->changed.clear();
  if (written && has_changed) Bell::ring(impl_->folder);
  return written;
}

bool Pool::may_try_again() const { return impl_->cannot_create_bell || impl_->store.database().failure_may_pass(); }

bool Pool::was_busy() const { return impl_->store.database().was_busy(); }

void Pool::forget_failure() {
  impl_->cannot_create_bell = false;
  impl_->store.database().begin_call();
}

void Pool::set_patience(std::chrono::milliseconds patience) { impl_->store.database().set_patience(patience); }

Result<std::vector<std::string>> Pool::set_aside(double now_s) {
  REMUDA_TRY(impl_->check_usable());
  REMUDA_ASSIGN(auto transaction, sqlite::Transaction::writing(impl_->store.database()));
  REMUDA_ASSIGN(std::vector<std::string> sentences, impl_->store.set_aside(now_s));
  if (!sentences.empty()) REMUDA_TRY(transaction.commit());
  impl_->kept_version.reset();
  return sentences;
}

Result<std::optional<Job>> Pool::find(int64_t id) {
  REMUDA_TRY(impl_->check_usable());
  REMUDA_ASSIGN(const auto transaction, sqlite::Transaction::reading(impl_->store.database()));
  REMUDA_ASSIGN(impl_->seen, impl_->store.version());
  return impl_->store.find(id);
}

Result<std::vector<Job>> Pool::ended(int at_most) {
  REMUDA_TRY(impl_->check_usable());
  return impl_->store.ended(at_most, 0);
}

Result<std::vector<Job>> Pool::ended(int at_most, int64_t below) {
  REMUDA_TRY(impl_->check_usable());
  return impl_->store.ended(at_most, below);
}

Result<void> Pool::wait(const std::vector<process::ProcessId>& processes, double seconds,
                        const std::vector<int>& readable) {
  constexpr double kBlindStep_s = 0.25;  // where the kernel does not report the end of processes
  REMUDA_TRY(impl_->check_usable());
  if (!impl_->bell) {
    auto bell = Bell::create(impl_->folder);
    impl_->cannot_create_bell = !bell;
    if (!bell) return tl::unexpected(std::move(bell.error()));
    impl_->bell.emplace(std::move(*bell));
  }
  const ProcessWatch watch(impl_->folder, processes);
  const double end_s = monotonic_s() + seconds;
  std::vector<pollfd> polled{{impl_->bell->fd(), POLLIN, 0}};
  for (const int fd : readable) polled.push_back({fd, POLLIN, 0});
  watch.add_to(polled);
  for (;;) {
    impl_->bell->clear();
    REMUDA_ASSIGN(const bool has_news, impl_->has_news());
    const double left_s = end_s - monotonic_s();
    if (has_news || !watch.all_live() || left_s <= 0) return {};
    const int ready = ::poll(polled.data(), polled.size(),
                             poll_timeout_ms(watch.sees_all() ? left_s : std::min(left_s, kBlindStep_s)));
    if (ready < 0 && errno == EINTR) return {};
    if (ready < 0) return failed(fmt::format("cannot wait for the pool: {}", errno_text(errno)));
    if (std::ranges::any_of(polled.begin() + 1, polled.end(), [](const pollfd& one) { return one.revents != 0; }))
      return {};
  }
}

}  // namespace remuda::pool
