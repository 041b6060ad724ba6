// What many clients, slow ones and hostile ones take from the others: nothing.
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "web/testing/served.h"

namespace remuda::web {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(WebServer, AViewerWithAFullSocketIsWaitedFor) {
  Served served;
  const std::string large(8 << 20, 'x');  // more than the sockets hold
  served.source.set(Json{{"version", 1}, {"host", large}});
  Raw viewer(served.port());
  viewer.say(request("/api/events"));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // until no more goes in
  EXPECT_THAT(viewer.hear("\n\n\r\n").size(), testing::Gt(large.size()));
  served.source.set(Json{{"version", 1}, {"host", large + "y"}});
  EXPECT_THAT(viewer.hear("y\"}\n\n\r\n").size(), testing::Gt(large.size()));
}

TEST(WebServer, AViewerThatComesBackHearsOnlyWhatIsNew) {
  Served served;
  EXPECT_EQ(served.status("/api/snapshot"), 200);
  Raw viewer(served.port());
  viewer.say(request("/api/events", "Last-Event-ID: 1\r\n"));
  viewer.hear("\r\n\r\n");
  served.source.set(Json{{"version", 1}, {"time_s", 5}});
  EXPECT_THAT(viewer.hear("\n\n\r\n"), HasSubstr("id: 2\n"));
}

TEST(WebServer, FiftyViewersAndMore) {
  Served served;
  std::vector<Raw> viewers;
  for (int i = 0; i < 60; ++i) viewers.emplace_back(served.port()).say(request("/api/events"));
  for (Raw& viewer : viewers) EXPECT_THAT(viewer.hear("\n\n\r\n"), HasSubstr("id: 1\n"));
  served.source.set(Json{{"version", 1}, {"time_s", 5}});
  for (Raw& viewer : viewers) EXPECT_THAT(viewer.hear("\n\n\r\n"), HasSubstr("id: 2\n"));
  EXPECT_EQ(served.status("/api/snapshot"), 200);
}

TEST(WebServer, TooManyAreToldToComeBack) {
  Served served({.most_clients = 8});
  std::vector<Raw> viewers;
  for (int i = 0; i < 4; ++i) {
    viewers.emplace_back(served.port()).say(request("/api/events"));
    EXPECT_THAT(viewers.back().hear(), StartsWith("HTTP/1.1 200"));
  }
  const auto fifth = served.get("/api/events");
  EXPECT_EQ(fifth->status, 503);
  EXPECT_EQ(fifth->get_header_value("Retry-After"), "10");
  EXPECT_EQ(served.status("/api/snapshot"), 200) << "streams leave room for others";
  served.source.set(Json{{"version", 1}, {"host", std::string(8 << 20, 'x')}});  // more than the sockets hold
  for (size_t size = 0; size < (8 << 20); size = served.get("/api/snapshot")->body.size()) ::usleep(10'000);
  for (int i = 0; i < 4; ++i) {
    viewers.emplace_back(served.port()).say(request("/api/snapshot"));
    EXPECT_THAT(viewers.back().hear(), StartsWith("HTTP/1.1 200"));
  }
  const std::string ninth = Raw(served.port()).hear();
  EXPECT_THAT(ninth, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(ninth, HasSubstr("Retry-After: 5"));
}

TEST(WebServer, WhoDoesNotShowTheTokenTakesNobodysPlace) {
  Served served({.most_clients = 8});
  Raw viewer(served.port());
  EXPECT_THAT(viewer.say(request("/api/events")).hear("id: 1\n"), HasSubstr("id: 1\n"));
  std::vector<Raw> others;
  for (int i = 0; i < 8; ++i) {
    others.emplace_back(served.port()).say(i % 2 != 0 ? "GET / HTTP/1.1\r\nHost: lo" : "");
    others.emplace_back(served.port()).say("GET /page.js HTTP/1.1\r\nHost: localhost\r\n\r\n");
    int status = served.status("/api/snapshot");
    // For less than the ten seconds after which a silent client leaves by itself.
    for (int tries = 0; status == 503 && tries < 300; ++tries) {
      ::usleep(10'000);  // threads of those that were let go are about to end
      status = served.status("/api/snapshot");
    }
    EXPECT_EQ(status, 200);
  }
  EXPECT_EQ(others.front().hear(), "") << "it was let go";
  served.source.set(Json{{"version", 1}, {"time_s", 5}});
  EXPECT_THAT(viewer.hear("id: 2\n"), HasSubstr("id: 2\n")) << "whoever has shown it stays";
}

TEST(WebServer, ViewersThatHaveLeftMakeRoom) {
  Served served({.most_clients = 2});  // one of which may be a viewer
  for (int viewer = 0; viewer < 3; ++viewer) {
    std::string heard;
    for (int tries = 0; tries < 1000 && heard.find("HTTP/1.1 200") == std::string::npos; ++tries) {
      served.source.set(Json{{"version", 1}, {"time_s", tries}});  // who has left is noticed when there is news
      heard = Raw(served.port()).say(request("/api/events")).hear();
      if (tries > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_THAT(heard, StartsWith("HTTP/1.1 200")) << viewer;
  }
}

TEST(WebServer, SilentAndSlowClientsBlockNobody) {
  const Served served;
  std::vector<Raw> clients;
  for (int i = 0; i < 100; ++i) clients.emplace_back(served.port()).say(i % 2 != 0 ? "GET / HTTP/1.1\r\nHost: lo" : "");
  for (int i = 0; i < 20; ++i) clients.emplace_back(served.port()).say(request("/page.js"));  // and never read it
  EXPECT_EQ(served.status("/api/snapshot"), 200);
}

TEST(WebServer, GarbageEndsItsConnectionOnly) {
  const Served served;
  const std::string nul("\0\0\0\0\r\n\r\n", 8);
  for (const std::string& garbage :
       {std::string("\x16\x03\x01\x02 not TLS here\r\n\r\n"), nul, std::string("GET\r\n\r\n"), std::string(100000, 'A'),
        "GET /" + std::string(20000, 'a') + " HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\n" + std::string(20000, 'a'),
        request("/", std::string("Range: bytes=") + std::string(6000, '0') + "-\r\n"),
        request("/page.js", "Range: bytes=0-0,0-0,0-0,5-1,-,x\r\n"),
        request("/", "Content-Length: 18446744073709551615\r\n"),
        request("/", "Transfer-Encoding: chunked\r\n") + "ffffffffffffffff\r\n", request("/%00%ff%"),
        request("/", "Expect: 100-continue\r\nContent-Length: 5\r\n"), request("/?" + std::string(3000, '&')),
        std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")}) {
    Raw client(served.port());
    client.say(garbage).shut();
    client.hear("\r\n\r\n");
    EXPECT_EQ(served.status("/api/snapshot"), 200) << garbage.substr(0, 80);
  }
}

}  // namespace
}  // namespace remuda::web
