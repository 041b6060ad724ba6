// TransportCommunicator: the common part of all transports. Numbers and describes the calls, keeps the first error, and
// reports it to the peers; makes the communicators that split off. A transport implements how ranks wait for each other
// and how data moves.
#pragma once

#include <optional>

#include "comm/call.h"
#include "comm/communicator.h"
#include "comm/peers.h"
#include "comm/rendezvous.h"

namespace remuda::comm {

class TransportCommunicator : public Communicator {
 public:
  /// Takes the control connections and the ranks of `mesh`.
  TransportCommunicator(Mesh& mesh, Origin origin);

  int rank() const final { return number_; }
  int size() const final { return static_cast<int>(ranks_.size()); }
  Result<std::span<std::byte>> allocate(size_t bytes) final;
  Result<void> all_reduce(Values values, uint32_t label) final;
  using Communicator::reduce_scatter;
  Result<void> reduce_scatter(Values values, const Parts& parts, Values sum, uint32_t label,
                              const std::vector<bool>& silent = {}) final;
  Result<void> gather_parts(std::span<std::byte> bytes, const Parts& parts, uint32_t label) final;
  Result<void> broadcast(std::span<std::byte> bytes, int root, uint32_t label) final;
  Result<void> all_gather(std::span<const std::byte> mine, std::span<std::byte> all, uint32_t label) final;
  Result<void> all_to_all(std::span<const std::byte> mine, const Parts& parts, std::span<std::byte> theirs,
                          uint32_t label) final;
  Result<void> barrier(uint32_t label) final;
  Result<std::unique_ptr<Communicator>> split(std::span<const int> ranks, uint32_t label) final;
  void set_timeout(double seconds) final { timeout_s_ = seconds; }

 protected:
  virtual Result<std::span<std::byte>> do_allocate(const Call& call) = 0;
  virtual Result<void> do_all_reduce(const Call& call, std::span<std::byte> bytes) = 0;
  /// `parts` are in bytes. The own part's sum goes to `sum`: in place, or elsewhere. `silent`: one per rank.
  virtual Result<void> do_reduce_scatter(const Call& call, std::span<std::byte> bytes, const Parts& parts,
                                         std::byte* sum, const std::vector<bool>& silent) = 0;
  virtual Result<void> do_gather_parts(const Call& call, std::span<std::byte> bytes, const Parts& parts) = 0;
  virtual Result<void> do_broadcast(const Call& call, std::span<std::byte> bytes, int root) = 0;
  virtual Result<void> do_all_gather(const Call& call, std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  /// `parts` are in bytes. Unless a transport knows better: all bytes go to all, as they do through memory.
  virtual Result<void> do_all_to_all(const Call& call, std::span<const std::byte> mine, const Parts& parts,
                                     std::span<std::byte> theirs);
  virtual Result<void> do_barrier(const Call& call) = 0;
  /// Where `values` lie in allocate()d memory.
  virtual uint64_t offset_of(const void* values) const = 0;
  /// Called after the first error: nothing more will be sent.
  virtual void hang_up() {}

  /// Those that take part, by number, as the job numbers them: so they know each other and stand in errors.
  std::span<const int> ranks() const { return ranks_; }
  Peers& peers() { return peers_; }
  /// Seconds on steady_clock() at which the call in progress gives up.
  double deadline_s() const { return deadline_s_; }
  double timeout_s() const { return timeout_s_; }

 private:
  Call in_place(Call::Kind kind, uint32_t label, const Values& values) const;
  Result<std::unique_ptr<Communicator>> connect_some(const Call& call, std::vector<int> some);
  template <typename Body>
  auto collective(Call call, Body body) -> decltype(body(call));

  Origin origin_;
  int number_;
  std::vector<int> ranks_;
  Peers peers_;
  double timeout_s_;
  double deadline_s_ = 0;
  uint64_t sequence_ = 0;
  std::optional<Error> failure_;
};

}  // namespace remuda::comm
