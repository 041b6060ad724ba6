// Invitation: what a rank that joins a run is told, and with it the ranks that take it in.
//
// The newcomer and rank 0 meet where the run listens, as a communicator of two (join_listener.h, newcomer.h):
//   newcomer   its Applicant                                   (JSON)
//   both       again and again: JoinSignal::wait, JoinSignal::here   (so each notices when the other one has gone)
//   rank 0     JoinSignal::come, and the Invitation                  (JSON)
//   newcomer   JoinSignal::here: it comes, and all meet
//   both       JoinSignal::wait, JoinSignal::here once more: it has begun as the others have, and stays
//   rank 0     JoinSignal::taken, once the others have agreed to go on with it
// In place of each of its words rank 0 may say `refused` or `failed`, and a sentence why.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "comm/terms.h"
#include "job/train_job.h"
#include "train/members.h"
#include "train/run_report.h"

namespace remuda::train {

enum class JoinSignal : uint32_t { wait, come, taken, refused, failed, here };

/// Collective, of the two: says one's own, and hears the other's.
Result<JoinSignal> exchange_signals(comm::Communicator& channel, JoinSignal mine);

/// Where a rank is.
struct Place {
  std::string host;        ///< comm::this_host()
  std::vector<int> cores;  ///< that `remuda train` has bound it to, ascending; empty: to none
};
/// This rank's.
Place own_place();
/// Collective: of all ranks.
Result<std::vector<Place>> places_of_all(comm::Communicator& communicator);

/// Why a device cannot join ranks with these devices in these places: both are CPU devices, and would compute on the
/// same cores; of one device that is a matter of `shared`. Else empty.
std::string cores_in_use(const std::string& device, const Place& place, const std::vector<job::DeviceSpec>& devices,
                         const std::vector<Place>& places);

/// What is to be said of a device other than a CPU that has joined these: the rank that feeds it has no core that is
/// not a CPU device's of the run. It joins all the same, as it computes elsewhere. Else empty.
std::string cores_shared(const std::string& device, const Place& place, const std::vector<job::DeviceSpec>& devices,
                         const std::vector<Place>& places);

/// Who asks to join.
struct Applicant {
  job::DeviceSpec device;
  Place place;
  std::string host_name;  ///< for people
};
std::string to_text(const Applicant& applicant);
Result<Applicant> parse_applicant(std::string_view text);

struct Invitation {
  int number = 0;                        ///< of the rank that joins
  Members members;                       ///< with it
  std::vector<job::DeviceSpec> devices;  ///< of all ranks that there have been, by their numbers, and of this one
  std::string join;                      ///< elastic.join
  bool resume = false;                   ///< checkpoint.resume
  std::string run_id;
  // What a rank knows that has been there from the beginning.
  double run_s = 0;  ///< since the run began
  std::vector<int64_t> kept;
  std::vector<RankLoss> losses;
  std::vector<RankJoin> joins;
};
std::string to_text(const Invitation& invitation);
Result<Invitation> parse_invitation(std::string_view text);

/// What the two must have in common before anything else is said.
comm::Terms terms_of_join(const job::TrainJob& job);

}  // namespace remuda::train
