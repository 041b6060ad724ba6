#include "web/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/stat.h>

#include "base/testing/scratch_folder.h"
#include "web/testing/certificate.h"
#include "web/testing/served.h"

namespace remuda::web {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(WebServer, GivesNobodyParts) {
  const Served served;
  std::string ranges = "0-";
  for (int i = 0; i < 2000; ++i) ranges += ",0-";
  const auto whole = served.get("/page.js", {});
  const auto parts = served.get("/page.js", {{"Range", "bytes=" + ranges}});
  ASSERT_TRUE(whole && parts);
  EXPECT_EQ(parts->status, 200);
  EXPECT_EQ(parts->body, whole->body);
}

/// A second request in what may be the body of the first.
TEST(WebServer, TakesNoBodyForARequest) {
  const Served served;
  const std::string inner = request("/api/snapshot");
  const std::string length = std::to_string(inner.size());
  for (const std::string& outer :
       {request("/page.css", "Content-Length: " + length + "\r\n"),
        request("/page.css", "Transfer-Encoding: chunked\r\n"), request("/page.css", "Transfer-Encoding : chunked\r\n"),
        request("/page.css", "Content-Length\t: " + length + "\r\n"),
        request("/page.css", "Connection: keep-alive\r\nContent-Length: " + length + "\r\n"),
        "POST /page.css HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + length + "\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(9000, 'x') + "\r\n\r\n",
        std::string("no request\r\n\r\n")}) {
    Raw client(served.port());
    const std::string heard = client.say(outer + inner).hear("there is never this");
    EXPECT_EQ(heard.find("HTTP/1.1 ", 1), std::string::npos) << "one answer to " << outer.substr(0, 200);
    EXPECT_THAT(heard, StartsWith("HTTP/1.1 "));
  }
}

TEST(WebServer, ReadsNoMoreOfARequestThanItsLimit) {
  const Served served;
  std::string many;
  for (int i = 0; i < 200; ++i) many += "X-" + std::to_string(i) + ": " + std::string(90, 'x') + "\r\n";
  Raw client(served.port());
  EXPECT_THAT(client.say(request("/page.css", many)).hear(), Not(HasSubstr(" 200 ")));
  Raw other(served.port());
  for (int i = 0; i < 100; ++i)  // the limit is one request's, not the connection's
    EXPECT_THAT(other.say(request("/api/none")).hear("nothing here\"}"), HasSubstr(" 404 ")) << i;
}

TEST(WebServer, ServesThePageToAnybodyWithItsRules) {
  const Served served;
  const auto page = served.get("/", {});
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_THAT(page->get_header_value("Content-Type"), StartsWith("text/html"));
  EXPECT_THAT(page->get_header_value("Content-Security-Policy"), HasSubstr("default-src 'none'; script-src 'self';"));
  EXPECT_THAT(page->get_header_value("Content-Security-Policy"), HasSubstr("frame-ancestors 'none'"));
  EXPECT_EQ(page->get_header_value("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(page->get_header_value("Referrer-Policy"), "no-referrer");
  EXPECT_EQ(page->get_header_value_count("Content-Security-Policy"), 1u);
  EXPECT_EQ(served.status("/page.js", {}), 200);
  EXPECT_EQ(served.status("/page.css", {}), 200);
  EXPECT_EQ(served.status("/../server.cc", {}), 404);
  EXPECT_EQ(served.status("/etc/passwd", {}), 404);
}

TEST(WebServer, DataIsForThoseWithTheToken) {
  const Served served;
  for (const char* path :
       {"/api/snapshot", "/api/history", "/api/set", "/api/events", "/api/none", "/metrics", "/metrics/dcgm"}) {
    EXPECT_EQ(served.status(path, {}), 401) << path;
    EXPECT_EQ(served.status(path, {{"Authorization", "Bearer 0123456789abcdee"}}), 401) << path;
    EXPECT_EQ(served.status(path, {{"Cookie", std::string("token=") + kToken}}), 401) << path;
    EXPECT_EQ(served.status(path + std::string("?token=") + kToken, {}), 401) << path;
    EXPECT_THAT(Raw(served.port()).say(request(path, "Authorization: Bearer another\r\n")).hear(), HasSubstr(" 401 "))
        << path << ": which of two counts, others may see in another way";
  }
  const auto snapshot = served.get("/api/snapshot");
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->body, R"({"version":1})");
  EXPECT_EQ(snapshot->get_header_value("Cache-Control"), "no-store");
  EXPECT_EQ(served.status("/api/none"), 404);
}

TEST(WebServer, TheAddressHasTheTokenWhereBrowsersKeepIt) {
  const Served served;
  EXPECT_EQ(served.url(), "http://127.0.0.1:" + std::to_string(served.port()) + "/#token=" + kToken);
}

TEST(WebServer, OtherNamesAndOriginsGetNothing) {
  const Served served;
  httplib::Headers rebound = kWithToken;
  rebound.emplace("Host", "evil.example");
  EXPECT_EQ(served.status("/api/snapshot", rebound), 403);
  EXPECT_EQ(served.status("/", {{"Host", "evil.example"}}), 403);
  for (const char* origin : {"http://evil.example", "null", "http://127.0.0.1:1"}) {
    httplib::Headers foreign = kWithToken;
    foreign.emplace("Origin", origin);
    EXPECT_EQ(served.status("/api/snapshot", foreign), 403) << origin;
  }
  httplib::Headers own = kWithToken;
  own.emplace("Origin", "http://127.0.0.1:" + std::to_string(served.port()));
  EXPECT_EQ(served.status("/api/snapshot", own), 200);
  EXPECT_THAT(Raw(served.port()).say("GET / HTTP/1.1\r\n\r\n").hear(), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(Raw(served.port()).say("GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n").hear(),
              StartsWith("HTTP/1.1 403"));
}

TEST(WebServer, OnlyTheNamedSiteMayEmbed) {
  const Served served({.embed_origin = "https://grafana.example"});
  EXPECT_THAT(served.get("/?embed=map", {})->get_header_value("Content-Security-Policy"),
              HasSubstr("frame-ancestors https://grafana.example"));
  EXPECT_THAT(served.get("/", {})->get_header_value("Content-Security-Policy"), HasSubstr("frame-ancestors 'none'"));
  const Served other;
  EXPECT_THAT(other.get("/?embed=map", {})->get_header_value("Content-Security-Policy"),
              HasSubstr("frame-ancestors 'none'"));
}

TEST(WebServer, NothingCanBeChanged) {
  const Served served;
  httplib::Client client("127.0.0.1", served.port());
  EXPECT_EQ(client.Post("/api/snapshot", kWithToken, "{}", "application/json")->status, 405);
  EXPECT_EQ(client.Delete("/api/snapshot", kWithToken)->status, 405);
  EXPECT_EQ(client.Options("/api/snapshot", kWithToken)->status, 405);
}

TEST(WebServer, HistoryIsAskedForByQuery) {
  const Served served;
  const auto history = served.get("/api/history?device=gpu&measures=busy,power_watts&from=10&to=20&points=2");
  ASSERT_TRUE(history);
  EXPECT_EQ(
      history->body,
      R"({"device":"gpu","start_s":10.0,"step_s":5.0,"measures":{"busy":[null,null],"power_watts":[null,null]}})");
  const auto wrong = served.get("/api/history?device=gpu&measures=%3Cscript%3E&from=10&to=20&points=2");
  EXPECT_EQ(wrong->status, 400);
  EXPECT_THAT(wrong->body, HasSubstr("{\"error\":\"measures: there is no '<script>'; there are busy, memory_busy, "));
  EXPECT_EQ(wrong->get_header_value("Content-Type"), "application/json") << "no browser takes it for a page";
  EXPECT_EQ(served.status("/api/history?device=gpu&measures=busy&from=1e400&to=nan&points=99999999999"), 400);
}

TEST(WebServer, SetsAreAskedForByQuery) {
  const Served served;
  const auto score = served.get("/api/set?host=a&devices=gpu:0,gpu:3");
  ASSERT_TRUE(score);
  EXPECT_EQ(score->body, R"({"host":"a","devices":["gpu:0","gpu:3"]})");
}

TEST(WebServer, EventsFollowChanges) {
  Served served;
  Raw viewer(served.port());
  viewer.say(request("/api/events"));
  EXPECT_THAT(viewer.hear("\n\n\r\n"), HasSubstr("event: snapshot\nid: 1\ndata: {\"version\":1}\n\n"));
  served.source.set(Json{{"version", 1}, {"host", "a\nb"}});
  EXPECT_THAT(viewer.hear("\n\n\r\n"), HasSubstr("id: 2\ndata: {\"version\":1,\"host\":\"a\\nb\"}\n\n"));
}

TEST(WebServer, ADeadSourceIsSaidSo) {
  Served served;
  served.source.set(failed("the agent does not answer"));
  EXPECT_EQ(served.get("/api/snapshot")->body, R"({"version":1,"error":"the agent does not answer"})");
}

TEST(WebServer, BeyondThisMachineOnlyWithTls) {
  snapshot::StandinSource source;
  const auto plain = Server::open({.address = "0.0.0.0", .token = kToken}, source);
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.error().kind, ErrorKind::usage);
  EXPECT_THAT(plain.error().message, HasSubstr("--tls-cert"));
  EXPECT_FALSE(Server::open({.address = "evil.example", .token = kToken}, source));
  const auto half = Server::open({.token = kToken, .certificate = "cert.pem"}, source);
  ASSERT_FALSE(half);
  EXPECT_FALSE(Server::open({.token = kToken, .key = "key.pem"}, source)) << "it would be served without TLS";
  const auto none = Server::open({.token = kToken, .certificate = "/none.pem", .key = "/none.pem"}, source);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("/none.pem: cannot be used as a certificate"));
}

TEST(WebServer, AnAddressInUseIsAnErrorWithAWayOut) {
  const Served served;
  snapshot::StandinSource source;
  const auto second = Server::open({.port = served.port(), .token = kToken}, source);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("--listen 127.0.0.1:0"));
}

