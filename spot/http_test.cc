#include "spot/http.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "base/file.h"

namespace remuda::spot {
namespace {

using testing::HasSubstr;

/// A server of one connection, which answers with these bytes, in pieces, and then closes or waits.
class Server {
 public:
  Server(std::vector<std::string> pieces, bool closes) : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    ::listen(listener_.get(), 1);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, pieces = std::move(pieces), closes] { serve(pieces, closes); });
  }
  Server(const Server&) = delete;
  ~Server() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }
  HostPort place() const { return {"127.0.0.1", port_}; }
  /// Once the client has its answer.
  const std::string& request() {
    thread_.join();
    return request_;
  }

 private:
  void serve(const std::vector<std::string>& pieces, bool closes) {
    const Fd client(::accept(listener_.get(), nullptr, nullptr));
    char some[4096];
    while (client && request_.find("\r\n\r\n") == std::string::npos)
      if (const ssize_t got = ::recv(client.get(), some, sizeof some, 0); got > 0)
        request_.append(some, static_cast<size_t>(got));
      else
        return;
    for (const std::string& piece : pieces)
      if (::send(client.get(), piece.data(), piece.size(), MSG_NOSIGNAL) < 0) return;
    while (!closes && ::recv(client.get(), some, sizeof some, 0) > 0) {
    }
  }
  Fd listener_;
  int port_ = 0;
  std::string request_;
  std::thread thread_;
};

constexpr double kLong_s = 30, kShort_s = 0.2;

std::string body_of(const std::string& answer, bool is_all = true) {
  const auto parsed = parse_http(answer, is_all);
  if (!parsed) return "error: " + parsed.error().message;
  return *parsed ? (*parsed)->body : "not whole";
}

TEST(Http, AsksAndIsAnswered) {
  Server server({"HTTP/1.1 200 OK\r\nContent-", "Length: 5\r\nX-Kind:  a b \r\n\r\nhel", "lo"}, false);
  const auto answer = ask(server.place(), {"GET", "/a?b=c", {{"Metadata", "true"}}}, kLong_s);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "hello");
  EXPECT_EQ(answer->header("x-kind"), "a b");
  EXPECT_EQ(
      server.request(),
      "GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 0\r\nMetadata: true\r\n\r\n");
}

TEST(Http, AnAnswerEndsByItsLengthItsChunksOrItsEnd) {
  EXPECT_EQ(body_of("HTTP/1.0 404 Not Found\r\n\r\nnone"), "none");
  EXPECT_EQ(body_of("HTTP/1.0 404 Not Found\r\n\r\nnone", false), "not whole");
  EXPECT_EQ(body_of("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nabc", false), "ab");
  EXPECT_EQ(body_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
                    false),
            "abc0123456789");
  EXPECT_EQ(body_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", false), "not whole");
}

TEST(Http, WhatIsNoAnswerIsAnError) {
  for (const char* text :
       {"", "SSH-2.0-x\r\n\r\n", "HTTP/1.1 ab OK\r\n\r\n", "HTTP/1.1 99 x\r\n\r\n", "HTTP/2 200\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n0\r\n\r\n"})
    EXPECT_THAT(body_of(text), HasSubstr("error: the answer is no HTTP: ")) << text;
  EXPECT_THAT(body_of("HTTP/1.1 200 OK\r\n" + std::string(20 << 10, 'x'), false), HasSubstr("its head has no end"));
}

TEST(Http, WaitsForNobodyForEver) {
  Server silent({}, false);
  EXPECT_THAT(ask(silent.place(), {"GET", "/", {}}, kShort_s).error().message, HasSubstr("it takes too long"));
  Server half({"HTTP/1.1 200 OK\r\n"}, false);
  EXPECT_THAT(ask(half.place(), {"GET", "/", {}}, kShort_s).error().message, HasSubstr("it takes too long"));
}

TEST(Http, ReadsNoMoreThanASmallAnswer) {
  Server flood({"HTTP/1.1 200 OK\r\n\r\n", std::string(1 << 20, 'x')}, false);
  EXPECT_THAT(ask(flood.place(), {"GET", "/", {}}, kLong_s).error().message, HasSubstr("the answer is too long"));
}

TEST(Http, SaysThatNobodyIsThere) {
  EXPECT_THAT(ask({"127.0.0.1", 1}, {"GET", "/", {}}, kLong_s).error().message,
              HasSubstr("127.0.0.1:1 does not answer: "));
  EXPECT_EQ(ask({"no.such.name", 80}, {"GET", "/", {}}, kLong_s).error().message,
            "no.such.name:80 does not answer: it is no numeric address");
}

}  // namespace
}  // namespace remuda::spot
