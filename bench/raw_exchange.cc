#include "bench/raw_exchange.h"

#include <algorithm>
#include <poll.h>

#include "bench/pair.h"
#include "bench/repeat.h"
#include "comm/wire.h"

namespace remuda::bench {
namespace {

constexpr size_t kTurnBytes = 256 << 10;
constexpr double kPatienceS = 60;

Result<Fd> connect_pair(int rank, const Fd& listener) {
  const double deadline_s = comm::deadline_after(kPatienceS);
  if (rank == 1) return comm::dial(comm::local_endpoint(listener.get()), deadline_s);
  if (!comm::wait_ready(listener.get(), POLLIN, deadline_s)) return failed("the other process did not connect");
  return comm::accept_waiting(listener.get());
}

Result<void> exchange(int fd, std::span<const std::byte> out, std::span<std::byte> in) {
  while (!out.empty() || !in.empty()) {
    ptrdiff_t got = 0, sent = 0;
    if (!in.empty()) got = comm::recv_some(fd, in.first(std::min(kTurnBytes, in.size())));
    if (!out.empty()) sent = comm::send_some(fd, out.first(std::min(kTurnBytes, out.size())));
    if (got < 0 || sent < 0) return failed("the other process is gone");
    in = in.subspan(static_cast<size_t>(got));
    out = out.subspan(static_cast<size_t>(sent));
    if (got + sent > 0) continue;
    const int events = (in.empty() ? 0 : POLLIN) | (out.empty() ? 0 : POLLOUT);
    if (!comm::wait_ready(fd, static_cast<short>(events), comm::deadline_after(kPatienceS)))
      return failed("the other process does not answer");
  }
  return {};
}

Result<double> time_size(int fd, size_t bytes) {
  std::vector<std::byte> out(bytes), in(bytes);
  Result<void> first_error;
  const auto keep = [&](Result<void> result) {
    if (first_error && !result) first_error = std::move(result);
  };
  const auto swap = [&](auto& mine, auto& theirs) {
    keep(exchange(fd, std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(&theirs, 1))));
  };
  const auto prepare = [&] {
    std::ranges::fill(out, std::byte{1});
    char mine = 0, theirs = 0;
    swap(mine, theirs);
  };
  const auto agree = [&](int times) {
    int theirs = 0;
    swap(times, theirs);
    return std::min(times, theirs);
  };
  const double mine = median_s(kSecondsPerFigure, prepare, [&] { keep(exchange(fd, out, in)); }, agree);
  double theirs = 0;
  swap(mine, theirs);
  REMUDA_TRY(first_error);
  return std::max(mine, theirs);
}

}  // namespace

Result<std::vector<double>> time_raw_exchange(std::span<const size_t> sizes) {
  REMUDA_ASSIGN(const Fd listener, comm::listen_on({"127.0.0.1", 0}));
  return run_pair([&](int rank) -> Result<std::vector<double>> {
    REMUDA_ASSIGN(const Fd fd, connect_pair(rank, listener));
    std::vector<double> all;
    for (const size_t bytes : sizes) {
      REMUDA_ASSIGN(const double seconds, time_size(fd.get(), bytes));
      all.push_back(seconds);
    }
    return all;
  });
}

}  // namespace remuda::bench
