// Times all_reduce between two processes, for each transport, beside gloo and OpenMPI and the limit of the machine;
// TCP beside a raw exchange of the same bytes, too, and over a link of 1 Gbit/s where the system can make one. Counts
// what each of more ranks sends. The limit of encrypted TCP is the raw exchange and the time of the cipher alone. What
// is timed: repeat.h. What the limit is: limit.h.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>

#include "bench/cipher.h"
#include "bench/figure.h"
#include "bench/limit.h"
#include "bench/pair.h"
#include "bench/peer.h"
#include "bench/raw_exchange.h"
#include "bench/repeat.h"
#include "bench/sent_bytes.h"
#include "bench/slow_link.h"
#include "comm/communicator.h"
#include "comm/wire.h"

namespace remuda::bench {
namespace {

using Transport = comm::ConnectOptions::Transport;

constexpr std::array<size_t, 4> kSizes{4 << 10, 1 << 20, 25 << 20, 100 << 20};
constexpr size_t kSlowBytes = 25 << 20;
constexpr double kSlowBitsPerS = 1e9;
constexpr double kSlowSeconds = 5;  // for a figure: about ten calls

struct Peer {
  std::string name;
  Result<std::map<size_t, double>> seconds;
};

Result<double> time_size(comm::Communicator& communicator, size_t bytes, double figure_s = kSecondsPerFigure) {
  REMUDA_ASSIGN(const auto memory, communicator.allocate(bytes));
  const std::span values(reinterpret_cast<float*>(memory.data()), bytes / sizeof(float));
  Result<void> first_error;
  const auto keep = [&](Result<void> result) {
    if (first_error && !result) first_error = std::move(result);
  };
  const auto prepare = [&] {
    std::ranges::fill(values, 1.0f);
    keep(communicator.barrier(0));
  };
  const auto call = [&] { keep(communicator.all_reduce(values, 0)); };
  const auto agree = [&](int times) {
    keep(communicator.broadcast(std::as_writable_bytes(std::span(&times, 1)), 0, 0));
    return times;
  };
  const double mine = median_s(figure_s, prepare, call, agree);
  std::array<double, 2> both{};
  keep(communicator.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(both)), 0));
  REMUDA_TRY(first_error);
  return std::ranges::max(both);
}

/// A way to exchange data, and what it is called in the figures.
struct Way {
  const char* name;
  Transport transport;
  comm::Encryption encryption = comm::Encryption::off;
  int streams = 1;
};
constexpr Way kWays[] = {{"shared memory", Transport::shared_memory},
                         {"tcp", Transport::tcp},
                         {"tcp, encrypted", Transport::tcp, comm::Encryption::always},
                         {"tcp, encrypted, 4 streams", Transport::tcp, comm::Encryption::always, 4}};

Result<std::vector<double>> time_transport(const Way& way) {
  REMUDA_ASSIGN(Fd listener, comm::listen_on({"127.0.0.1", 0}));
  return run_pair([&](int rank) -> Result<std::vector<double>> {
    REMUDA_ASSIGN(const auto communicator, comm::connect({.rank = rank,
                                                          .size = 2,
                                                          .master_port = comm::local_endpoint(listener.get()).port,
                                                          .listener = rank == 0 ? std::move(listener) : Fd(),
                                                          .secret = "bench",
                                                          .encryption = way.encryption,
                                                          .transport = way.transport,
                                                          .streams = way.streams}));
    std::vector<double> all;
    for (const size_t bytes : kSizes) {
      REMUDA_ASSIGN(const double seconds, time_size(*communicator, bytes));
      all.push_back(seconds);
    }
    return all;
  });
}

// One call in each direction takes at least as long as the bytes that a rank must send need on the link.
Result<Figure> time_slow_link() {
  REMUDA_ASSIGN(const SlowLink link, SlowLink::create(kSlowBitsPerS));
  REMUDA_ASSIGN(const auto seconds, run_pair([&](int rank) -> Result<std::vector<double>> {
                  REMUDA_TRY(link.enter(rank));
                  REMUDA_ASSIGN(const auto communicator, comm::connect({.rank = rank,
                                                                        .size = 2,
                                                                        .master_address = link.address(0),
                                                                        .master_port = 29500,
                                                                        .bind_address = link.address(rank),
                                                                        .secret = std::string(32, 'b'),
                                                                        .transport = Transport::tcp}));
                  REMUDA_ASSIGN(const double each, time_size(*communicator, kSlowBytes, kSlowSeconds));
                  return std::vector{each};
                }));
  const double limit = kSlowBytes * 8 / kSlowBitsPerS;
  return Figure{.name = "all_reduce",
                .parameters = {{"transport", "tcp, encrypted"},
                               {"ranks", 2},
                               {"bytes", kSlowBytes},
                               {"peer", "link of 1 Gbit/s"}},
                .value = seconds.front() * 1e6,
                .unit = "us",
                .peer = limit * 1e6,
                .ratio = limit / seconds.front(),
                .limit = limit * 1e6};
}

