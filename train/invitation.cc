#include "train/invitation.h"

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

job::DeviceSpec device_of(const Json& json) {
  return {.use = json.at("use").get<std::string>(),
          .slowdown = json.at("slowdown").get<double>(),
          .shared = json.at("shared").get<bool>(),
          .role = json.at("automatic").get<bool>() ? balance::Role::automatic : balance::Role::compute};
}

RankLoss loss_of(const Json& json) {
  return {.rank = json.at("rank").get<int>(),
          .device = json.at("device").get<std::string>(),
          .cause = json.at("cause").get<std::string>(),
          .step = json.at("step").get<int>(),
          .resumed_from = json.at("resumed_from").get<int>(),
          .state = json.at("state").get<std::string>(),
          .seconds = json.at("seconds").get<double>()};
}

RankJoin join_of(const Json& json) {
  return {.rank = json.at("rank").get<int>(),
          .device = json.at("device").get<std::string>(),
          .failed = json.value("failed", ""),
          .step = json.at("step").get<int>(),
          .seconds = json.at("seconds").get<double>()};
}

template <typename T>
Json list_of(const std::vector<T>& all) {
  Json list = Json::array();
  for (const T& one : all) list.push_back(to_json(one));
  return list;
}

Invitation invitation_of(const Json& json) {
  Invitation invitation{.number = json.at("number").get<int>(),
                        .members = {.generation = json.at("generation").get<int>(),
                                    .ranks = json.at("ranks").get<std::vector<int>>(),
                                    .address = json.at("address").get<std::string>(),
                                    .port = json.at("port").get<int>()},
                        .join = json.at("join").get<std::string>(),
                        .resume = json.at("resume").get<bool>(),
                        .run_id = json.at("run_id").get<std::string>(),
                        .run_s = json.at("run_s").get<double>(),
                        .kept = json.at("kept").get<std::vector<int64_t>>()};
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
    return Applicant{device_of(json.at("device")), json.at("host").get<std::string>(),
                     json.at("host_name").get<std::string>()};
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
  const std::vector<int>& ranks = invitation.members.ranks;
  if (ranks.size() < 2 || ranks.back() != invitation.number ||
      invitation.devices.size() != size_t(invitation.number) + 1)
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
