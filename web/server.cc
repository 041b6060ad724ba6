#include "web/server.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <mutex>
#include <netdb.h>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <string_view>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "web/access.h"
#include "web/connection.h"
#include "web/routes.h"
#include "web/tls_context.h"

namespace remuda::web {
namespace {

constexpr std::string_view kFull =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// The library's part of a server: what it does with a connection that is there.
class Http : public httplib::Server {
 public:
  /// It takes itself for shut down, and so cuts off streams, unless it knows a socket.
  void begin(int listener) { svr_sock_ = listener; }
  void end() { svr_sock_ = INVALID_SOCKET; }
  /// False once there is nothing more to be had of the client; `begins` is called when a request's head has come.
  /// Bodies are not read, and what is no request may have any length: after such a thing the connection ends, as the
  /// rest of it would be taken for the next request.
  bool answer(Connection& connection, bool& is_closed, const std::function<void(const httplib::Request&)>& begins) {
    bool may_follow = false;
    const bool is_answered = call(&Http::process_request, connection, is_closed, [&](httplib::Request& request) {
      begins(request);
      may_follow = prepare(request);
    });
    is_closed = is_closed || !may_follow;
    return is_answered;
  }

 private:
  using SetUp = std::function<void(httplib::Request&)>;
  /// As it is declared before version 0.18, and since.
  using Before = bool (httplib::Server::*)(httplib::Stream&, bool, bool&, const SetUp&);
  using Since = bool (httplib::Server::*)(httplib::Stream&, const std::string&, int, const std::string&, int, bool,
                                          bool&, const SetUp&);
  bool call(Before process, Connection& connection, bool& is_closed, const SetUp& set_up) {
    return (this->*process)(connection, false, is_closed, set_up);
  }
  bool call(Since process, Connection& connection, bool& is_closed, const SetUp& set_up) {
    return (this->*process)(connection, "", 0, "", 0, false, is_closed, set_up);
  }
  /// A name with a blank, as "Transfer-Encoding ", may be another to a proxy before this server than it is here.
  static bool is_token(const std::string& name) {
    static constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
    return std::ranges::all_of(name, [](char c) {
      const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      return is_letter || kMarks.find(c) != std::string_view::npos;
    });
  }
  /// Before the library acts on its headers. Nobody gets parts of a file: a request may name thousands, and the library
  /// puts them together in memory. Whether another request may follow.
  static bool prepare(httplib::Request& request) {
    request.ranges.clear();
    request.headers.erase("Range");
    const bool is_plain =
        std::ranges::all_of(request.headers, [](const auto& header) { return is_token(header.first); });
    if (is_plain && !request.has_header("Content-Length") && !request.has_header("Transfer-Encoding")) return true;
    request.headers.erase("Connection");
    request.headers.emplace("Connection", "close");  // the answer says so
    return false;
  }
};

struct Listener {
  Fd fd;
  int port = 0;
};

Result<Listener> listen_at(const std::string& address, int port) {
  addrinfo hints{.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    return usage_error(fmt::format("'{}' is no address to listen at; write one such as 127.0.0.1 or 0.0.0.0", address));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> kept(found, &::freeaddrinfo);
  Listener listener{Fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))};
  const int on = 1;
  ::setsockopt(listener.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener.fd.get(), found->ai_addr, found->ai_addrlen) != 0 || ::listen(listener.fd.get(), 64) != 0)
    return usage_error(fmt::format("cannot listen at {}, port {}: {}; --listen {}:0 takes a port that is free", address,
                                   port, errno_text(errno), address));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  ::getsockname(listener.fd.get(), reinterpret_cast<sockaddr*>(&own), &size);
  std::array<char, 8> service{};
  ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, nullptr, 0, service.data(), service.size(), NI_NUMERICSERV);
  listener.port = std::atoi(service.data());
  return listener;
}

/// The threads of clients inherit that: signals are for the one that serves, and writing to a TLS client that is gone
/// is an error like others.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

class HttpServer : public Server {
 public:
  HttpServer(ServerOptions options, snapshot::Source& source, Listener listener, std::optional<TlsContext> tls)
      : options_(std::move(options)),
        listener_(std::move(listener)),
        tls_(std::move(tls)),
        gate_{options_.token, tls_ ? "https" : "http", options_.names, options_.embed_origin,
              static_cast<int>(options_.most_clients / 2)},
        feed_(source, options_.period_s),
        stage_{gate_, source, feed_} {
    add_routes(http_, stage_);
  }

  std::string url() const override {
    const bool is_v6 = options_.address.find(':') != std::string::npos;
    return fmt::format("{}://{}{}{}:{}/#token={}", gate_.scheme, is_v6 ? "[" : "", options_.address, is_v6 ? "]" : "",
                       port(), gate_.token);
  }
  int port() const override { return listener_.port; }

