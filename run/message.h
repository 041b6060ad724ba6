// Message: what the two processes of `remuda run` send each other, one datagram each.
#pragma once

#include <optional>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "device/words.h"

namespace remuda::run {

/// From the keeper, which does the work, to the front, which talks to the user.
struct Message {
  enum class Kind {
    waiting,   ///< text: why, or empty
    started,   ///< text: the devices, for people
    progress,  ///< text: how far it has come; status: in percent
    note,      ///< text: something the user should know
    ended,     ///< the last one; status: for exit(); text: a sentence, empty when there is nothing to add
  };
  Kind kind = Kind::note;
  int64_t job = 0;  ///< 0: none yet
  int status = 0;
  std::string text;
};
}  // namespace remuda::run

template <>
struct remuda::Words<remuda::run::Message::Kind> {
  static constexpr std::array table{
      std::pair{run::Message::Kind::waiting, "waiting"}, std::pair{run::Message::Kind::started, "started"},
      std::pair{run::Message::Kind::progress, "progress"}, std::pair{run::Message::Kind::note, "note"},
      std::pair{run::Message::Kind::ended, "ended"}};
};

namespace remuda::run {

/// The status of Kind::ended for a job that did not enter its pool: the error's own, where the user can mend it.
int status_of_refusal(const Error& error);

/// From the front to the keeper: a signal was received; or, as number kKept, all is kept with which another keeper can
/// go on with the job.
struct ReceivedSignal {
  static constexpr int kKept = 0;
  int number = kKept;
  bool from_terminal = false;  ///< then the job, in the same process group, has received it too
};

struct Channel {
  Fd front, keeper;
};
/// Both ends keep message boundaries, never block, and are closed by exec.
Result<Channel> make_channel();

/// Closes every descriptor except stdin, stdout, stderr and `kept`.
void close_all_but(int kept);

/// False when the other side is gone, or has not read for so long that nothing more fits.
bool send(int fd, const Message& message);
bool send(int fd, const ReceivedSignal& signal);

/// The next message; nothing when there is none now (`gone` false) or ever again (`gone` true).
template <typename T>
struct Received {
  std::optional<T> value;
  bool gone = false;
};
Received<Message> receive_message(int fd);
Received<ReceivedSignal> receive_signal(int fd);

}  // namespace remuda::run