Result<Peer> run_raw_exchange() {
  REMUDA_ASSIGN(const auto seconds, time_raw_exchange(kSizes));
  std::map<size_t, double> by_size;
  for (size_t i = 0; i < kSizes.size(); ++i) by_size[kSizes[i]] = seconds[i];
  return Peer{"raw exchange", by_size};
}

std::vector<Peer> run_peers() {
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::string gloo = fmt::format("/usr/bin/python3 {}/allreduce_gloo.py", REMUDA_BENCH_SOURCES);
  const std::string mpi =
      fmt::format("mpirun -np 2 --allow-run-as-root --oversubscribe --bind-to none {}/allreduce_mpi", here.string());
  return {{"gloo", run_peer(gloo, kSizes)}, {"openmpi", run_peer(mpi, kSizes)}};
}

Figure figure_of(const char* transport, size_t bytes, double seconds, const Peer& peer, const Limit& limit) {
  Figure figure{.name = "all_reduce",
                .parameters = {{"transport", transport}, {"ranks", 2}, {"bytes", bytes}, {"peer", peer.name}},
                .value = seconds * 1e6,
                .unit = "us",
                .limit = limit.seconds * 1e6};
  if (peer.seconds && peer.seconds->contains(bytes)) {
    figure.peer = peer.seconds->at(bytes) * 1e6;
    figure.ratio = *figure.peer / figure.value;
  }
  return figure;
}

Result<std::vector<Figure>> measure(bool with_peers) {
  auto peers = with_peers ? run_peers() : std::vector<Peer>{{"none", {}}};
  for (const Peer& peer : peers)
    if (!peer.seconds)
      fmt::print(stderr, "{} is left out: {}; is it installed?\n", peer.name, peer.seconds.error().message);
  // Right before remuda's own figures: a virtual machine's cores change their places, and their distance.
  REMUDA_ASSIGN(auto limits, measure_limits(kSizes));
  std::vector<Figure> figures;
  for (const Way& way : kWays) {
    if (way.transport == Transport::tcp) {
      REMUDA_ASSIGN(Peer raw, run_raw_exchange());
      if (peers.back().name == raw.name) peers.pop_back();
      peers.push_back(std::move(raw));
    }
    if (way.encryption != comm::Encryption::off) {
      REMUDA_ASSIGN(const double cipher_s, cipher_s_per_byte());
      for (size_t i = 0; i < kSizes.size(); ++i)
        limits[i].seconds = peers.back().seconds->at(kSizes[i]) + cipher_s * static_cast<double>(kSizes[i]);
    }
    REMUDA_ASSIGN(const auto seconds, time_transport(way));
    for (size_t i = 0; i < kSizes.size(); ++i)
      for (const Peer& peer : peers) figures.push_back(figure_of(way.name, kSizes[i], seconds[i], peer, limits[i]));
  }
  if (const auto slow = time_slow_link())
    figures.push_back(*slow);
  else
    fmt::print(stderr, "a link of 1 Gbit/s is left out: {}\n", slow.error().message);
  REMUDA_ASSIGN(const auto counted, count_sent_bytes());
  figures.insert(figures.end(), counted.begin(), counted.end());
  return figures;
}

}  // namespace
}  // namespace remuda::bench

int main(int argc, char** argv) {
  using namespace remuda;
  CLI::App app("Times all_reduce between two processes beside gloo, OpenMPI and the machine's limit.");
  bool json = false, alone = false;
  app.add_flag("--json", json, "print one JSON object per figure, a line each");
  app.add_flag("--alone", alone, "without gloo and OpenMPI");
  CLI11_PARSE(app, argc, argv);
  const auto figures = bench::measure(!alone);
  if (!figures) {
    fmt::print(stderr, "{}\n", figures.error().message);
    return exit_status(figures.error().kind);
  }
  fmt::print("{}", json ? bench::as_json_lines(*figures) : bench::as_table(*figures));
}
