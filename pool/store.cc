#include "pool/store.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "pool/files.h"
#include "pool/format.h"
#include "pool/transitions.h"

namespace remuda::pool {
namespace {

constexpr int64_t kLargestId = int64_t{1} << 53;  // larger JSON numbers are not exact everywhere
constexpr const char *kFile = "pool.db", *kLog = "pool.db-wal", *kIndex = "pool.db-shm", *kJournal = "pool.db-journal";

Result<void> create_if_absent(const Folder& folder) {
  REMUDA_ASSIGN(const bool is_there, has_plain_file(folder, kFile));
  if (is_there) return {};
  REMUDA_ASSIGN(const std::string content, sqlite::Database::image(first_format().c_str()));
  return create_file(folder, kFile, content);
}

Result<void> check_files(const Folder& folder) {
  for (const char* name : {kFile, kLog, kIndex, kJournal}) REMUDA_TRY(has_plain_file(folder, name));
  return {};
}

/// The jobs that waiting ones name.
std::set<int64_t> named(const std::vector<Job>& jobs) {
  std::set<int64_t> ids;
  for (const Job& job : jobs)
    if (job.state == JobState::waiting)
      for (const int64_t id : awaited_by(job)) ids.insert(id);
  return ids;
}

}  // namespace

/// Checks first: SQLite would open a file that it may not write for reading only, and reports a folder in words of its
/// own.
Result<Store> Store::open(const std::string& path) {
  REMUDA_ASSIGN(const Folder folder, open_pool_folder(path));
  REMUDA_TRY(create_if_absent(folder));
  REMUDA_TRY(check_files(folder));
  const std::string file = folder.path_of(kFile);
  REMUDA_ASSIGN(auto database, sqlite::Database::open(file, kIfDamaged));
  REMUDA_TRY(migrate(*database, file, migrations()));
  for (const char* beside : {kLog, kIndex}) REMUDA_TRY(share_with_group(folder, beside));
  return Store(file, std::move(database));
}

Result<PoolState> Store::read(const std::vector<int64_t>& with) {
  REMUDA_TRY(check_format(*database_, path_, migrations()));
  PoolState state;
  REMUDA_ASSIGN(const int64_t last, database_->integer("SELECT seq FROM sqlite_sequence WHERE name = 'job'"));
  if (last < 0 || last > kLargestId) return failed(damage_text(fmt::format("its last job would be {}", last)));
  state.next_job = last + 1;
  REMUDA_ASSIGN(std::vector<Job> jobs, read_open());
  REMUDA_TRY(read_ended(with, jobs));
  state.jobs = Jobs(std::move(jobs));
  REMUDA_ASSIGN(state.leases, read_leases());
  REMUDA_ASSIGN(state.usage, read_usage());
  REMUDA_ASSIGN(state.spent, read_spent());
  REMUDA_ASSIGN(state.drains, read_drains());
  if (const std::string broken = check(state); !broken.empty()) return failed(damage_text(broken));
  return state;
}

std::string Store::damage_text(const std::string& why) const {
  return fmt::format("{} is damaged: {}; {}", path_, why, kIfDamaged);
}

Result<Job> Store::decode(int64_t id, std::string_view record) {
  const auto damaged = [&](const std::string& why) { return failed(damage_text(why)); };
  const std::string where = fmt::format("job {}", id);
  const auto json = parse_json(record, where);
  if (!json) return damaged(json.error().message);
  auto job = parse_job(*json, where);
  if (!job) return damaged(job.error().message);
  if (job->id != id) return damaged(fmt::format("{} calls itself {}", where, job->id));
  if (Json unknown = unknown_fields(*json); unknown.empty())
    unknown_.erase(id);
  else
    unknown_.insert_or_assign(id, std::move(unknown));
  return job;
}

Result<std::vector<Job>> Store::read_open() {
  std::vector<Job> jobs;
  std::map<int64_t, Decoded> decoded;
  REMUDA_ASSIGN(sqlite::Statement query,
                database_->prepare("SELECT id, record FROM job WHERE state <> 'ended' ORDER BY id"));
  for (;;) {
    REMUDA_ASSIGN(const bool found, query.step());
    if (!found) break;
    const int64_t id = query.integer(0);
    const std::string_view record = query.text(1);
    auto known = decoded_.extract(id);
    if (!known || known.mapped().record != record) {
      REMUDA_ASSIGN(Job job, decode(id, record));
      jobs.push_back(job);
      decoded.try_emplace(id, Decoded{std::string(record), std::move(job)});
    } else {
      jobs.push_back(known.mapped().job);
      decoded.insert(std::move(known));
    }
  }
  decoded_ = std::move(decoded);
  return jobs;
}

Result<void> Store::read_ended(const std::vector<int64_t>& with, std::vector<Job>& jobs) {
  std::set<int64_t> ids = named(jobs);
  ids.insert(with.begin(), with.end());
  for (const Job& job : jobs) ids.erase(job.id);
  for (const int64_t id : ids) {
    REMUDA_ASSIGN(auto job, find(id));
    if (job) jobs.push_back(std::move(*job));
  }
  std::ranges::sort(jobs, {}, &Job::id);
  return {};
}

Result<std::vector<Lease>> Store::read_leases() {
  std::vector<Lease> leases;
  REMUDA_ASSIGN(sqlite::Statement query,
                database_->prepare("SELECT job, device, share, since_s, until_s FROM lease ORDER BY job, device"));
  for (;;) {
    REMUDA_ASSIGN(const bool found, query.step());
    if (!found) return leases;
    leases.push_back({query.integer(0), printable(query.text(1)), query.real(2), query.real(3), query.real(4)});
  }
}

Result<std::vector<Usage>> Store::read_usage() {
  std::vector<Usage> usage;
  REMUDA_ASSIGN(sqlite::Statement query,
                database_->prepare("SELECT user, device_seconds, at_s FROM usage ORDER BY user"));
  for (;;) {
    REMUDA_ASSIGN(const bool found, query.step());
    if (!found) return usage;
    usage.push_back({printable(query.text(0)), query.real(1), query.real(2)});
  }
}

Result<std::vector<Spent>> Store::read_spent() {
  std::vector<Spent> spent;
  REMUDA_ASSIGN(sqlite::Statement query,
                database_->prepare("SELECT user, day, device_s FROM spent ORDER BY user, day"));
  for (;;) {
    REMUDA_ASSIGN(const bool found, query.step());
    if (!found) return spent;
    spent.push_back({printable(query.text(0)), query.integer(1), query.real(2)});
  }
}

Result<std::vector<Drain>> Store::read_drains() {
  std::vector<Drain> drains;
  REMUDA_ASSIGN(sqlite::Statement query,
                database_->prepare("SELECT device, reason, drained_by, since_s FROM drain ORDER BY device"));
  for (;;) {
    REMUDA_ASSIGN(const bool found, query.step());
    if (!found) return drains;
    drains.push_back({printable(query.text(0)), printable(query.text(1)), printable(query.text(2)), query.real(3)});
  }
}

Result<std::optional<Job>> Store::find(int64_t id) {
  REMUDA_ASSIGN(sqlite::Statement query, database_->prepare("SELECT record FROM job WHERE id = ?"));
  query.bind(1, id);
  REMUDA_ASSIGN(const bool found, query.step());
  if (!found) return std::nullopt;
  REMUDA_ASSIGN(Job job, decode(id, query.text(0)));
  return job;
}

Result<std::vector<Job>> Store::ended(int at_most, int64_t below) {
  std::vector<Job> jobs;
  REMUDA_ASSIGN(
      sqlite::Statement query,
      database_->prepare("SELECT id, record FROM job WHERE state = 'ended' AND id < ? ORDER BY id DESC LIMIT ?"));
  query.bind(1, below > 0 ? below : kLargestId + 1);
  query.bind(2, static_cast<int64_t>(at_most));
  for (;;) {
    REMUDA_ASSIGN(const bool found, query.step());
    if (!found) return jobs;
    if (auto job = decode(query.integer(0), query.text(1))) jobs.push_back(std::move(*job));  // the others can be read
  }
}

Result<void> Store::write(const PoolState& before, const PoolState& after, const std::vector<int64_t>& jobs) {
  auto written = write_jobs(before, after, jobs);
  if (!written) undone();
  REMUDA_TRY(written);
  REMUDA_TRY(write_leases(before, after));
  REMUDA_TRY(write_usage(before, after));
  REMUDA_TRY(write_spent(before, after));
  return write_drains(before, after);
}

/// Each record is parsed again, by the rules for reading, before anything is committed.
Result<std::string> Store::encode(const Job& job) const {
  Json json = to_json(job);
  if (const auto unknown = unknown_.find(job.id); unknown != unknown_.end()) json.merge_patch(unknown->second);
  std::string record = to_line(json);
  const std::string where = fmt::format("job {}", job.id);
  const auto refuse = [&](const std::string& why) {
    return failed(fmt::format("cannot record {}: {}; nothing was changed", where, why));
  };
  const auto read = parse_json(record, where);
  if (!read) return refuse(read.error().message);
  const auto back = parse_job(*read, where);
  if (!back) return refuse(back.error().message);
  if (*back != job) return refuse("it would be read otherwise than it is");
  return record;
}

Result<void> Store::write_jobs(const PoolState& before, const PoolState& after, const std::vector<int64_t>& jobs) {
  REMUDA_ASSIGN(sqlite::Statement put,
                database_->prepare("INSERT INTO job (id, state, record) VALUES (?, ?, ?) ON CONFLICT "
                                   "(id) DO UPDATE SET state = excluded.state, record = excluded.record"));
  constexpr int64_t kOften = 100;  // jobs that have come
  bool is_due = false;
  for (const int64_t id : jobs) {
    const Job& job = *after.find(id);
    REMUDA_ASSIGN(const std::string record, encode(job));
    put.bind(1, job.id);
    put.bind(2, std::string_view(to_string(job.state)));
    put.bind(3, std::string_view(record));
    REMUDA_TRY(put.run());
    if (job.state == JobState::ended) kept_.add(id, job.uid, record.size());
    is_due = is_due || (id % kOften == 0 && !before.find(id));
  }
  return is_due ? forget_ended(after) : Result<void>{};
}

Result<void> Store::write_leases(const PoolState& before, const PoolState& after) {
  REMUDA_ASSIGN(sqlite::Statement drop, database_->prepare("DELETE FROM lease WHERE job = ? AND device = ?"));
  REMUDA_ASSIGN(sqlite::Statement add,
                database_->prepare("INSERT INTO lease (job, device, share, since_s, until_s) VALUES "
                                   "(?, ?, ?, ?, ?)"));
  const auto stands_in = [](const Lease& lease, const std::vector<Lease>& leases) {
    return std::ranges::find(leases, lease) != leases.end();
  };
  for (const Lease& lease : before.leases) {
    if (stands_in(lease, after.leases)) continue;
    drop.bind(1, lease.job);
    drop.bind(2, std::string_view(lease.device));
    REMUDA_TRY(drop.run());
  }
  for (const Lease& lease : after.leases) {
    if (stands_in(lease, before.leases)) continue;
    add.bind(1, lease.job);
    add.bind(2, std::string_view(lease.device));
    add.bind(3, lease.share);
    add.bind(4, lease.since_s);
    add.bind(5, lease.until_s);
    REMUDA_TRY(add.run());
  }
  return {};
}

Result<void> Store::write_usage(const PoolState& before, const PoolState& after) {
  REMUDA_ASSIGN(sqlite::Statement put,
                database_->prepare("INSERT OR REPLACE INTO usage (user, device_seconds, at_s) VALUES "
                                   "(?, ?, ?)"));
  for (const Usage& usage : after.usage) {
    if (std::ranges::find(before.usage, usage) != before.usage.end()) continue;
    put.bind(1, std::string_view(usage.user));
    put.bind(2, usage.device_seconds);
    put.bind(3, usage.at_s);
    REMUDA_TRY(put.run());
  }
  return {};
}

/// Replaces all that the table has: a few rows, which change when a job ends.
Result<void> Store::write_spent(const PoolState& before, const PoolState& after) {
  const auto order = [](const Spent& one, const Spent& other) {
    return std::tie(one.user, one.day, one.device_s) < std::tie(other.user, other.day, other.device_s);
  };
  std::vector<Spent> gone, come;  // a row that differs is in both
  std::ranges::set_difference(before.spent, after.spent, std::back_inserter(gone), order);
  std::ranges::set_difference(after.spent, before.spent, std::back_inserter(come), order);
  for (const Spent& spent : gone) {
    REMUDA_ASSIGN(sqlite::Statement remove, database_->prepare("DELETE FROM spent WHERE user = ? AND day = ?"));
    remove.bind(1, std::string_view(spent.user));
    remove.bind(2, spent.day);
    REMUDA_TRY(remove.run());
  }
  for (const Spent& spent : come) {
    REMUDA_ASSIGN(sqlite::Statement add,
                  database_->prepare("INSERT INTO spent (user, day, device_s) VALUES (?, ?, ?)"));
    add.bind(1, std::string_view(spent.user));
    add.bind(2, spent.day);
    add.bind(3, spent.device_s);
    REMUDA_TRY(add.run());
  }
  return {};
}

Result<void> Store::write_drains(const PoolState& before, const PoolState& after) {
  if (before.drains == after.drains) return {};
  REMUDA_TRY(database_->execute("DELETE FROM drain"));
  REMUDA_ASSIGN(sqlite::Statement add,
                database_->prepare("INSERT INTO drain (device, reason, drained_by, since_s) VALUES (?, ?, ?, ?)"));
  for (const Drain& drain : after.drains) {
    add.bind(1, std::string_view(drain.device));
    add.bind(2, std::string_view(drain.reason));
    add.bind(3, std::string_view(drain.by));
    add.bind(4, drain.since_s);
    REMUDA_TRY(add.run());
  }
  return {};
}

/// Reads all records, unless no other process has written any since.
Result<void> Store::read_kept() {
  REMUDA_ASSIGN(const int64_t now, version());
  if (kept_version_ == now) return {};
  kept_ = {};
  REMUDA_ASSIGN(sqlite::Statement query,
                database_->prepare("SELECT id, coalesce(iif(json_valid(record), json_extract(record, '$.uid'), 0), 0), "
                                   "length(CAST(record AS BLOB)) FROM job WHERE state = 'ended'"));
  for (;;) {
    REMUDA_ASSIGN(const bool found, query.step());
    if (!found) break;
    kept_.add(query.integer(0), static_cast<int>(query.integer(1)), static_cast<size_t>(query.integer(2)));
  }
  kept_version_ = now;
  return {};
}

Result<void> Store::forget_ended(const PoolState& needed) {
  REMUDA_TRY(read_kept());
  REMUDA_ASSIGN(sqlite::Statement drop, database_->prepare("DELETE FROM job WHERE id = ? AND state = 'ended'"));
  for (const int64_t id : kept_.take_excess([&needed](int64_t job) { return needed.find(job) != nullptr; })) {
    drop.bind(1, id);
    REMUDA_TRY(drop.run());
  }
  return {};
}

}  // namespace remuda::pool
