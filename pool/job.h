// Job, Lease, Usage, Drain: the records of a pool. Plain data.
//
// A job is a command that a user submitted; it holds leases while it runs. A lease is a device, or a share of one, held
// for a job. Every job has a keeper: the process that waits for it, starts it and ends with it. A job whose keeper and
// processes are all gone is over, whatever the record says (see reap() in transitions.h).
//
// Times are those of the wall clock, which may be set: they are for people and for the order of the queue. Code that
// enforces a time limit uses the steady clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "device/reading.h"
#include "device/words.h"
#include "place/request.h"
#include "pool/idle_notice.h"
#include "pool/request_json.h"
#include "pool/run_notice.h"
#include "process/process_id.h"

namespace remuda::pool {

enum class JobState {
  waiting,  ///< in the queue
  running,  ///< holds its leases
  ended,    ///< its last process is gone; exit_status or signal says how
};
}  // namespace remuda::pool

template <>
struct remuda::Words<remuda::pool::JobState> {
  static constexpr std::array table{std::pair{pool::JobState::waiting, "waiting"},
                                    std::pair{pool::JobState::running, "running"},
                                    std::pair{pool::JobState::ended, "ended"}};
};

namespace remuda::pool {

/// A time for which a job had devices, before it was queued again.
struct Turn {
  double began_s = 0, ended_s = 0;
  std::vector<std::string> devices;  ///< ids

  static constexpr const char* kName = "turn";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("began_s", self.began_s, "when it got them, in seconds since 1970");
    visit("ended_s", self.ended_s, "when it gave them back");
    visit("devices", self.devices, "ids of the devices");
  }
  bool operator==(const Turn&) const = default;
};

/// What keeps a job to its cores and its memory of the host.
struct HostKept {
  std::string cores;    ///< "cpuset": it runs on no others; "quota": it gets no more time; empty: it may leave them
  bool memory = false;  ///< it cannot take more
  std::string why;      ///< a clause: why not all that it asked for is kept

  /// Of what is in force: confine::HostLimited, which is of a folder that this one does not know.
  template <typename Limited>
  static HostKept by(const Limited& how) {
    return {.cores = how.cores, .memory = how.memory, .why = how.obstacle};
  }

  static constexpr const char* kName = "host_kept";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("cores", self.cores, "cpuset: it runs on no others; quota: it gets no more time than so many have");
    visit("memory", self.memory, "it cannot take more memory");
    visit("why", self.why, "why not all that it asked for is kept");
  }
  bool operator==(const HostKept&) const = default;
};

/// By how much the wall clock was ahead of the clock that runs since the machine has started, so that its being set
/// shows (pool/clocks.h).
struct ClockMark {
  std::string boot;  ///< which start of the machine that is; empty: not known
  double ahead_s = 0;

  static constexpr const char* kName = "clock_mark";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("boot", self.boot, "which start of the machine");
    visit("ahead_s", self.ahead_s, "how far the wall clock was ahead of the one that runs since then");
  }
  bool operator==(const ClockMark&) const = default;
};

struct Job {
  /// Of those in `earlier`, and of devices in all of them; the oldest are forgotten.
  static constexpr size_t kMostTurns = 64, kMostTurnDevices = 512;

