// Operations: what callers ask of a pool, as data. The set is closed, and apply() is all that each of them does: so it
// makes no difference whether a process that asks has the pool open itself or speaks to one that has.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "device/inventory.h"
#include "pool/state.h"
#include "pool/transitions.h"

namespace remuda::pool {

/// Enters a job into the queue.
struct Submit {
  Job job;
  bool waits = true;              ///< otherwise the whole operation is refused where the job cannot start at once
  bool stands_for_array = false;  ///< it gets no devices, and its number is that of its array
  std::string log_folder;         ///< not empty: the job's log is in it, as pool_log_path() says, unless it names one

  static constexpr const char* kName = "submit";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("waits", self.waits, "it is queued where it cannot start at once", true);
    visit("stands_for_array", self.stands_for_array, "it gets no devices, and its number is that of its array");
    visit("log_folder", self.log_folder, "where its log is, unless it names one");
  }
  bool operator==(const Submit&) const = default;
};

/// Starts the jobs whose turn it is.
struct StartJobs {
  static constexpr const char* kName = "start_jobs";
  template <typename Self, typename Visit>
  static void fields(Self&, Visit&) {}
  bool operator==(const StartJobs&) const = default;
};

/// The processes that were started for a running job.
struct RecordProcesses {
  int64_t job = 0;
  std::vector<process::ProcessId> processes;

  static constexpr const char* kName = "record_processes";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("job", self.job, "of which job", true);
    visit("processes", self.processes, "what was started for it");
  }
  bool operator==(const RecordProcesses&) const = default;
};

/// What holds a running job's processes together, and keeps them from devices.
struct RecordConfinement {
  int64_t job = 0;
  std::string cgroup;
  bool devices_enforced = false;
  int files_denied = 0;
  HostKept host;

  static constexpr const char* kName = "record_confinement";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("job", self.job, "of which job", true);
    visit("cgroup", self.cgroup, "folder of its cgroup");
    visit("devices_enforced", self.devices_enforced, "it cannot open devices that it was not granted");
    visit("files_denied", self.files_denied, "how many device files that takes");
    visit("host", self.host, "what keeps it to its part of the host");
  }
  bool operator==(const RecordConfinement&) const = default;
};

/// The devices of which a job has a part through a sharing daemon.
struct RecordDaemons {
  int64_t job = 0;
  std::vector<std::string> devices;
  std::string folder;  ///< below which an agent has made them; empty: no change of that

  static constexpr const char* kName = "record_daemons";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("job", self.job, "of which job", true);
    visit("devices", self.devices, "ids of the devices");
    visit("folder", self.folder, "below which the daemons' folders are");
  }
  bool operator==(const RecordDaemons&) const = default;
};

/// What is to be said of an array that waits for its indices.
struct Explain {
  int64_t job = 0;
  std::string why;

  static constexpr const char* kName = "explain";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("job", self.job, "which array", true);
    visit("why", self.why, "why it waits");
  }
  bool operator==(const Explain&) const = default;
};

/// Its keeper starts the command of a running job again.
struct CountRestart {
  int64_t job = 0;

  static constexpr const char* kName = "count_restart";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("job", self.job, "which job", true);
  }
  bool operator==(const CountRestart&) const = default;
};

/// A running job goes back into the queue, with its old place.
struct Requeue {
  int64_t job = 0;

  static constexpr const char* kName = "requeue";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("job", self.job, "which job", true);
  }
  bool operator==(const Requeue&) const = default;
};

/// A running job, of which nothing has started, cannot use its devices: it waits again, which is no restart, or ends
/// with kNotNow.
struct GiveWay {
  int64_t job = 0;
  std::string why;
  bool waits = true;

  static constexpr const char* kName = "give_way";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("job", self.job, "which job", true);
    visit("why", self.why, "what is wrong with its devices");
    visit("waits", self.waits, "it waits again", true);
  }
  bool operator==(const GiveWay&) const = default;
};

/// The process that asks keeps an unkept job from here on.
struct TakeOver {
  int64_t job = 0;
  process::ProcessId keeper;

  static constexpr const char* kName = "take_over";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("job", self.job, "which job", true);
    visit("keeper", self.keeper, "the process");
  }
  bool operator==(const TakeOver&) const = default;
};

/// The job is over.
struct End {
  int64_t job = 0;
  Ending ending;

  static constexpr const char* kName = "end";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("job", self.job, "which job", true);
    visit("exit_status", self.ending.exit_status, "of its command");
    visit("signal", self.ending.signal, "that ended it");
    visit("why", self.ending.why, "how it ended, as a sentence");
    visit("memory_peak_bytes", self.ending.memory_peak_bytes, "the most memory of the host that it had at once");
    visit("ended_s", self.ending.ended_s, "when that was, in seconds since 1970; 0: now");
  }
  bool operator==(const End&) const = default;
};

/// Asks jobs to end. Those that cannot be cancelled are named in Applied::refused; the others are.
struct Cancel {
  std::vector<int64_t> jobs;

  static constexpr const char* kName = "cancel";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("jobs", self.jobs, "which jobs", true);
  }
  bool operator==(const Cancel&) const = default;
};

