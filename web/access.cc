#include "web/access.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/letter_case.h"

namespace remuda::web {
namespace {

constexpr size_t kShortestToken = 16, kLongestToken = 256;
/// Of a bearer token (RFC 6750, section 2.1).
constexpr std::string_view kTokenCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=";

bool is_address(const std::string& text, int family) {
  in6_addr address{};
  return ::inet_pton(family, text.c_str(), &address) == 1;
}

bool is_port(std::string_view text) {
  return text.empty() || (text[0] == ':' && text.size() <= 6 &&
                          std::ranges::all_of(text.substr(1), [](char c) { return c >= '0' && c <= '9'; }));
}

}  // namespace

Result<std::string> make_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return failed(fmt::format("cannot get random bytes for a token: {}", errno_text(errno)));
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

Result<std::string> token_in(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 && errno == ENOENT) {
    REMUDA_ASSIGN(std::string token, make_token());
    // For its owner from the first moment, and never in place of a file that came meanwhile.
    const Fd made(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!made) return failed(fmt::format("cannot write {}: {}", path, errno_text(errno)));
    if (auto written = write_all(made.get(), token + "\n", path); !written) {
      ::unlink(path.c_str());  // an empty one would be taken for one without a token, ever after
      return tl::unexpected(std::move(written.error()));
    }
    return token;
  }
  REMUDA_ASSIGN(const Fd file, open_for_reading(path));
  if (::fstat(file.get(), &info) != 0 || (info.st_mode & 077) != 0)
    return usage_error(fmt::format("{} may be read by others than its owner: chmod 600 {}", path, path));
  std::string token(kLongestToken + 2, '\0');
  token.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(file.get(), token.data(), token.size()))));
  token.erase(token.find_last_not_of("\r\n") + 1);
  const bool is_plain =
      std::ranges::all_of(token, [](char c) { return kTokenCharacters.find(c) != std::string_view::npos; });
  if (is_plain && token.size() >= kShortestToken && token.size() <= kLongestToken) return token;
  return usage_error(fmt::format("{} has no token: {} to {} letters, digits, or characters of -._~+/=", path,
                                 kShortestToken, kLongestToken));
}

bool is_authorized(std::string_view authorization, std::string_view token) {
  constexpr std::string_view kScheme = "Bearer ";
  if (!authorization.starts_with(kScheme)) return false;
  authorization.remove_prefix(kScheme.size());
  return authorization.size() == token.size() && !token.empty() &&
         ::CRYPTO_memcmp(authorization.data(), token.data(), token.size()) == 0;
}

bool is_own_host(std::string_view host, std::span<const std::string> names) {
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    return end != std::string_view::npos && is_port(host.substr(end + 1)) &&
           is_address(std::string(host.substr(1, end - 1)), AF_INET6);
  }
  const size_t colon = std::min(host.find(':'), host.size());
  const std::string name(host.substr(0, colon));
  if (!is_port(host.substr(colon))) return false;
  return is_address(name, AF_INET) || equals_without_case(name, "localhost") ||
         std::ranges::any_of(names, [&](const std::string& own) { return equals_without_case(name, own); });
}

bool is_own_origin(std::string_view origin, std::string_view scheme, std::string_view host) {
  return origin.empty() || equals_without_case(origin, fmt::format("{}://{}", scheme, host));
}

bool is_loopback(const std::string& address) {
  in_addr four{};
  if (::inet_pton(AF_INET, address.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  in6_addr six{};
  return ::inet_pton(AF_INET6, address.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six) != 0;
}

}  // namespace remuda::web
