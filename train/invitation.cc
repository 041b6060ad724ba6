#include "train/invitation.h"

#include <algorithm>

#include "base/json.h"
#include "base/version.h"
#include "train/agreement.h"
#include "train/labels.h"
#include "train/run_terms.h"

namespace remuda::train {
namespace {

Json to_json(const job::DeviceSpec& device) {
  return {{"use", device.use},
          {"slowdown", device.slowdown},
          {"shared", device.shared},
          {"automatic", device.role == balance::Role::automatic}};
}

// What follows reads field by field: where the value of a later field throws within the braces of an aggregate, g++ 12
// destroys those before it twice.

job::DeviceSpec device_of(const Json& json) {
  job::DeviceSpec device;
  json.at("use").get_to(device.use);
  json.at("slowdown").get_to(device.slowdown);
  json.at("shared").get_to(device.shared);
  if (json.at("automatic").get<bool>()) device.role = balance::Role::automatic;
  return device;
}

RankLoss loss_of(const Json& json) {
  RankLoss loss;
  json.at("rank").get_to(loss.rank);
  json.at("device").get_to(loss.device);
  json.at("cause").get_to(loss.cause);
  json.at("step").get_to(loss.step);
  json.at("resumed_from").get_to(loss.resumed_from);
  json.at("state").get_to(loss.state);
  json.at("seconds").get_to(loss.seconds);
  return loss;
}

RankJoin join_of(const Json& json) {
  RankJoin join;
  json.at("rank").get_to(join.rank);
  json.at("device").get_to(join.device);
  join.failed = json.value("failed", "");
  json.at("step").get_to(join.step);
  json.at("seconds").get_to(join.seconds);
  return join;
}

template <typename T>
Json list_of(const std::vector<T>& all) {
  Json list = Json::array();
  for (const T& one : all) list.push_back(to_json(one));
  return list;
}

Invitation invitation_of(const Json& json) {
  Invitation invitation;
  json.at("number").get_to(invitation.number);
  json.at("generation").get_to(invitation.members.generation);
  json.at("ranks").get_to(invitation.members.ranks);
  json.at("address").get_to(invitation.members.address);
  json.at("port").get_to(invitation.members.port);
  json.at("join").get_to(invitation.join);
  json.at("resume").get_to(invitation.resume);
  json.at("run_id").get_to(invitation.run_id);
  json.at("run_s").get_to(invitation.run_s);
  json.at("kept").get_to(invitation.kept);
  for (const Json& one : json.at("devices")) invitation.devices.push_back(device_of(one));
  for (const Json& one : json.at("losses")) invitation.losses.push_back(loss_of(one));
  for (const Json& one : json.at("joins")) invitation.joins.push_back(join_of(one));
  return invitation;
}

/// Of a rank that knows the job's secret; what it says may be of another version all the same.
template <typename Read>
auto parse(std::string_view text, const char* what, const Read& read) -> Result<decltype(read(Json()))> {
  REMUDA_ASSIGN(const Json json, parse_json(text, what));
  try {
    return read(json);
  } catch (const Json::exception&) {
    return failed(std::string(what) + " is not complete");
  }
}

}  // namespace

Result<Word> exchange_words(comm::Communicator& channel, Word mine) {
  REMUDA_ASSIGN(const std::vector<Word> both, gather_all(channel, mine, label::kJoin));
  return both.at(channel.rank() == 0 ? 1 : 0);
}

std::string to_text(const Applicant& applicant) {
  return to_line({{"device", to_json(applicant.device)}, {"host", applicant.host}, {"host_name", applicant.host_name}});
}

Result<Applicant> parse_applicant(std::string_view text) {
  return parse(text, "what the rank that joins says of itself", [](const Json& json) {
    Applicant applicant;
    applicant.device = device_of(json.at("device"));
    json.at("host").get_to(applicant.host);
    json.at("host_name").get_to(applicant.host_name);
    return applicant;
  });
}

std::string to_text(const Invitation& invitation) {
  const Members& members = invitation.members;
  return to_line({{"number", invitation.number},
                  {"generation", members.generation},
                  {"ranks", members.ranks},
                  {"address", members.address},
                  {"port", members.port},
                  {"devices", list_of(invitation.devices)},
                  {"join", invitation.join},
                  {"resume", invitation.resume},
                  {"run_id", invitation.run_id},
                  {"run_s", invitation.run_s},
                  {"kept", invitation.kept},
                  {"losses", list_of(invitation.losses)},
                  {"joins", list_of(invitation.joins)}});
}

Result<Invitation> parse_invitation(std::string_view text) {
  constexpr const char* kWhat = "what the run says to the rank that joins";
  REMUDA_ASSIGN(Invitation invitation, parse(text, kWhat, invitation_of));
  const Members& members = invitation.members;
  const std::vector<int>& ranks = members.ranks;
  const bool in_order = std::ranges::is_sorted(ranks, std::ranges::less_equal{});  // and none twice
  if (ranks.size() < 2 || ranks.front() < 0 || !in_order || ranks.back() != invitation.number ||
      invitation.devices.size() != size_t(invitation.number) + 1 || members.generation < 1 || members.port < 1 ||
      members.port > 65535)
    return failed(std::string(kWhat) + " makes no sense");
  return invitation;
}

comm::Terms terms_at_door(const job::TrainJob& job) {
  comm::Terms terms{{"the version of remuda", version()}, {"what this is", "a rank that joins a run"}};
  for (const auto& [key, value] : job::settings_to_join(job)) terms.push_back({key, value});
  for (comm::Term& term : terms_of_content(job)) terms.push_back(std::move(term));
  return terms;
}

}  // namespace remuda::train
