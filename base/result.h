// Result<T>: a value, or an Error that says what went wrong in one sentence.
//
// There are three kinds of failure:
//   expected (bad input, a dead peer)   -> Result<T>, returned up to the program's main
//   a bug in remuda                     -> REMUDA_CHECK (base/check.h) aborts
//   an exception of a library           -> caught where the library is called, turned into an Error
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace remuda {

/// What kind of failure it is. Each kind has one exit status; see exit_status().
enum class ErrorKind {
  usage,        ///< the user's input is wrong: flag, file, key, value
  failed,       ///< the work was tried and failed
  lost_peer,    ///< another rank of the job went away; that rank's own error is the cause
  never,        ///< this machine does not have what is asked for
  not_now,      ///< it has, but others hold it
  unavailable,  ///< the agent that serves this machine does not answer
};

struct Error {
  ErrorKind kind = ErrorKind::failed;
  std::string message;  ///< one sentence: what, where, what would be right; no full stop
  int peer = -1;        ///< for lost_peer: the rank that went away
};

/// The exit status a program ends with: usage 2, never 3, not_now 4, unavailable 5, everything else 1.
int exit_status(ErrorKind kind);

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> usage_error(std::string message) {
  return tl::unexpected(Error{ErrorKind::usage, std::move(message), -1});
}
inline tl::unexpected<Error> failed(std::string message) {
  return tl::unexpected(Error{ErrorKind::failed, std::move(message), -1});
}

/// The text of an errno value, e.g. "No such file or directory".
std::string errno_text(int error_number);

}  // namespace remuda

#define REMUDA_CONCAT_(a, b) a##b
#define REMUDA_CONCAT(a, b) REMUDA_CONCAT_(a, b)

/// REMUDA_TRY(expression): returns its error from the enclosing function, if it has one.
#define REMUDA_TRY(...)                                                                            \
  do {                                                                                             \
    if (auto result_ = (__VA_ARGS__); !result_) return tl::unexpected(std::move(result_.error())); \
  } while (false)

/// REMUDA_ASSIGN(auto value, expression): the same, and binds the value otherwise.
#define REMUDA_ASSIGN(declaration, ...) REMUDA_ASSIGN_(REMUDA_CONCAT(result_, __LINE__), declaration, __VA_ARGS__)
#define REMUDA_ASSIGN_(result, declaration, ...)                 \
  auto result = (__VA_ARGS__);                                   \
  if (!result) return tl::unexpected(std::move(result.error())); \
  declaration = std::move(*result)
