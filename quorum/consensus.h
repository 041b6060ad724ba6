// Consensus: one rank's part in the agreement on who goes on when ranks are lost and nobody is above them all.
//
// Each rank sends its message (message.h) to all others, again and again. Once everybody is there who may still come,
// the lowest that is there asks for a promise not to listen to older attempts, makes a proposal, and what a quorum has
// accepted is decided. This is Paxos (Lamport, The Part-Time Parliament, 1998) for one value, by gossip: all state of a
// rank is in its message, so a message that is lost, late or sent twice does no harm, and whoever sees a quorum accept
// has learned the outcome. Of two decisions among the same ranks each would have a quorum, and two quorums have a rank
// in common, which accepts one: so never do two halves both go on, whatever is cut, slow or killed, and when.
//
// Whether a rank that joins is taken in is agreed on in the same way, by those that it joins: it has no message itself.
// It goes on with them if all are there and each of them says that it is ready for that.
//
// Pure: messages, time and what cannot be reached come from outside.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quorum/message.h"

namespace remuda::quorum {

/// More than half of `members`, or exactly half with the first of them. `some` are of them; both in order.
bool is_quorum(std::span<const int> some, std::span<const int> members);

/// Those of `present` that go on: no two of them fail to hear each other; nor, where all are there, has one lost
/// another, as when a connection between two is cut. Left out is each time the one that most are at odds with; of
/// equals the last.
std::vector<int> those_that_agree(const std::vector<Message>& present, bool all_are_there);

struct ConsensusRules {
  int generation = 0;              ///< of the members
  std::vector<int> members;        ///< in order
  std::vector<std::string> hosts;  ///< of each
  size_t least = 1;                ///< so many must be left
  int newcomer = -1;               ///< a rank above the members, who may take it in; -1: none
  double notice_s = 300;           ///< in which the others notice that one is lost, and come
  double report_s = 2;  ///< in which they come once the last one came, where those missing are known to be lost
};

struct Verdict {
  enum class Now { go_on, done, end } now = Now::end;
  Proposal value;   ///< of those that go on, this rank among them
  std::string why;  ///< this rank does not: one sentence
};

class Consensus {
 public:
  /// `own` says which rank this is, whom it has lost, and where it would have the others meet.
  Consensus(ConsensusRules rules, Message own, double now_s);

  /// Messages of others than the members, or of another generation, count for nothing.
  void receive(const Message& message, double now_s);
  /// No datagram reaches this rank: it has ended, or no way leads there.
  void miss(int rank, double now_s);
  /// To be called when something was heard, and a few times a second.
  void advance(double now_s);

  const Message& message() const { return own_; }
  /// What this rank does; nothing as long as it must wait.
  const std::optional<Verdict>& verdict() const { return verdict_; }
  /// Whether nobody needs to hear its message any more.
  bool may_leave(double now_s) const;
  /// What this rank knows of the loss of another one, for people.
  std::string what_became_of(int rank) const;

 private:
  struct Seat {
    int rank = 0;
    std::string host;
    std::optional<Message> message;  ///< the last one
    double heard_s = 0;
    bool is_missed = false;
  };

  bool is_present(const Seat& seat, double now_s) const;
  std::vector<Message> present(double now_s) const;
  bool is_known_lost(const Seat& seat, const std::vector<Message>& present) const;
  bool all_reach_each_other(const std::vector<Message>& present) const;
  bool is_settled(const std::vector<Message>& present, double now_s) const;
  std::vector<int> those_that_go_on(const std::vector<Message>& present) const;
  bool all_welcome_newcomer(const std::vector<Message>& present) const;
  void learn();
  void propose(const std::vector<Message>& present);
  void ask_or_propose(const std::vector<Message>& present, double now_s);
  void conclude(double now_s);
  void end(std::string why, double now_s);
  std::string why_not(const std::vector<Message>& present) const;

  const ConsensusRules rules_;
  Message own_;
  std::vector<Seat> others_;
  const double since_s_;
  double last_came_s_;
  double asked_s_;
  double concluded_s_ = 0;
  std::optional<Verdict> verdict_;
};

}  // namespace remuda::quorum
