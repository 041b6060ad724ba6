// Messages: what a process asks an agent, and what that answers. Plain data, and its JSON.
//
// A client asks one thing at a time and reads the answer, which carries the request's id. It begins with `hello`, by
// which both learn whether they speak the same protocol. Between answers an agent sends word of a change of the job
// that the connection asked for last. Numbers and texts of users are checked by whoever reads them; a user's name and
// id are never taken from a message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "device/words.h"
#include "pool/operation.h"
#include "pool/state.h"

namespace remuda::wire {

/// Grows when an older program would misread a message.
inline constexpr int kProtocol = 1;

/// What an agent says to a client that greets it with `protocol`: an error of kind `unavailable`, with what helps,
/// where that is not its own.
Result<void> check_protocol(int protocol);

enum class Ask {
  hello,    ///< protocol: the client's -> Greeting
  read,     ///< all that is open, a page at a time: jobs with ids above `job` -> Page
  own,      ///< the same for the caller's own jobs
  around,   ///< leases, those who hold them, a page at a time, with ids above `after`, and on the first `job` -> Page.
            ///< The connection hears of changes of that job
  find,     ///< the job of that number, also one that has ended -> Page. The connection hears of its changes
  ended,    ///< the newest ended jobs below id `job` (0: all), at most `at_most` -> Page
  enter,    ///< the process that asks becomes one of `job`, which runs and is the caller's -> null
  bring,    ///< `process`, one of the caller's, becomes one of `job`, which the process that asks keeps -> null
  machine,  ///< what the agent sees of the machine, seconds ago at the most -> Inventory
  apply,    ///< `operation` -> pool::Applied. A submitted job is heard of from then on
};
}  // namespace remuda::wire

template <>
struct remuda::Words<remuda::wire::Ask> {
  static constexpr std::array table{std::pair{wire::Ask::hello, "hello"},     std::pair{wire::Ask::read, "read"},
                                    std::pair{wire::Ask::own, "own"},         std::pair{wire::Ask::around, "around"},
                                    std::pair{wire::Ask::find, "find"},       std::pair{wire::Ask::ended, "ended"},
                                    std::pair{wire::Ask::enter, "enter"},     std::pair{wire::Ask::bring, "bring"},
                                    std::pair{wire::Ask::machine, "machine"}, std::pair{wire::Ask::apply, "apply"}};
};

template <>
struct remuda::Words<remuda::ErrorKind> {
  static constexpr std::array table{
      std::pair{ErrorKind::usage, "usage"},         std::pair{ErrorKind::failed, "failed"},
      std::pair{ErrorKind::lost_peer, "lost_peer"}, std::pair{ErrorKind::never, "never"},
      std::pair{ErrorKind::not_now, "not_now"},     std::pair{ErrorKind::unavailable, "unavailable"}};
};

namespace remuda::wire {

/// The longest id of a request. It is the client's: letters and digits that it uses for no other request, so that one
/// that is sent again, as its answer was lost, is known to be the same.
inline constexpr size_t kLongestId = 64;

struct Request {
  std::string id;
  Ask ask = Ask::hello;
  int protocol = 0;
  int64_t job = 0;
  int64_t after = 0;
  int at_most = 0;
  process::ProcessId process;  ///< its pid is 0 where there is none
  std::optional<pool::Operation> operation;

  static constexpr const char* kName = "request";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("id", self.id, "made by the client", true);
    visit("ask", self.ask, "what is asked", true);
    visit("protocol", self.protocol, "the client's");
    visit("job", self.job, "number of a job");
    visit("after", self.after, "jobs with ids above");
    visit("at_most", self.at_most, "how many jobs");
    visit("process", self.process, "a process of the caller's");
  }
  bool operator==(const Request&) const = default;
};

struct Greeting {
  int protocol = kProtocol;
  std::string pool;            ///< folder of the agent's pool
  bool hides_devices = false;  ///< only the agent sees all of the machine: users ask for that
  bool keeps_daemons = false;  ///< for jobs that share devices
  std::string policy;          ///< path of its policy's file; empty: it has none, or is of an older version

  static constexpr const char* kName = "greeting";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("protocol", self.protocol, "the agent's", true);
    visit("pool", self.pool, "folder of its pool", true);
    visit("hides_devices", self.hides_devices, "users see no device that they were not granted, but by asking");
    visit("keeps_daemons", self.keeps_daemons, "jobs with parts of devices share them through its daemons");
    visit("policy", self.policy, "path of its policy's file");
  }
};

/// A part of a pool.
struct Page {
  pool::PoolState state;  ///< jobs that have ended may be among its jobs
  bool has_more = false;  ///< jobs with higher ids, or, of ended ones, lower
};

/// What an agent sends: an answer, or word of a change.
struct Answer {
  std::string id;       ///< of the request; empty: word of a change
  int64_t changed = 0;  ///< the job that has changed
  std::optional<Error> error;
  bool may_try_again = false;  ///< the error may pass
  Json result;                 ///< where there is no error
};

std::string text_of(const Request& request);
std::string text_of(const Answer& answer);
Json to_json(const Page& page);

/// Reads what text_of() wrote, or a usage error of one sentence.
Result<Request> parse_request(std::string_view text);
Result<Answer> parse_answer(std::string_view text);
Result<Page> parse_page(const Json& json);
Result<Greeting> parse_greeting(const Json& json);
Result<pool::Applied> parse_applied(const Json& json);

}  // namespace remuda::wire