/// The same for all that have not ended and have this name, this user, or both; an empty text is any. Refused as a
/// whole where one of them belongs to somebody else. Applied::cancelled has those it has found.
struct CancelSelected {
  std::string name, user;

  static constexpr const char* kName = "cancel_selected";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("name", self.name, "what they are called");
    visit("user", self.user, "who asked for them");
  }
  bool operator==(const CancelSelected&) const = default;
};

/// Gives jobs another priority: all of them, or none. The same of the three operations that follow.
struct Reprioritize {
  std::vector<int64_t> jobs;
  int priority = 0;

  static constexpr const char* kName = "reprioritize";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("jobs", self.jobs, "which jobs", true);
    visit("priority", self.priority, "higher goes first", true);
  }
  bool operator==(const Reprioritize&) const = default;
};

/// Keeps waiting jobs from starting.
struct Pause {
  std::vector<int64_t> jobs;

  static constexpr const char* kName = "pause";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("jobs", self.jobs, "which jobs", true);
  }
  bool operator==(const Pause&) const = default;
};

/// Lets paused jobs start again.
struct Resume {
  std::vector<int64_t> jobs;

  static constexpr const char* kName = "resume";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("jobs", self.jobs, "which jobs", true);
  }
  bool operator==(const Resume&) const = default;
};

/// Grants devices to nobody from here on: all of them, or none is changed. The same of the operation that follows.
struct DrainDevices {
  std::vector<std::string> devices;
  std::string reason, by;

  static constexpr const char* kName = "drain";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("devices", self.devices, "ids of the devices", true);
    visit("reason", self.reason, "why they are granted to nobody", true);
    visit("by", self.by, "who drains them");
  }
  bool operator==(const DrainDevices&) const = default;
};

/// Grants drained devices again.
struct UndrainDevices {
  std::vector<std::string> devices;

  static constexpr const char* kName = "undrain";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("devices", self.devices, "ids of the devices", true);
  }
  bool operator==(const UndrainDevices&) const = default;
};

/// The machine is about to go: grants no device from here on, and asks all jobs that run to end, as for preemption.
struct LeaveHost {
  std::string why, by;

  static constexpr const char* kName = "leave_host";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("why", self.why, "what takes the machine away", true);
    visit("by", self.by, "who says so");
  }
  bool operator==(const LeaveHost&) const = default;
};

/// The next step of the policy against idle devices with a running job, or `none`: it works again. Once released, it is
/// asked to end, as for preemption.
struct RecordIdle {
  int64_t job = 0;
  IdleNotice notice;

  static constexpr const char* kName = "record_idle";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("job", self.job, "which job", true);
    visit("notice", self.notice, "the step, and why");
  }
  bool operator==(const RecordIdle&) const = default;
};

/// How the run within a running job goes, as its keeper has heard it.
struct RecordRun {
  int64_t job = 0;
  RunNotice notice;

  static constexpr const char* kName = "record_run";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("job", self.job, "which job", true);
    visit("notice", self.notice, "how it goes");
  }
  bool operator==(const RecordRun&) const = default;
};

using Operation = std::variant<Submit, StartJobs, RecordProcesses, RecordConfinement, RecordDaemons, Explain,
                               CountRestart, Requeue, GiveWay, TakeOver, End, Cancel, CancelSelected, Reprioritize,
                               Pause, Resume, DrainDevices, UndrainDevices, LeaveHost, RecordIdle, RecordRun>;

/// {"operation": "end", "job": 12, ...}.
Json to_json(const Operation& operation);
/// Reads what to_json() wrote; a usage error that starts with `where` otherwise.
Result<Operation> parse_operation(const Json& json, const std::string& where);

/// What came of an operation.
struct Applied {
  int64_t job = 0;                   ///< the number of the job that was submitted or taken over
  std::vector<std::string> refused;  ///< why jobs could not be cancelled, a sentence for each
  std::vector<int64_t> cancelled;    ///< the jobs that were selected

  static constexpr const char* kName = "applied";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("job", self.job, "number of the job that was submitted");
    visit("refused", self.refused, "why jobs could not be cancelled");
    visit("cancelled", self.cancelled, "the jobs that were selected");
  }
  bool operator==(const Applied&) const = default;
};

struct Circumstances {
  const Inventory& inventory;
  const Result<Policy>& policy;  ///< where it is an error, nothing enters the queue
  int uid = 0;                   ///< who asks
  double now_s = 0;
  std::string user;                     ///< their name
  const Policy* last_policy = nullptr;  ///< by which usage fades where `policy` is an error
};
/// Changes the state as the operation asks. Pure.
Result<Applied> apply(PoolState& state, const Operation& operation, const Circumstances& circumstances);

/// Whether schedule() is to follow in the same change. Not after those that free devices: others must not get them
/// before the machine was read again, which shows whether they are free indeed.
bool starts_jobs(const Operation& operation);
/// After schedule(): an error of kind not_now for a submitted job that would have to wait but may not. The change is
/// undone then.
Result<void> accept(const PoolState& state, const Operation& operation, const Applied& applied);
/// The ended jobs that the state must contain (Pool::change).
std::vector<int64_t> ended_jobs_for(const Operation& operation);

}  // namespace remuda::pool
