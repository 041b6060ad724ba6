// For tests: a server that runs, and clients that do not speak HTTP as they should.
#pragma once

#include <arpa/inet.h>
#include <array>
#include <gtest/gtest.h>
#include <httplib.h>
#include <memory>
#include <string>
#include <string_view>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "base/file.h"
#include "snapshot/testing/standin_source.h"
#include "web/server.h"

namespace remuda::web {

inline constexpr const char* kToken = "0123456789abcdef";
inline const httplib::Headers kWithToken{{"Authorization", "Bearer 0123456789abcdef"}};

/// A server on a thread of its own, as long as the test.
class Served {
 public:
  explicit Served(ServerOptions options = {}) : stop_(::eventfd(0, EFD_CLOEXEC)) {
    options.token = kToken;
    options.period_s = 0.01;
    server_ = Server::open(std::move(options), source).value();
    thread_ = std::thread([this] { server_->serve(stop_.get()); });
  }
  ~Served() {
    const uint64_t one = 1;
    EXPECT_EQ(::write(stop_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
    thread_.join();
  }
  Served(const Served&) = delete;

  int port() const { return server_->port(); }
  std::string url() const { return server_->url(); }
  httplib::Result get(const std::string& path, const httplib::Headers& headers = kWithToken) const {
    return httplib::Client("127.0.0.1", port()).Get(path, headers);
  }
  int status(const std::string& path, const httplib::Headers& headers = kWithToken) const {
    const auto answer = get(path, headers);
    return answer ? answer->status : -1;
  }
  snapshot::StandinSource source;

 private:
  const Fd stop_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

/// A client that says what it likes.
class Raw {
 public:
  explicit Raw(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int holds =
        64 << 10;  // the kernel lets a socket grow to as much as it is set to: tens of MB on some machines
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &holds, sizeof holds);
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const timeval patience{.tv_sec = 20};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  Raw& say(std::string_view text) {
    ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    return *this;
  }
  /// What comes until `text` is in it, or the server says no more.
  std::string hear(std::string_view text = "\r\n\r\n") {
    std::string heard;
    std::array<char, 4096> some;
    while (heard.find(text) == std::string::npos) {
      const ssize_t got = ::recv(fd_.get(), some.data(), some.size(), 0);
      if (got <= 0) break;
      heard.append(some.data(), static_cast<size_t>(got));
    }
    return heard;
  }
  void shut() { ::shutdown(fd_.get(), SHUT_WR); }

 private:
  Fd fd_;
};

/// One with the token.
inline std::string request(const std::string& path, const std::string& more = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + kToken + "\r\n" + more + "\r\n";
}

}  // namespace remuda::web
