// Who may ask: the secret token, and the names by which a browser may know this server. Pure, except for what makes or
// reads a token.
//
// The token is sent as `Authorization: Bearer` and in no other way. A cookie would be sent to all servers on the ports
// of a host, of which others may be other users'; the page reads events by fetch(), which can send the header.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace remuda::web {

/// 128 random bits as hexadecimal digits.
Result<std::string> make_token();

/// The token that a file has; where there is none, it is made with a new one, for its owner alone. A usage error for
/// one that others may read, or that is no token: 16 to 256 characters, of those that need no quoting.
Result<std::string> token_in(const std::string& path);

/// Whether the value of an Authorization header is the token, in a time that does not depend on where they differ.
bool is_authorized(std::string_view authorization, std::string_view token);

/// Whether a Host header names this server: an address, localhost, or one of `names`, with any port, as forwarding
/// (ssh -L) changes it. Another site whose name leads here (DNS rebinding) is none of these.
bool is_own_host(std::string_view host, std::span<const std::string> names);

/// Whether a request with this Origin header (empty: none was sent) comes from a page of this server.
bool is_own_origin(std::string_view origin, std::string_view scheme, std::string_view host);

/// Whether a numeric address is of this machine alone: 127.0.0.0/8 or ::1. False for names.
bool is_loopback(const std::string& address);

}  // namespace remuda::web
