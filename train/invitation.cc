#include "train/invitation.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <sched.h>

#include "base/env.h"
#include "base/json.h"
#include "base/version.h"
#include "comm/hosts.h"
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

Json to_json(const Place& place) { return {{"host", place.host}, {"cores", place.cores}}; }

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

Place place_of(const Json& json) {
  Place place;
  json.at("host").get_to(place.host);
  json.at("cores").get_to(place.cores);
  return place;
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

bool is_cpu(const std::string& use) { return use.starts_with("cpu:"); }

std::vector<int> common_cores(const Place& a, const Place& b) {
  std::vector<int> common;
  std::ranges::set_intersection(a.cores, b.cores, std::back_inserter(common));
  return common;
}

std::string cores_text(const std::vector<int>& cores) {
  return fmt::format("{} {}", cores.size() == 1 ? "core" : "cores", fmt::join(cores, ", "));
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

Result<JoinSignal> exchange_signals(comm::Communicator& channel, JoinSignal mine) {
  REMUDA_ASSIGN(const std::vector<JoinSignal> both, gather_all(channel, mine, label::kJoin));
  return both.at(channel.rank() == 0 ? 1 : 0);
}

std::string to_text(const Applicant& applicant) {
  return to_line(
      {{"device", to_json(applicant.device)}, {"host_name", applicant.host_name}, {"place", to_json(applicant.place)}});
}

Result<Applicant> parse_applicant(std::string_view text) {
  return parse(text, "what the rank that joins says of itself", [](const Json& json) {
    Applicant applicant;
    applicant.device = device_of(json.at("device"));
    json.at("host_name").get_to(applicant.host_name);
    applicant.place = place_of(json.at("place"));
    return applicant;
  });
}

Place own_place() {
  Place place{comm::this_host(), {}};
  cpu_set_t cores;
  if (!env::get(env::events_fd) || ::sched_getaffinity(0, sizeof cores, &cores) != 0) return place;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &cores)) place.cores.push_back(core);
  return place;
}

Result<std::vector<Place>> places_of_all(comm::Communicator& communicator) {
  const std::string own = to_line(to_json(own_place()));
  std::vector<Place> all;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    REMUDA_ASSIGN(const std::string text, share_text(communicator, rank, own, label::kJoin));
    REMUDA_ASSIGN(Place place, parse(text, "where a rank is", place_of));
    all.push_back(std::move(place));
  }
  return all;
}

std::string cores_in_use(const std::string& device, const Place& place, const std::vector<job::DeviceSpec>& devices,
                         const std::vector<Place>& places) {
  if (!is_cpu(device) || place.host.empty()) return "";
  for (size_t rank = 0; rank < places.size(); ++rank) {
    const std::string& other = devices[rank].use;
    if (!is_cpu(other) || other == device || places[rank].host != place.host) continue;
    const std::vector<int> common = common_cores(place, places[rank]);
    if (common.empty()) continue;
    return fmt::format(
        "{} would compute on {}, as {} of the run does, which divides the CPU in another way; give both "
        "the same --cpu-devices",
        device, cores_text(common), other);
  }
  return "";
}

std::string cores_shared(const std::string& device, const Place& place, const std::vector<job::DeviceSpec>& devices,
                         const std::vector<Place>& places) {
  if (is_cpu(device) || place.host.empty() || place.cores.empty()) return "";
  Place own = place;
  for (size_t rank = 0; rank < places.size(); ++rank)
    if (is_cpu(devices[rank].use) && places[rank].host == place.host)
      for (const int core : common_cores(own, places[rank])) std::erase(own.cores, core);
  if (!own.cores.empty()) return "";
  return fmt::format(
      "{} is fed from {}, on which CPU devices of the run compute, and both are slower for that; a run that begins "
      "with all of them leaves a GPU cores of its own",
      device, cores_text(place.cores));
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

comm::Terms terms_of_join(const job::TrainJob& job) {
  comm::Terms terms{{"the version of remuda", version()}, {"what this is", "a rank that joins a run"}};
  for (const auto& [key, value] : job::settings_to_join(job)) terms.push_back({key, value});
  for (comm::Term& term : terms_of_content(job)) terms.push_back(std::move(term));
  return terms;
}

}  // namespace remuda::train