TEST(WebServer, TakesNoKeyThatOthersCanReadOrChange) {
  const ScratchFolder folder;
  write_certificate(folder.path());
  snapshot::StandinSource source;
  const std::string key = folder.path() + "/key.pem";
  const auto open = [&] {
    return Server::open({.token = kToken, .certificate = folder.path() + "/cert.pem", .key = key}, source);
  };
  for (const mode_t mode : {0644, 0604, 0660}) {
    ASSERT_EQ(::chmod(key.c_str(), mode), 0);
    const auto refused = open();
    ASSERT_FALSE(refused) << mode;
    EXPECT_THAT(refused.error().message, HasSubstr("chmod 600 "));
  }
  ASSERT_EQ(::chmod(key.c_str(), 0640), 0);
  EXPECT_TRUE(open()) << "a group of its own may read it, as Debian's ssl-cert does";
}

TEST(WebServer, SpeaksTlsWhereItHasACertificate) {
  const ScratchFolder folder;
  write_certificate(folder.path());
  const Served served({.certificate = folder.path() + "/cert.pem", .key = folder.path() + "/key.pem"});
  EXPECT_THAT(served.url(), StartsWith("https://127.0.0.1:"));
  httplib::SSLClient client("127.0.0.1", served.port());
  client.set_ca_cert_path(folder.path() + "/cert.pem");
  client.enable_server_certificate_verification(false);
  const auto snapshot = client.Get("/api/snapshot", kWithToken);
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->body, R"({"version":1})");
  EXPECT_EQ(client.Get("/", httplib::Headers{})->status, 200);
  EXPECT_EQ(served.status("/api/snapshot"), -1) << "plain text is no answer";
  EXPECT_EQ(client.Get("/api/snapshot", kWithToken)->status, 200) << "and disturbs nobody";
}

}  // namespace
}  // namespace remuda::web
