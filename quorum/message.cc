#include "quorum/message.h"

#include <algorithm>

#include "base/json.h"
#include "comm/handshake.h"

namespace remuda::quorum {
namespace {

constexpr int kMostRounds = 1 << 30;

Json json_of(const Ballot& ballot) { return Json::array({ballot.round, ballot.rank}); }

/// Reads fields of an object, and notes whether one of them was none.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}

  bool good() const { return good_; }
  int number(const char* key, int least, int most) { return number_of(value(key), least, most); }
  bool flag(const char* key) {
    const Json& found = value(key);
    good_ = good_ && found.is_boolean();
    return good_ && found.get<bool>();
  }
  std::string text(const char* key) {
    const Json& found = value(key);
    good_ = good_ && found.is_string();
    return good_ ? found.get<std::string>() : "";
  }
  /// Each above the one before it.
  std::vector<int> ranks(const char* key) {
    const Json& found = value(key);
    std::vector<int> ranks;
    good_ = good_ && found.is_array();
    if (!good_) return ranks;
    for (const Json& one : found) ranks.push_back(number_of(one, ranks.empty() ? 0 : ranks.back() + 1, kLastRank));
    return ranks;
  }
  Ballot ballot(const char* key) {
    const Json& found = value(key);
    good_ = good_ && found.is_array() && found.size() == 2;
    if (!good_) return {};
    return {number_of(found[0], 0, kMostRounds), number_of(found[1], 0, kLastRank)};
  }

  static constexpr int kLastRank = comm::kMaxRanks - 1;

 private:
  const Json& value(const char* key) {
    static const Json kNothing;
    const auto found = object_.find(key);
    return found == object_.end() ? kNothing : *found;
  }
  int number_of(const Json& value, int least, int most) {
    good_ = good_ && value.is_number_integer();
    const int64_t number = good_ ? value.get<int64_t>() : 0;
    good_ = good_ && number >= least && number <= most;
    return good_ ? static_cast<int>(number) : least;
  }

  const Json& object_;
  bool good_ = true;
};

}  // namespace

std::string to_text(const Message& message) {
  return to_line({{"generation", message.generation},
                  {"rank", message.rank},
                  {"lost", message.lost},
                  {"cause", message.cause.substr(0, kLongestCause)},
                  {"done", message.done},
                  {"welcomes", message.welcomes},
                  {"address", message.address},
                  {"port", message.port},
                  {"heard_from", message.heard_from},
                  {"promised", json_of(message.promised)},
                  {"accepted", json_of(message.accepted)},
                  {"ranks", message.value.ranks},
                  {"at_address", message.value.address},
                  {"at_port", message.value.port},
                  {"decided", message.decided}});
}

Result<Message> parse_message(std::string_view text) {
  constexpr const char* kWhat = "what another rank says of itself";
  REMUDA_ASSIGN(const Json json, parse_json(text, kWhat));
  const auto refuse = [&] { return failed(std::string(kWhat) + " makes no sense"); };
  if (!json.is_object()) return refuse();
  Fields fields(json);
  Message message{.generation = fields.number("generation", kHello, comm::kMaxRanks),
                  .rank = fields.number("rank", 0, Fields::kLastRank),
                  .lost = fields.number("lost", -1, Fields::kLastRank),
                  .cause = fields.text("cause"),
                  .done = fields.flag("done"),
                  .welcomes = fields.flag("welcomes"),
                  .address = fields.text("address"),
                  .port = fields.number("port", 0, 65535),
                  .heard_from = fields.ranks("heard_from"),
                  .promised = fields.ballot("promised"),
                  .accepted = fields.ballot("accepted"),
                  .value = {fields.ranks("ranks"), fields.text("at_address"), fields.number("at_port", 0, 65535)},
                  .decided = fields.flag("decided")};
  const bool has_value = message.accepted.round > 0;
  if (!fields.good() || has_value == message.value.ranks.empty() || (message.decided && !has_value)) return refuse();
  return message;
}

}  // namespace remuda::quorum
