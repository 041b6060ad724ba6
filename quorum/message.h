// Message: what a rank says of itself to all others, again and again, until they have agreed on who goes on.
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace remuda::quorum {

/// The number of an attempt to agree: of two, the higher one counts. Round 0 is none.
struct Ballot {
  int round = 0;
  int rank = 0;  ///< that makes the attempt
  auto operator<=>(const Ballot&) const = default;
};

/// Who goes on, and where they meet: the first of them listens there.
struct Proposal {
  std::vector<int> ranks;  ///< in order
  std::string address;
  int port = 0;
  bool operator==(const Proposal&) const = default;
};

struct Message {
  int generation = 0;           ///< of the ranks among whom it is said; kHello before the first one
  int rank = 0;                 ///< that says it
  int lost = -1;                ///< the rank that it has lost; -1: it cannot say
  std::string cause;            ///< how it knows
  bool done = false;            ///< the run is: nobody need go on
  bool welcomes = false;        ///< it is ready to go on with the newcomer, where there is one
  std::string address;          ///< where it would have the others meet
  int port = 0;                 ///< there
  std::vector<int> heard_from;  ///< whom it has heard lately, in order
  Ballot promised;              ///< it takes no lower one any more
  Ballot accepted;              ///< the last that it has taken
  Proposal value;               ///< of that
  bool decided = false;         ///< a quorum has taken it

  bool operator==(const Message&) const = default;
};

inline constexpr int kHello = -1;
inline constexpr size_t kLongestCause = 200;

std::string to_text(const Message& message);
/// Safe for any text. An error says no more than that it is no message.
Result<Message> parse_message(std::string_view text);

}  // namespace remuda::quorum
