#include "spot/http.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/letter_case.h"
#include "base/number.h"
#include "base/text.h"

namespace remuda::spot {
namespace {

constexpr std::string_view kEndOfLine = "\r\n", kEndOfHead = "\r\n\r\n";
constexpr size_t kLargestHead = 16 << 10;

tl::unexpected<Error> no_http(const std::string& what) { return failed("the answer is no HTTP: " + what); }

/// Takes a line off the front, without its end; nothing where there is no whole one.
std::optional<std::string_view> take_line(std::string_view& text) {
  const size_t end = text.find(kEndOfLine);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + kEndOfLine.size());
  return line;
}

Result<HttpAnswer> parse_head(std::string_view head) {
  HttpAnswer answer;
  const std::string_view first = take_line(head).value_or("");
  const bool is_http = first.starts_with("HTTP/1.") && first.size() >= 12 && first[8] == ' ';
  const auto status = is_http ? parse_number<int>(std::string(first.substr(9, 3))) : std::nullopt;
  if (!status || *status < 100) return no_http(fmt::format("it begins with '{}'", printable(first.substr(0, 40))));
  answer.status = *status;
  for (auto line = take_line(head); line && !line->empty(); line = take_line(head)) {
    const size_t colon = line->find(':');
    if (colon == std::string_view::npos) return no_http("a header has no colon");
    answer.headers.emplace_back(lower(line->substr(0, colon)), trimmed(line->substr(colon + 1)));
  }
  return answer;
}

/// RFC 9112, 7.1; trailers are left aside. Nothing where it is not whole.
Result<std::optional<std::string>> parse_chunks(std::string_view rest) {
  std::string body;
  for (;;) {
    const auto line = take_line(rest);
    if (!line) return std::nullopt;
    const std::string digits(trimmed(line->substr(0, line->find(';'))));
    constexpr size_t kMostDigits = 6;
    const bool is_size = !digits.empty() && digits.size() <= kMostDigits &&
                         std::ranges::all_of(digits, [](unsigned char c) { return std::isxdigit(c) != 0; });
    if (!is_size) return no_http("a chunk has no size");
    const size_t size = parse_number<size_t>(digits, 16).value_or(0);
    if (size == 0) return body;
    if (rest.size() < size + kEndOfLine.size()) return std::nullopt;
    if (rest.substr(size, kEndOfLine.size()) != kEndOfLine) return no_http("a chunk does not end where it says");
    body += rest.substr(0, size);
    rest.remove_prefix(size + kEndOfLine.size());
  }
}

struct Addresses {
  explicit Addresses(const HostPort& server) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    const std::string port = std::to_string(server.port);
    if (::getaddrinfo(server.host.c_str(), port.c_str(), &hints, &first) != 0) first = nullptr;
  }
  Addresses(const Addresses&) = delete;
  ~Addresses() {
    if (first) ::freeaddrinfo(first);
  }
  addrinfo* first = nullptr;
};

/// How long an exchange may last.
struct Patience {
  double end_s;
  int stop;
};

/// False once the time is over, or it is to stop.
bool wait_for(int fd, short events, const Patience& patience) {
  for (;;) {
    pollfd polled[] = {{fd, events, 0}, {patience.stop, POLLIN, 0}};
    const double left_s = patience.end_s - monotonic_s();
    if (left_s <= 0) return false;
    const int ready = ::poll(polled, 2, static_cast<int>(left_s * 1000) + 1);
    if (ready > 0) return polled[1].revents == 0;
    if (ready < 0 && errno != EINTR) return false;
  }
}

tl::unexpected<Error> cannot(const HostPort& server, const std::string& why) {
  return failed(fmt::format("{}:{} does not answer: {}", server.host, server.port, why));
}

Result<Fd> connected(const HostPort& server, const Patience& patience) {
  const Addresses addresses(server);
  if (!addresses.first) return cannot(server, "it is no numeric address");
  const addrinfo& address = *addresses.first;
  Fd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return cannot(server, errno_text(errno));
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) return socket;
  if (errno != EINPROGRESS) return cannot(server, errno_text(errno));
  if (!wait_for(socket.get(), POLLOUT, patience)) return cannot(server, "it takes too long");
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return cannot(server, errno_text(error));
  return socket;
}

Result<void> send_all(int socket, std::string_view text, const HostPort& server, const Patience& patience) {
  while (!text.empty()) {
    const ssize_t sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      text.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return cannot(server, errno_text(errno));
    if (!wait_for(socket, POLLOUT, patience)) return cannot(server, "it takes too long");
  }
  return {};
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpace), last = text.find_last_not_of(kSpace);
  return first == std::string_view::npos ? std::string_view() : text.substr(first, last - first + 1);
}

std::string HttpAnswer::header(std::string_view name) const {
  const auto found = std::ranges::find(headers, name, &std::pair<std::string, std::string>::first);
  return found == headers.end() ? "" : found->second;
}

std::string text_of(const HttpRequest& request, const HostPort& server) {
  std::string text = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: 0\r\n",
                                 request.method, request.path, server.host);
  for (const auto& [name, value] : request.headers) text += fmt::format("{}: {}\r\n", name, value);
  return text.append(kEndOfLine);
}

Result<std::optional<HttpAnswer>> parse_http(std::string_view bytes, bool is_all) {
  const auto unless_all = [&](const char* what) -> Result<std::optional<HttpAnswer>> {
    if (is_all) return no_http(what);
    return std::nullopt;
  };
  const size_t end = bytes.substr(0, kLargestHead).find(kEndOfHead);
  if (end == std::string_view::npos && bytes.size() >= kLargestHead) return no_http("its head has no end");
  if (end == std::string_view::npos) return unless_all("it ends within its head");
  REMUDA_ASSIGN(HttpAnswer answer, parse_head(bytes.substr(0, end + kEndOfHead.size())));
  const std::string_view rest = bytes.substr(end + kEndOfHead.size());
  if (lower(answer.header("transfer-encoding")) == "chunked") {
    REMUDA_ASSIGN(auto body, parse_chunks(rest));
    if (!body) return unless_all("it ends within a chunk");
    answer.body = std::move(*body);
    return answer;
  }
  const std::string length = answer.header("content-length");
  if (length.empty() && !is_all) return std::nullopt;
  const auto size = length.empty() ? std::optional(rest.size()) : parse_number<size_t>(length);
  if (!size || *size > kLargestAnswer) return no_http("its length is " + printable(length.substr(0, 40)));
  if (rest.size() < *size) return unless_all("it is shorter than it says");
  answer.body = rest.substr(0, *size);
  return answer;
}

Result<HttpAnswer> ask(const HostPort& server, const HttpRequest& request, double patience_s, int stop) {
  const Patience patience{monotonic_s() + patience_s, stop};
  REMUDA_ASSIGN(const Fd socket, connected(server, patience));
  REMUDA_TRY(send_all(socket.get(), text_of(request, server), server, patience));
  std::string bytes;
  char some[4096];
  for (;;) {
    const ssize_t got = ::recv(socket.get(), some, sizeof some, 0);
    if (got < 0 && errno != EAGAIN && errno != EINTR) return cannot(server, errno_text(errno));
    if (got >= 0) {
      bytes.append(some, static_cast<size_t>(got));
      REMUDA_ASSIGN(auto answer, parse_http(bytes, got == 0));
      if (answer) return std::move(*answer);
      if (bytes.size() > kLargestAnswer) return cannot(server, "the answer is too long");
      continue;
    }
    if (!wait_for(socket.get(), POLLIN, patience)) return cannot(server, "it takes too long");
  }
}

}  // namespace remuda::spot