  int64_t id = 0;  ///< given by the pool, ascending, never used again
  std::string user;
  int uid = 0;
  std::vector<std::string> groups;  ///< of the user, by name, as a policy may ask for them
  std::string name;
  place::Request request;
  int priority = 0;
  bool preemptible = false;  ///< may be stopped, and queued again, for a job of higher priority
  int64_t preempted_by = 0;  ///< the job for which it is to make room; 0 = none
  std::string evicted;       ///< why a running one is to end, of its machine or its idle devices; empty: it is not
  IdleNotice idle;           ///< of a running one: what the policy against idle devices has done
  RunNotice run;             ///< of a running one: how its run goes, where it says so
  int64_t passed = 0;        ///< the job in front of which it started, on devices kept for that one; 0 = none
  double submitted_s = 0, started_s = 0, ended_s = 0;  ///< seconds since 1970; 0 = not yet
  ClockMark clock;                                     ///< of a running one: of its times
  double time_limit_s = 0;                             ///< 0 = none
  double grace_s = 0;                                  ///< between the request to end and the end
  double begin_s = 0;                                  ///< does not start before; 0: at once
  std::vector<int64_t> after;                          ///< jobs that must have ended with status 0 before
  std::vector<int64_t> after_any;                      ///< jobs that must have ended before, however they did
  bool paused = false;                                 ///< keeps its place in the queue, and does not start
  bool outlives_keeper = false;  ///< while it waits, it stays in the queue when its keeper is lost
  bool unkept = false;           ///< that has happened: it gets another one once it is granted its devices
  bool keeper_failed = false;    ///< none could be started: it is granted nothing before it has one
  int64_t array = 0;             ///< the job that stands for its array; 0 = none
  int array_index = 0;
  JobState state = JobState::waiting;
  process::ProcessId keeper;  ///< must be set when the job is submitted; may be handed to another process later
  std::vector<process::ProcessId>
      processes;  ///< what was started for it; children of these carry its number in REMUDA_JOB
  std::vector<std::string> command;
  std::string folder, log;
  std::string at_end;                ///< command for the user's shell, once the job has ended
  std::string mail;                  ///< address for a message then
  std::vector<std::string> devices;  ///< ids of those it has, or had last; of an ended job, too
  std::vector<int> cores;            ///< of the host, that it has for itself, or had last
  std::vector<double> speeds;        ///< of each of them, as part of the fastest GPU's, where that was known
  std::vector<Turn> earlier;         ///< before it was queued again, oldest first
  std::vector<std::string> daemons;  ///< ids of the devices of which it has a part through a sharing daemon
  std::string daemon_folder;         ///< below which the agent has made theirs; empty: the user's own keep them
  bool begun = false;                ///< its command was started since it was granted its devices
  std::string cgroup;                ///< folder of the cgroup its processes were started in; empty: none
  bool devices_enforced = false;     ///< they cannot open devices that it was not granted
  int files_denied = 0;              ///< device files that a filter of that cgroup keeps them from
  HostKept host;
  Reading<int64_t> memory_peak_bytes;  ///< of the ended job: the most of the host's memory that it had at once
  int exit_status = 0, signal = 0, restarts = 0;
  bool cancelled = false;
  std::string submission;  ///< id of the request that has submitted it to an agent; of no use to people
  std::string why;         ///< of a waiting job: the scheduler's last sentence about it; of an ended one: how it ended

  /// Without the request: see to_json() below.
  static constexpr const char* kName = "job";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("id", self.id, "number of the job", true);
    visit("user", self.user, "who asked for it", true);
    visit("uid", self.uid, "their user id");
    visit("groups", self.groups, "their groups");
    visit("name", self.name, "what they call it");
    visit("priority", self.priority, "higher goes first");
    visit("preemptible", self.preemptible, "may be stopped, and queued again, for a job of higher priority");
    visit("preempted_by", self.preempted_by, "the job for which it is to make room");
    visit("evicted", self.evicted, "why it is to end, as its machine is about to go, or its devices are idle");
    visit("idle", self.idle, "what the policy against idle devices has done with the running job");
    visit("run", self.run, "how its run goes, where it says so");
    visit("passed", self.passed, "the job in front of which it started, on devices that are kept for that one");
    visit("submitted_s", self.submitted_s, "when it came, in seconds since 1970");
    visit("started_s", self.started_s, "when it got its devices");
    visit("ended_s", self.ended_s, "when its last process was gone");
    visit("clock", self.clock, "of the running job: of what clock its times are");
    visit("time_limit_s", self.time_limit_s, "how long it may run, in seconds");
    visit("grace_s", self.grace_s, "how long it has to end once it was asked to, in seconds");
    visit("begin_s", self.begin_s, "it does not start before, in seconds since 1970");
    visit("after", self.after, "jobs that must have ended well before it starts");
    visit("after_any", self.after_any, "jobs that must have ended before it starts, however they did");
    visit("paused", self.paused, "it keeps its place in the queue, and does not start");
    visit("outlives_keeper", self.outlives_keeper, "while it waits, it stays in the queue when its keeper is lost");
    visit("unkept", self.unkept, "no process keeps it; it gets one once it is granted its devices");
    visit("keeper_failed", self.keeper_failed, "none could be started; it is granted nothing before it has one");
    visit("array", self.array, "the job that stands for its array");
    visit("array_index", self.array_index, "its place in the array");
    visit("state", self.state, "waiting, running or ended", true);
    visit("keeper", self.keeper, "the process that waits for it, starts it and ends with it");
    visit("processes", self.processes, "the processes started for it");
    visit("begun", self.begun, "its command was started since it was granted its devices");
    visit("command", self.command, "what it runs");
    visit("folder", self.folder, "where it runs");
    visit("log", self.log, "file with its output");
    visit("at_end", self.at_end, "command that runs once it has ended");
    visit("mail", self.mail, "address that gets a message once it has ended");
    visit("devices", self.devices, "the devices that it has, or had last");
    visit("cores", self.cores, "the cores of the host that it has for itself, or had last");
    visit("speeds", self.speeds, "how fast each of them is, as part of the fastest GPU");
    visit("earlier", self.earlier, "when and on which devices it ran before it was queued again");
    visit("daemons", self.daemons, "devices of which it has a part through a sharing daemon");
    visit("daemon_folder", self.daemon_folder, "folder below which the agent has made those daemons' folders");
    visit("cgroup", self.cgroup, "folder of the cgroup that its processes are held by");
    visit("devices_enforced", self.devices_enforced, "they cannot open devices that it was not granted");
    visit("files_denied", self.files_denied, "how many device files that takes");
    visit("host", self.host, "what keeps it to its part of the host");
    visit("memory_peak_bytes", self.memory_peak_bytes, "of the ended job: the most of the host's memory that it had");
    visit("exit_status", self.exit_status, "of the ended job");
    visit("signal", self.signal, "that ended it");
    visit("restarts", self.restarts, "how often it was started again");
    visit("cancelled", self.cancelled, "it was asked to end");
    visit("submission", self.submission, "id of the request that has submitted it");
    visit("why", self.why, "why it waits, or how it ended");
  }
  bool operator==(const Job&) const = default;
};

