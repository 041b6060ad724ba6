// Policy: what the administrator of a pool has decided. Plain data and pure questions; it is read by file.h.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/words.h"
#include "policy/hours.h"

namespace remuda::policy {

/// [devices] enforce: who is kept from device files that they were not granted.
enum class Enforce {
  off,       ///< nobody
  jobs,      ///< each job, from those of other jobs
  audit,     ///< the same; and it is told whom `everyone` would refuse
  everyone,  ///< all processes but root's and those of exempt units
};
}  // namespace remuda::policy

template <>
struct remuda::Words<remuda::policy::Enforce> {
  static constexpr std::array table{std::pair{policy::Enforce::off, "off"}, std::pair{policy::Enforce::jobs, "jobs"},
                                    std::pair{policy::Enforce::audit, "audit"},
                                    std::pair{policy::Enforce::everyone, "everyone"}};
};

namespace remuda::policy {

/// A value of the file, and where it stands there: "/etc/remuda/policy.toml:12".
template <typename T>
struct Rule {
  T value{};
  std::string where;
  bool operator==(const Rule&) const = default;
};

struct User {
  std::string name;
  std::vector<std::string> groups;
  bool is_known = true;  ///< false: nobody has told name and groups in time; the name is the number then
};

/// For whom a table of the file is. With neither users nor groups: for everybody.
struct Who {
  std::vector<std::string> users, groups;
  std::string where;  ///< the table, as in Rule

  bool includes(const User& user) const;
  /// "everybody", "alice and group gpu".
  std::string text() const;
  bool operator==(const Who&) const = default;
};

/// [[limit]]: what these users may have.
struct Limit {
  Who who;
  std::optional<Rule<int>> devices;                  ///< at once; a half of one is a half
  std::optional<Rule<int>> waiting;                  ///< jobs; an array is one
  std::optional<Rule<int>> priority;                 ///< the highest that they may give
  std::optional<Rule<double>> device_hours;          ///< in seven days, of the fastest GPU
  std::optional<Rule<double>> longest_s;             ///< time limit of a job
  std::optional<Rule<double>> default_s;             ///< time limit of a job that asks for none
  std::optional<Rule<bool>> share;                   ///< whether they may take a part of a device
  std::optional<Rule<int>> cores;                    ///< of the host, at once
  std::optional<Rule<int>> default_cores;            ///< of a job that asks for none
  std::optional<Rule<int64_t>> host_memory;          ///< bytes of the host, at once
  std::optional<Rule<int64_t>> default_host_memory;  ///< of a job that asks for none
  bool operator==(const Limit&) const = default;
};

/// [[reservation]]: devices that at these hours only these users get.
struct Reservation {
  std::vector<std::string> devices;  ///< as for Inventory::resolve
  Who who;
  Hours hours;
  std::string where;
  bool operator==(const Reservation&) const = default;
};

/// [health]: what a device must pass between two jobs, beside what its driver says.
struct Health {
  std::string probe;            ///< a shell's command, which ends with status 0 where the device is well; empty: none
  double probe_timeout_s = 30;  ///< one that takes longer has failed
  bool operator==(const Health&) const = default;
};

/// [idle]: what becomes of jobs that hold devices and do next to nothing with them. Each time is without it: never.
struct Idle {
  double warn_after_s = 0;     ///< over so long a kernel ran for less than `floor`; 0: nothing of this
  double signal_after_s = 0;   ///< then, with `signal`, to write a checkpoint; later than the warning; 0: never
  double release_after_s = 0;  ///< then the job is ended, as a time limit ends it; later than both; 0: never
  double floor = 0.05;         ///< share of time
  int signal = SIGUSR1;        ///< for jobs that do not say by which one they write a checkpoint
  Who exempt;                  ///< with neither users nor groups: nobody

  bool is_on() const { return warn_after_s > 0; }
  bool exempts(const User& user) const {
    return (!exempt.users.empty() || !exempt.groups.empty()) && exempt.includes(user);
  }
  bool operator==(const Idle&) const = default;
};

/// [[tariff]]: what devices of a model cost; 0: nothing is taken for it.
struct Tariff {
  std::string model;  ///< with wildcards; empty: every one
  double hour = 0;    ///< for an hour of a device
  double kwh = 0;     ///< for its energy
  bool operator==(const Tariff&) const = default;
};

struct Policy {
  double half_life_s = 7 * 86400;  ///< of usage
  double patience_s = 900;         ///< how long later jobs may overtake a waiting one; then devices are kept for it
  bool backfill = true;            ///< a job that ends in time may have them meanwhile
  std::vector<Limit> limits;
  std::vector<Reservation> reservations;
  Enforce enforce = Enforce::jobs;
  std::vector<std::string> exempt;  ///< units of systemd, or cgroups by their path; is_exemption() holds for each
  Health health;
  Idle idle;
  std::vector<Tariff> tariffs;  ///< the first counts that fits
  std::string currency;         ///< of all of them
  bool mps = false;             ///< [sharing]: the agent keeps MPS daemons for jobs with parts of devices
  /// [sharing]: the GPUs, as for Inventory::resolve, of which the agent makes partitions for such jobs.
  std::optional<Rule<std::vector<std::string>>> mig;
  double utc_offset_s = 0;  ///< of the machine's time zone, for hours; not of the file

  /// The value that holds for this user: that of the first table which is for them and has it; null where none has.
  template <typename T>
  const Rule<T>* find(std::optional<Rule<T>> Limit::* key, const User& user) const {
    for (const Limit& limit : limits)
      if ((limit.*key).has_value() && limit.who.includes(user)) return &*(limit.*key);
    return nullptr;
  }
  /// Whether limits differ between users, by their names and groups.
  bool limits_by_name() const;
  bool operator==(const Policy&) const = default;
};

/// "gdm.service", "user-1000.slice"; or the path of a cgroup of version 2: "/system.slice/a/b".
bool is_exemption(std::string_view text);

/// What it says, a line for each rule, for people.
std::string policy_text(const Policy& policy);

}  // namespace remuda::policy
