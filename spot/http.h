// HTTP, as little of it as a cloud's metadata address takes: one request to an address of this machine's own network,
// one small answer. Neither names nor TLS, redirects or connections that stay; every answer is bounded in bytes and
// time.
//
// It is not a library's: those for HTTP bring a dozen others into a program that starts in milliseconds (libcurl), or
// bound neither the number of headers nor the time of a whole answer (cpp-httplib).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/host_port.h"
#include "base/result.h"

namespace remuda::spot {

inline constexpr size_t kLargestAnswer = 256 << 10;

struct HttpRequest {
  std::string method, path;
  std::vector<std::pair<std::string, std::string>> headers;
};

struct HttpAnswer {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  ///< names in lower case
  std::string body;

  /// Empty where there is none.
  std::string header(std::string_view name) const;
};

/// Without white space at its ends.
std::string_view trimmed(std::string_view text);

/// As it is sent. Pure.
std::string text_of(const HttpRequest& request, const HostPort& server);

/// What has come of an answer, which is not whole yet where this is nothing; `is_all`: the server has closed. An error
/// for what is no answer. Pure.
Result<std::optional<HttpAnswer>> parse_http(std::string_view bytes, bool is_all);

/// Asks a server by its numeric address. An error where it does not answer whole within `patience_s`, or before the
/// descriptor `stop` is readable; -1: none.
Result<HttpAnswer> ask(const HostPort& server, const HttpRequest& request, double patience_s, int stop = -1);

}  // namespace remuda::spot