struct Lease {
  int64_t job = 0;
  std::string device;
  double share = 1;
  double since_s = 0;
  double until_s = 0;

  static constexpr const char* kName = "lease";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("job", self.job, "for which job", true);
    visit("device", self.device, "id of the device", true);
    visit("share", self.share, "part of the device, 0 to 1");
    visit("since_s", self.since_s, "since when, in seconds since 1970");
    visit("until_s", self.until_s, "when its time limit ends it; absent: no limit");
  }
  bool operator==(const Lease&) const = default;
};

/// A user's recent use of devices, for fair share.
struct Usage {
  std::string user;
  double device_seconds = 0;  ///< decayed to `at_s`
  double at_s = 0;

  static constexpr const char* kName = "usage";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("user", self.user, "who", true);
    visit("device_seconds", self.device_seconds, "device time had, halved every half-life");
    visit("at_s", self.at_s, "when that was true");
  }
  bool operator==(const Usage&) const = default;
};

/// What a user has had on one day, for limits of a policy.
struct Spent {
  std::string user;
  int64_t day = 0;      ///< since 1970, in UTC
  double device_s = 0;  ///< seconds of the fastest GPU
  bool operator==(const Spent&) const = default;
};

/// A device that is granted to nobody until it is given back. Jobs on it go on.
struct Drain {
  std::string device;  ///< id
  std::string reason, by;
  double since_s = 0;

  static constexpr const char* kName = "drain";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("device", self.device, "id of the device", true);
    visit("reason", self.reason, "why it is granted to nobody", true);
    visit("by", self.by, "who has drained it");
    visit("since_s", self.since_s, "since when, in seconds since 1970");
  }
  bool operator==(const Drain&) const = default;
};

/// A container of a pod that has a device, as a kubelet has given it out.
struct Pod {
  std::string name_space, name;  ///< empty: only its uid is known
  std::string uid, container;

  static constexpr const char* kName = "pod";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("namespace", self.name_space, "of the pod");
    visit("name", self.name, "of the pod");
    visit("uid", self.uid, "of the pod");
    visit("container", self.container, "which of its containers has the device");
  }
  bool operator==(const Pod&) const = default;
};

/// A device that another manager of this machine, Slurm or a kubelet, gives to jobs of its own: granted to nobody here.
/// An agent sees them (cluster/); they are not of the pool's file.
struct Allocation {
  std::string device;     ///< id
  std::string manager;    ///< "Slurm"
  std::string holder;     ///< "slurm job 123 (ana)"; empty: nobody has it
  std::string instead;    ///< how to ask that manager for it: "srun or sbatch"
  std::vector<Pod> pods;  ///< of a kubelet: whose it is

  static constexpr const char* kName = "allocation";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("device", self.device, "id of the device", true);
    visit("manager", self.manager, "who gives it out", true);
    visit("holder", self.holder, "who has it");
    visit("instead", self.instead, "how to ask for it");
    visit("pods", self.pods, "of a kubelet: the containers that have it");
  }
  bool operator==(const Allocation&) const = default;
};

/// Stands for an array: gets no devices, and waits until the last of the array's jobs has ended.
bool is_array(const Job& job);

/// The job as people name it: "12", or "5.7" for index 7 of array 5.
std::string name_of(const Job& job);

/// Ended with status 0, without a signal, and was not cancelled.
bool succeeded(const Job& job);

/// The jobs whose ends it waits for, in any order: Job::after and Job::after_any.
std::vector<int64_t> awaited_by(const Job& job);

/// Refuses (usage) that a process of user `uid` becomes one of the job: it does not run, is an array or another user's.
Result<void> check_enter(const Job& job, int uid);
/// Why not even its user can: it has no cgroup.
std::string cannot_be_entered(int64_t job);

/// All fields of the job, and "request".
Json to_json(const Job& job);
/// Fields of the record that this program does not know, such as those of a newer one; an object, mostly empty.
Json unknown_fields(const Json& job);
/// Reads what to_json() wrote; a usage error that starts with `where` otherwise.
Result<Job> parse_job(const Json& json, const std::string& where);

}  // namespace remuda::pool
