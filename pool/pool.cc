#include "pool/pool.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/state_folder.h"
#include "pool/bell.h"
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

void clean_changed(const PoolState& before, PoolState& after) {
  for (Job& job : after.jobs) {
    const Job* known = before.find(job.id);
    if (!known || *known != job) clean_texts(job);
  }
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

  Result<PoolState> read_within(const std::vector<int64_t>& with) {
    REMUDA_ASSIGN(seen, store.version());
    return store.read(with);
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
  return impl_->read_within({});
}

Result<void> Pool::change(const std::function<Result<void>(PoolState&)>& transition, const std::vector<int64_t>& with) {
  REMUDA_TRY(impl_->check_usable());
  REMUDA_ASSIGN(auto transaction, sqlite::Transaction::writing(impl_->store.database()));
  REMUDA_ASSIGN(const PoolState before, impl_->read_within(with));
  PoolState after = before;
  REMUDA_TRY(transition(after));
  clean_changed(before, after);
  if (after == before) return {};
  const std::string broken = check(after);
  REMUDA_CHECK(broken.empty(), broken.c_str());
  REMUDA_TRY(impl_->store.write(before, after));
  REMUDA_TRY(transaction.commit());
  Bell::ring(impl_->folder);
  return {};
}

bool Pool::may_try_again() const { return impl_->cannot_create_bell || impl_->store.database().failure_may_pass(); }

Result<std::optional<Job>> Pool::find(int64_t id) {
  REMUDA_TRY(impl_->check_usable());
  return impl_->store.find(id);
}

Result<std::vector<Job>> Pool::ended(int at_most) {
  REMUDA_TRY(impl_->check_usable());
  return impl_->store.ended(at_most);
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
