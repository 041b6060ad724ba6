#include "comm/testing/run_ranks.h"

#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "comm/wire.h"

namespace remuda::comm {
namespace {

class FirstException {
 public:
  void keep(std::exception_ptr exception) {
    const std::lock_guard lock(mutex_);
    if (!first_) first_ = std::move(exception);
  }
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

template <typename T>
T value_or_throw(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

}  // namespace

void run_ranks(int size, ConnectOptions::Transport transport, const std::function<void(Communicator&)>& body,
               double timeout_s, const std::function<void(ConnectOptions&)>& adjust) {
  Fd listener = value_or_throw(listen_on({"127.0.0.1", 0}));
  const int port = local_endpoint(listener.get()).port;
  FirstException failure;
  const auto run_rank = [&](int rank, Fd inherited) {
    try {
      ConnectOptions options{.rank = rank,
                             .size = size,
                             .master_port = port,
                             .listener = std::move(inherited),
                             .secret = "a test's secret",
                             .transport = transport,
                             .timeout_s = timeout_s};
      adjust(options);
      const auto communicator = value_or_throw(connect(std::move(options)));
      body(*communicator);
    } catch (...) {
      failure.keep(std::current_exception());
    }
  };
  std::vector<std::jthread> threads;
  threads.emplace_back(run_rank, 0, std::move(listener));
  for (int rank = 1; rank < size; ++rank) threads.emplace_back(run_rank, rank, Fd());
  threads.clear();
  failure.rethrow();
}

}  // namespace remuda::comm
