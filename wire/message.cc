#include "wire/message.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

#include "base/characters.h"
#include "base/text.h"
#include "device/fields.h"

namespace remuda::wire {
namespace {

/// The parts of an answer that say what kind of one it is.
struct Envelope {
  std::string id;
  int64_t changed = 0;
  bool may_try_again = false;

  static constexpr const char* kName = "answer";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("id", self.id, "of the request");
    visit("changed", self.changed, "the job that has changed");
    visit("may_try_again", self.may_try_again, "the error may pass");
  }
};

struct ErrorText {
  ErrorKind kind = ErrorKind::failed;
  std::string message;

  static constexpr const char* kName = "error";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("kind", self.kind, "which kind of error", true);
    visit("message", self.message, "one sentence", true);
  }
};

struct PageTotals {
  int64_t next_job = 1;
  std::vector<pool::Lease> leases;
  std::vector<pool::Usage> usage;
  std::vector<pool::Drain> drains;
  std::vector<pool::Allocation> allocations;
  bool has_more = false;

  static constexpr const char* kName = "page";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("next_job", self.next_job, "id of the job that is submitted next", true);
    visit("leases", self.leases, "of these jobs");
    visit("usage", self.usage, "of all users");
    visit("drains", self.drains, "devices that are granted to nobody");
    visit("allocations", self.allocations, "devices that other managers of the machine give out");
    visit("has_more", self.has_more, "jobs are left for another page");
  }
};

constexpr size_t kLongestError = 1000;

bool is_id(const std::string& text) {
  return !text.empty() && text.size() <= kLongestId &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) || c == '-'; });
}

template <typename T>
Result<T> parse(const Json& json, const std::string& where) {
  T value;
  REMUDA_TRY(fields::read(json, where, value));
  return value;
}

}  // namespace

Result<void> check_protocol(int protocol) {
  if (protocol == kProtocol) return {};
  const bool is_older = protocol < kProtocol;
  return tl::unexpected(
      Error{ErrorKind::unavailable,
            fmt::format("the agent of this machine speaks protocol {}, and this program, which is {}, {}: {}",
                        kProtocol, is_older ? "older" : "newer", protocol,
                        is_older ? "use the remuda that is installed now"
                                 : "an administrator starts the agent that is installed now: systemctl restart "
                                   "remuda-agent"),
            -1});
}

std::string text_of(const Request& request) {
  Json json = fields::write(request);
  if (request.operation) json["operation"] = to_json(*request.operation);
  return to_line(json);
}

Result<Request> parse_request(std::string_view text) {
  REMUDA_ASSIGN(const Json json, parse_json(text, "the request"));
  REMUDA_ASSIGN(Request request, parse<Request>(json, "request"));
  if (!is_id(request.id)) return usage_error("request.id must be 1 to 64 letters and digits");
  if ((request.ask == Ask::apply) != json.contains("operation"))
    return usage_error("a request has an operation if, and only if, it asks for one to be applied");
  if (request.ask == Ask::apply) {
    REMUDA_ASSIGN(request.operation, pool::parse_operation(json["operation"], "request.operation"));
  }
  return request;
}

std::string text_of(const Answer& answer) {
  Json json = fields::write(Envelope{answer.id, answer.changed, answer.may_try_again});
  if (answer.error)
    json["error"] = {{"kind", to_string(answer.error->kind)},
                     {"message", shortened(printable(answer.error->message), kLongestError)}};
  else if (!answer.result.is_null())
    json["result"] = answer.result;
  return to_line(json);
}

Result<Answer> parse_answer(std::string_view text) {
  REMUDA_ASSIGN(const Json json, parse_json(text, "the answer"));
  REMUDA_ASSIGN(const Envelope envelope, parse<Envelope>(json, "answer"));
  Answer answer{.id = envelope.id, .changed = envelope.changed, .may_try_again = envelope.may_try_again};
  if (const auto error = json.find("error"); error != json.end()) {
    REMUDA_ASSIGN(const ErrorText said, parse<ErrorText>(*error, "answer.error"));
    answer.error = Error{said.kind, said.message, -1};
  }
  if (const auto result = json.find("result"); result != json.end()) answer.result = *result;
  return answer;
}

Json to_json(const Page& page) {
  Json json = fields::write(PageTotals{page.state.next_job, page.state.leases, page.state.usage, page.state.drains,
                                       page.state.allocations, page.has_more});
  Json jobs = Json::array();
  for (const pool::Job& job : page.state.jobs) jobs.push_back(pool::to_json(job));
  json["jobs"] = std::move(jobs);
  return json;
}

Result<Page> parse_page(const Json& json) {
  REMUDA_ASSIGN(PageTotals totals, parse<PageTotals>(json, "page"));
  Page page;
  page.state.next_job = totals.next_job;
  page.state.leases = std::move(totals.leases);
  page.state.usage = std::move(totals.usage);
  page.state.drains = std::move(totals.drains);
  page.state.allocations = std::move(totals.allocations);
  page.has_more = totals.has_more;
  const auto jobs = json.find("jobs");
  if (jobs == json.end() || !jobs->is_array()) return usage_error("page lacks 'jobs'");
  for (const Json& one : *jobs) {
    REMUDA_ASSIGN(pool::Job job, pool::parse_job(one, "page.jobs"));
    page.state.jobs.push_back(std::move(job));
  }
  return page;
}

Result<Greeting> parse_greeting(const Json& json) { return parse<Greeting>(json, "greeting"); }

Result<pool::Applied> parse_applied(const Json& json) { return parse<pool::Applied>(json, "applied"); }

}  // namespace remuda::wire
