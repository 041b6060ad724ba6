// Tests only: what the suites over all transports share. A new transport is a line in kTransports.
#pragma once

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "comm/testing/run_ranks.h"

namespace remuda::comm {

using Transport = ConnectOptions::Transport;

/// A transport, with what it calls itself, its word in the names of these tests, and what else is set for it.
struct Known {
  Transport transport;
  const char *name, *word;
  void (*adjust)(ConnectOptions&) = [](ConnectOptions&) {};
  int hosts = 1;  // rank r is on host r modulo this
};
inline constexpr Known kTransports[] = {
    {Transport::tcp, "tcp", "tcp"},
    {Transport::tcp, "tcp, encrypted", "tls", [](ConnectOptions& options) { options.encryption = Encryption::always; }},
    {Transport::tcp, "tcp, encrypted", "streams",
     [](ConnectOptions& options) {
       options.encryption = Encryption::always;
       options.streams = 3;
       options.stripe_bytes = 128;
     }},
    {Transport::shared_memory, "shared memory", "shm"},
    {Transport::automatic, "shared memory, tcp between hosts", "hosts",
     [](ConnectOptions& options) {
       options.host = options.rank % 2 == 0 ? "even" : "odd";
       options.streams = 2;
       options.stripe_bytes = 1 << 10;
     },
     2}};

struct Setup {
  Known known;
  int ranks;
};

inline void PrintTo(const Setup& setup, std::ostream* out) { *out << setup.known.name; }

inline std::string setup_name(const ::testing::TestParamInfo<Setup>& info) {
  return fmt::format("{}_{}", info.param.known.word, info.param.ranks);
}

// The values of rank `rank`; adding these in another order gives other bits.
template <typename T>
std::vector<T> values_of(int rank, size_t count) {
  std::mt19937 random(static_cast<unsigned>(1000 * rank + count));
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(std::ldexp(random() - 2e9, static_cast<int>(random() % 20) - 40));
  return values;
}

template <typename T>
void add_to(std::vector<T>& sum, const std::vector<T>& more) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
}

/// Of what `of(rank)` gives: by host, then by rank.
template <typename Of>
auto sum_in_order(int ranks, int hosts, Of of) {
  decltype(of(0)) sum;
  for (int host = 0; host < std::min(hosts, ranks); ++host) {
    auto of_host = of(host);
    for (int rank = host + hosts; rank < ranks; rank += hosts) add_to(of_host, of(rank));
    host == 0 ? sum.swap(of_host) : add_to(sum, of_host);
  }
  return sum;
}
template <typename T>
std::vector<T> sum_by_rank_order(int ranks, size_t count, int hosts = 1) {
  return sum_in_order(ranks, hosts, [&](int rank) { return values_of<T>(rank, count); });
}

template <typename T>
std::span<T> allocate(Communicator& communicator, size_t count) {
  auto bytes = communicator.allocate(count * sizeof(T));
  if (!bytes) throw std::runtime_error(bytes.error().message);
  return {reinterpret_cast<T*>(bytes->data()), count};
}

inline void expect_ok(const Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().message);
}

/// Each transport with each number of ranks.
inline std::vector<Setup> setups(std::initializer_list<int> numbers_of_ranks) {
  std::vector<Setup> all;
  for (const Known& each : kTransports)
    for (const int ranks : numbers_of_ranks) all.push_back({each, ranks});
  return all;
}

class TransportSuite : public ::testing::TestWithParam<Setup> {
 protected:
  int ranks() const { return GetParam().ranks; }
  /// Over which a large call goes to each peer.
  int streams() const {
    ConnectOptions options;
    GetParam().known.adjust(options);
    return options.streams;
  }
  void run(const std::function<void(Communicator&)>& body, double timeout_s = 30) const {
    const Known& known = GetParam().known;
    run_ranks(ranks(), known.transport, body, timeout_s, known.adjust);
  }
};

}  // namespace remuda::comm
