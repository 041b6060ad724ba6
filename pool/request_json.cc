#include "pool/request_json.h"

#include "device/field_size.h"

namespace remuda::pool {
namespace {

/// A request with the fields that have no plain JSON form as the text that people write.
struct RequestText {
  int count = 0;
  int64_t memory_bytes = 0;
  std::string model, capability, link, where;
  bool any_model = false;
  std::vector<std::string> devices;
  double share = 0;
  bool cpu = false;
  int cores = 0;
  int64_t host_memory_bytes = 0;

  static constexpr const char* kName = "request";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("count", self.count, "number of devices", kRequired);
    visit("memory_bytes", self.memory_bytes, "free memory each must have");
    visit("model", self.model, "pattern for its name");
    visit("capability", self.capability, "what its arithmetic must be able to do");
    visit("link", self.link, "what must join them", kRequired);
    visit("any_model", self.any_model, "unlike devices may make a set");
    visit("devices", self.devices, "only these");
    visit("share", self.share, "part of each device", kRequired);
    visit("where", self.where, "condition on each device");
    visit("cpu", self.cpu, "CPU devices may be taken");
    visit("cores", self.cores, "cores of the host, for the job alone");
    visit("host_memory_bytes", self.host_memory_bytes, "memory of the host");
  }
};

std::string capability_text(const place::Request& request) {
  return request.capability ? request.capability->text() : "";
}
std::string where_text(const place::Request& request) { return request.where ? request.where->text() : ""; }

RequestText text_of(const place::Request& request) {
  return {.count = request.count,
          .memory_bytes = request.memory_bytes,
          .model = request.model,
          .capability = capability_text(request),
          .link = to_string(request.link),
          .where = where_text(request),
          .any_model = request.any_model,
          .devices = request.devices,
          .share = request.share,
          .cpu = request.cpu,
          .cores = request.cores,
          .host_memory_bytes = request.host_memory_bytes};
}

}  // namespace

Json to_json(const place::Request& request) { return fields::write(text_of(request)); }

/// Without a copy of its texts: a queue of thousands is counted with each submission.
size_t size_of(const place::Request& request) {
  static const size_t kAllKeys = [] {
    RequestText text{.any_model = true, .cpu = true};
    text.count = text.cores = 1;
    text.memory_bytes = text.host_memory_bytes = 1;
    text.share = 1;
    for (std::string* one : {&text.model, &text.capability, &text.link, &text.where}) *one = "longest";
    text.devices = {""};
    return fields::json_size(text);
  }();
  size_t texts = fields::json_size(request.model) + fields::json_size(request.devices);
  if (request.where) texts += fields::json_size(request.where->text());
  if (request.capability) texts += fields::json_size(request.capability->text());
  return kAllKeys + texts;
}

bool is_request_field(const std::string& name) {
  bool is_known = false;
  const auto compare = [&](const char* key, const auto&, const char*, bool = false) { is_known |= name == key; };
  const RequestText text;
  RequestText::fields(text, compare);
  return is_known;
}

Result<place::Request> parse_request(const Json& json, const std::string& where) {
  RequestText text;
  REMUDA_TRY(fields::read(json, where, text));
  place::Request request{.count = text.count,
                         .memory_bytes = text.memory_bytes,
                         .model = std::move(text.model),
                         .any_model = text.any_model,
                         .devices = std::move(text.devices),
                         .share = text.share,
                         .cpu = text.cpu,
                         .cores = text.cores,
                         .host_memory_bytes = text.host_memory_bytes};
  const auto link = from_word<place::LinkNeed>(text.link);
  if (!link) return usage_error(fmt::format("{}.link is '{}', which is none", where, text.link));
  request.link = *link;
  if (!text.capability.empty()) {
    REMUDA_ASSIGN(request.capability, place::Capability::parse(text.capability));
  }
  if (!text.where.empty()) {
    REMUDA_ASSIGN(request.where, place::Where::parse(text.where));
  }
  REMUDA_TRY(check(request));
  return request;
}

}  // namespace remuda::pool