  void serve(int stop) override {
    http_.begin(listener_.fd.get());
    std::array<pollfd, 2> events{pollfd{stop, POLLIN, 0}, pollfd{listener_.fd.get(), POLLIN, 0}};
    while (::poll(events.data(), events.size(), -1) >= 0 || errno == EINTR) {
      if (events[0].revents != 0) break;
      if (events[1].revents != 0) admit();
    }
    http_.end();
    feed_.stop();
    let_go();
  }

 private:
  void admit() {
    Fd client(::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client) {
      if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return;
    }
    const std::scoped_lock lock(mutex_);
    if (!make_room()) return refuse(client.get());
    const int fd = client.release();
    clients_.emplace(fd, monotonic_s());
    const NoSignals none;
    try {
      std::thread([this, fd] { attend(Fd(fd)); }).detach();
      ++threads_;
    } catch (const std::system_error&) {  // no more threads
      clients_.erase(fd);
      refuse(Fd(fd).get());
    }
  }

  /// Where there are too many, lets that one go which has for longest had no answer that takes the token: whoever
  /// cannot show it keeps nobody out by many connections. Threads of such clients may still be about to end.
  bool make_room() {
    if (clients_.size() < options_.most_clients) return true;
    const auto oldest = std::ranges::min_element(clients_, {}, [](const auto& client) { return client.second; });
    if (oldest->second == kNever_s || threads_ >= 2 * options_.most_clients) return false;
    ::shutdown(oldest->first, SHUT_RDWR);
    clients_.erase(oldest);
    return true;
  }

  /// Unless it was let go.
  void note(int client, double since_s) {
    const std::scoped_lock lock(mutex_);
    if (const auto found = clients_.find(client); found != clients_.end()) found->second = since_s;
  }

  void refuse(int client) const {
    if (!tls_) ::send(client, kFull.data(), kFull.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::shutdown(client, SHUT_WR);
  }

  void attend(Fd socket) {
    const int fd = socket.get();
    {
      Connection connection(std::move(socket), tls_ ? tls_->get() : nullptr);
      const auto begins = [&](const httplib::Request& request) {
        if (is_authorized(request.get_header_value("Authorization"), gate_.token)) note(fd, kNever_s);
      };
      bool is_closed = !connection.open();
      while (!is_closed && connection.next_request() && http_.answer(connection, is_closed, begins))
        note(fd, monotonic_s());
      const std::scoped_lock lock(mutex_);
      clients_.erase(fd);  // before it is closed, and another client may get its number
    }
    const std::scoped_lock lock(mutex_);
    --threads_;
    left_.notify_all();
  }

  /// Waits until the last client's thread needs this object no more.
  void let_go() {
    std::unique_lock lock(mutex_);
    for (const auto& [fd, _] : clients_) ::shutdown(fd, SHUT_RDWR);
    left_.wait(lock, [this] { return threads_ == 0; });
  }

  const ServerOptions options_;
  const Listener listener_;
  const std::optional<TlsContext> tls_;
  const Gate gate_;
  Feed feed_;
  Stage stage_;
  Http http_;
  std::mutex mutex_;
  std::condition_variable left_;
  /// Their sockets, and since when each has had no answer that takes the token: kNever_s while it has one.
  std::map<int, double> clients_;
  size_t threads_ = 0;
};

/// What was asked for is permitted.
Result<void> check(const ServerOptions& options) {
  if (options.certificate.empty() != options.key.empty())
    return usage_error("--tls-cert and --tls-key belong together: a certificate and its key");
  if (is_loopback(options.address) || !options.certificate.empty()) return {};
  return usage_error(fmt::format(
      "beyond this machine the page is served with TLS only: give --tls-cert and --tls-key, or listen at 127.0.0.1 and "
      "reach it by `ssh -L {0}:127.0.0.1:{0}`",
      options.port));
}

}  // namespace

Result<std::unique_ptr<Server>> Server::open(ServerOptions options, snapshot::Source& source) {
  if (options.address == "localhost") options.address = "127.0.0.1";
  REMUDA_TRY(check(options));
  std::optional<TlsContext> tls;
  if (!options.certificate.empty()) {
    REMUDA_ASSIGN(tls, make_tls_context(options.certificate, options.key));
  }
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) options.names.emplace_back(host.data());
  REMUDA_ASSIGN(Listener listener, listen_at(options.address, options.port));
  return std::make_unique<HttpServer>(std::move(options), source, std::move(listener), std::move(tls));
}

}  // namespace remuda::web
