// Membership: where the ranks of one run, on one host or several, agree on who goes on when some of them are lost.
//
// Each rank has a socket for datagrams (post.h) for as long as it lives, and knows those of all others. When it loses
// another one, it comes to the membership of its generation: it sends its message to all until they have agreed
// (consensus.h). Datagrams are sealed (seal.h) with a key of this run, made of the job's secret.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "quorum/consensus.h"
#include "quorum/post.h"
#include "quorum/seal.h"

namespace remuda::quorum {

struct Lost {
  int rank = -1;
  std::string cause;
};

struct Agreement {
  bool is_done = false;    ///< the run is, and nobody goes on
  std::vector<int> ranks;  ///< that go on, this one among them, and the newcomer where it is taken in
  comm::Endpoint meeting;  ///< where the first of them listens
  Fd listener;             ///< this rank's own: of the first of them, that one
  std::vector<Lost> lost;
};

class Membership {
 public:
  /// Collective, of all ranks of a run, with calls of this label; `numbers` are those by which they know each other, in
  /// order. Each listens at `address`, where the others reach it. An error on all, of one sentence, where a rank does
  /// not hear another one.
  static Result<Membership> found(comm::Communicator& communicator, const std::vector<int>& numbers,
                                  const std::string& address, const std::string& secret, uint32_t label);

  struct Occasion {
    int generation = 0;        ///< of the members
    std::vector<int> members;  ///< in order
    size_t least = 1;          ///< so many must be left
    double notice_s = 300;     ///< in which the others notice that one is lost, and come
    Lost lost;                 ///< whom this rank has lost
    bool is_done = false;      ///< all that this run is for is there
    int newcomer = -1;         ///< a rank above all members that joins them; -1: none
    bool welcomes = false;     ///< this rank is ready to go on with it
  };
  /// Says its message until the ranks have agreed: within notice_s where all others have noticed the loss by then, and
  /// in twice that and some seconds in any case. Errors: nobody goes on, or this rank does not.
  Result<Agreement> agree(const Occasion& occasion);

 private:
  Membership(int rank, Post post, Seal seal, std::vector<comm::Endpoint> places)
      : rank_(rank), post_(std::move(post)), seal_(seal), places_(std::move(places)) {}
  Result<void> introduce(comm::Communicator& communicator, const std::vector<int>& numbers, uint32_t label);
  std::vector<Message> received() const;
  void say(const Message& message, Consensus* consensus, double now_s) const;
  void listen(Consensus& consensus, int generation, double now_s) const;

  int rank_;
  Post post_;
  Seal seal_;
  std::vector<comm::Endpoint> places_;  ///< of all ranks, by number; without a port: there is no such rank
  std::map<int, Message> decided_;      ///< by generation: for those that have not heard it
};

}  // namespace remuda::quorum
