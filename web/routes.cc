#include "web/routes.h"

#include <fmt/format.h>
#include <memory>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "web/access.h"
#include "web/assets.h"

namespace remuda::web {
namespace {

using httplib::Request;
using httplib::Response;
using Outcome = httplib::Server::HandlerResponse;

constexpr double kHeartbeat_s = 5;  // a viewer takes a stream that is silent for three of them for dead
constexpr double kPatience_s = 5;   // for the first snapshot
constexpr const char* kJson = "application/json";

void refuse(Response& response, int status, const std::string& sentence) {
  response.status = status;
  response.set_header("Cache-Control", "no-store");
  response.set_content(to_line(Json{{"error", sentence}}), kJson);
}

std::string content_policy(const Gate& gate, bool is_embedded) {
  return fmt::format(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
      "base-uri 'none'; form-action 'none'; frame-ancestors {}",
      is_embedded && !gate.embed_origin.empty() ? gate.embed_origin : "'none'");
}

/// Whether this server answers such a request at all: Unhandled goes on to the routes.
Outcome admit(const Gate& gate, const Request& request, Response& response) {
  response.set_header("Content-Security-Policy", content_policy(gate, request.has_param("embed")));
  const std::string host = request.get_header_value("Host");
  if (request.get_header_value_count("Host") != 1 || !is_own_host(host, gate.names)) {
    refuse(response, 403, "the Host header does not name this server; see `remuda web --help`, --name");
  } else if (!is_own_origin(request.get_header_value("Origin"), gate.scheme, host)) {
    refuse(response, 403, "pages of other origins get no answer");
  } else if (request.method != "GET" && request.method != "HEAD") {
    response.set_header("Allow", "GET, HEAD");
    refuse(response, 405, "only GET is answered");
  } else if ((request.path.starts_with("/api/") || request.path.starts_with("/metrics")) &&
             (request.get_header_value_count("Authorization") != 1 ||
              !is_authorized(request.get_header_value("Authorization"), gate.token))) {
    response.set_header("WWW-Authenticate", "Bearer");
    refuse(response, 401, "the token is missing or wrong; `remuda web` prints the address with it");
  } else {
    return Outcome::Unhandled;
  }
  return Outcome::Handled;
}

std::optional<double> number_of(const Request& request, const char* key) {
  return parse_number<double>(request.get_param_value(key));
}

void answer_history(snapshot::Source& source, const Request& request, Response& response) {
  const snapshot::HistoryQuery query{.host = request.get_param_value("host"),
                                     .device = request.get_param_value("device"),
                                     .measures = split(request.get_param_value("measures"), ','),
                                     .from_s = number_of(request, "from").value_or(0),
                                     .to_s = number_of(request, "to").value_or(0),
                                     .points = parse_number<int>(request.get_param_value("points")).value_or(0)};
  if (const auto checked = check(query); !checked) return refuse(response, 400, checked.error().message);
  const auto history = source.history(query);
  if (!history) return refuse(response, 400, history.error().message);
  response.set_header("Cache-Control", "no-store");
  response.set_content(to_line(snapshot::to_json(*history)), kJson);
}

void answer_set(snapshot::Source& source, const Request& request, Response& response) {
  const auto score = source.set_score(
      {.host = request.get_param_value("host"), .devices = split(request.get_param_value("devices"), ',')});
  if (!score) return refuse(response, 400, score.error().message);
  response.set_header("Cache-Control", "no-store");
  response.set_content(to_line(*score), kJson);
}

void answer_metrics(snapshot::Source& source, snapshot::Metrics format, Response& response) {
  const auto text = source.metrics(format);
  if (!text) return refuse(response, 503, text.error().message);
  response.set_header("Cache-Control", "no-store");
  response.set_content(*text, "text/plain; version=0.0.4; charset=utf-8");
}

void answer_snapshot(Feed& feed, Response& response) {
  const auto frame = feed.next(0, kPatience_s);
  if (!frame) return refuse(response, 503, "the machine does not answer");
  response.set_header("Cache-Control", "no-store");
  response.set_content(frame->text, kJson);
}

/// One viewer's events: each snapshot that differs from the one before it, and a comment where there is none for long.
struct EventStream {
  explicit EventStream(Stage& of) : stage(of) {}
  ~EventStream() { --stage.streams; }
  EventStream(const EventStream&) = delete;

  Stage& stage;
  uint64_t seen = 0;

  bool write_next(httplib::DataSink& sink) {
    const auto frame = stage.feed.next(seen, kHeartbeat_s);
    if (!frame) return send(sink, ":\n\n");
    seen = frame->id;
    return send(sink, fmt::format("event: snapshot\nid: {}\ndata: {}\n\n", frame->id, frame->text));
  }
  static bool send(httplib::DataSink& sink, const std::string& text) { return sink.write(text.data(), text.size()); }
};

void answer_events(Stage& stage, const Request& request, Response& response) {
  const auto stream = std::make_shared<EventStream>(stage);
  if (++stage.streams > stage.gate.most_streams) {
    response.set_header("Retry-After", "10");
    return refuse(response, 503, "too many viewers; try again later");
  }
  stream->seen = parse_number<uint64_t>(request.get_header_value("Last-Event-ID")).value_or(0);
  response.set_header("Cache-Control", "no-store");
  response.set_chunked_content_provider("text/event-stream",
                                        [stream](size_t, httplib::DataSink& sink) { return stream->write_next(sink); });
}

}  // namespace

void add_routes(httplib::Server& server, Stage& stage) {
  server.set_default_headers({{"X-Content-Type-Options", "nosniff"},
                              {"Referrer-Policy", "no-referrer"},
                              {"Cross-Origin-Opener-Policy", "same-origin"},
                              {"Cross-Origin-Resource-Policy", "same-origin"}});
  server.set_payload_max_length(0);
  server.set_pre_routing_handler(
      [&stage](const Request& request, Response& response) { return admit(stage.gate, request, response); });
  server.set_exception_handler([](const Request&, Response& response, const std::exception_ptr&) {
    refuse(response, 500, "remuda web has failed at this request");
  });
  server.set_error_handler([](const Request&, Response& response) {
    if (response.body.empty()) refuse(response, response.status, "there is nothing here");
  });
  for (const Asset& asset : assets())
    server.Get(std::string(asset.path), [&asset](const Request&, Response& response) {
      response.set_header("Cache-Control", "no-cache");
      response.set_content(asset.text.data(), asset.text.size(), std::string(asset.type));
    });
  server.Get("/api/snapshot", [&stage](const Request&, Response& response) { answer_snapshot(stage.feed, response); });
  server.Get("/api/history",
             [&stage](const Request& request, Response& response) { answer_history(stage.source, request, response); });
  server.Get("/api/set",
             [&stage](const Request& request, Response& response) { answer_set(stage.source, request, response); });
  for (const auto& [path, format] :
       {std::pair("/metrics", snapshot::Metrics::own), std::pair("/metrics/dcgm", snapshot::Metrics::dcgm)})
    server.Get(path, [&stage, format = format](const Request&, Response& response) {
      answer_metrics(stage.source, format, response);
    });
  server.Get("/api/events",
             [&stage](const Request& request, Response& response) { answer_events(stage, request, response); });
}

}  // namespace remuda::web
