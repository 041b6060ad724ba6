#include "bench/sent_bytes.h"

#include <algorithm>
#include <array>
#include <thread>

#include "comm/communicator.h"
#include "comm/wire.h"

namespace remuda::bench {
namespace {

constexpr size_t kBytes = 4 << 20;
constexpr std::array kCalls{"all_reduce", "reduce_scatter", "gather_parts", "broadcast", "all_gather", "barrier"};

using Sent = std::array<uint64_t, kCalls.size()>;

// A rank must send what the others lack and only it has: N-1 of N parts of the values, in each half of an all_reduce.
// All ranks together send what all lack; the root of a broadcast could send each byte once.
std::array<double, kCalls.size()> least(int ranks) {
  const double parts = kBytes * (ranks - 1.0) / ranks;
  return {2 * parts, parts, parts, kBytes, kBytes * (ranks - 1.0), 0};
}

Result<Sent> be_rank(comm::ConnectOptions options) {
  REMUDA_ASSIGN(const auto communicator, comm::connect(std::move(options)));
  REMUDA_ASSIGN(const auto memory, communicator->allocate(kBytes));
  const std::span values(reinterpret_cast<float*>(memory.data()), kBytes / sizeof(float));
  const int size = communicator->size();
  const comm::Parts parts = comm::even_parts(size, values.size(), sizeof(float));
  std::vector<std::byte> all(kBytes * static_cast<size_t>(size));
  Sent sent{};
  size_t at = 0;
  const auto count = [&](auto call) -> Result<void> {
    const uint64_t before = communicator->sent_bytes();
    REMUDA_TRY(call());
    sent[at++] = communicator->sent_bytes() - before;
    return {};
  };
  REMUDA_TRY(count([&] { return communicator->all_reduce(values, 0); }));
  REMUDA_TRY(count([&] { return communicator->reduce_scatter(values, parts, 0); }));
  REMUDA_TRY(count([&] { return communicator->gather_parts(memory, parts.in_bytes(sizeof(float)), 0); }));
  REMUDA_TRY(count([&] { return communicator->broadcast(memory, 0, 0); }));
  REMUDA_TRY(count([&] { return communicator->all_gather(memory, all, 0); }));
  REMUDA_TRY(count([&] { return communicator->barrier(0); }));
  return sent;
}

Result<Sent> most_sent(int ranks) {
  REMUDA_ASSIGN(Fd listener, comm::listen_on({"127.0.0.1", 0}));
  const int port = comm::local_endpoint(listener.get()).port;
  std::vector<Result<Sent>> results(static_cast<size_t>(ranks));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      results[static_cast<size_t>(rank)] = be_rank({.rank = rank,
                                                    .size = ranks,
                                                    .master_port = port,
                                                    .listener = rank == 0 ? std::move(listener) : Fd(),
                                                    .secret = "bench",
                                                    .transport = comm::ConnectOptions::Transport::tcp});
    });
  threads.clear();
  Sent most{};
  for (const auto& result : results) {
    REMUDA_ASSIGN(const Sent& sent, result);
    for (size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], sent[i]);
  }
  return most;
}

}  // namespace

Result<std::vector<Figure>> count_sent_bytes() {
  std::vector<Figure> figures;
  for (const int ranks : {4, 8, 16}) {
    REMUDA_ASSIGN(const Sent sent, most_sent(ranks));
    for (size_t i = 0; i < kCalls.size(); ++i)
      figures.push_back({.name = "bytes a rank sends",
                         .parameters = {{"call", kCalls[i]}, {"ranks", ranks}, {"bytes", kBytes}},
                         .value = static_cast<double>(sent[i]),
                         .unit = "B",
                         .limit = least(ranks)[i]});
  }
  return figures;
}

}  // namespace remuda::bench
