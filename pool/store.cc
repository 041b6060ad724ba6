#include "pool/store.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <set>
#include <unistd.h>

#include "base/check.h"
#include "base/file.h"
#include "base/text.h"
#include "pool/files.h"
#include "pool/transitions.h"

namespace remuda::pool {
namespace {

using sqlite::Database;
using sqlite::Statement;

constexpr int kApplication = 0x52656d75;  // "Remu"

// A job is its JSON; beside it stands what queries ask for. AUTOINCREMENT: no id is ever given twice.
constexpr const char* kSchema = R"(
  CREATE TABLE job (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'ended')),
    record TEXT NOT NULL
  ) STRICT;
  CREATE INDEX job_open ON job (id) WHERE state <> 'ended';
  CREATE TABLE lease (
    job INTEGER NOT NULL REFERENCES job (id),
    device TEXT NOT NULL,
    share REAL NOT NULL CHECK (share > 0 AND share <= 1),
    since_s REAL NOT NULL,
    until_s REAL NOT NULL,
    PRIMARY KEY (job, device)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE usage (
    user TEXT PRIMARY KEY,
    device_seconds REAL NOT NULL,
    at_s REAL NOT NULL
  ) STRICT, WITHOUT ROWID;
)";

Result<std::string> new_file() {
  return pool::sqlite::Database::image(
      fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}; {}", kApplication, Store::kFormat, kSchema)
          .c_str());
}

Result<void> create_if_absent(const std::string& path) {
  if (::access(path.c_str(), F_OK) == 0 || errno != ENOENT) return {};
  REMUDA_ASSIGN(const std::string content, new_file());
  return create_file(path, content);
}

Result<void> check_format(const pool::sqlite::Database& database, const std::string& path) {
  REMUDA_ASSIGN(const int64_t application, database.integer("PRAGMA application_id"));
  if (application != kApplication)
    return failed(fmt::format("{} is no pool of remuda; move it away to begin a new one", path));
  REMUDA_ASSIGN(const int64_t format, database.integer("PRAGMA user_version"));
  if (format == Store::kFormat) return {};
  return failed(
      fmt::format("{} is a pool of format {}; this remuda knows format {}: use the remuda that made it, or move "
                  "it away to begin a new one",
                  path, format, Store::kFormat));
}

/// The jobs that waiting ones name.
std::set<int64_t> named(const std::vector<Job>& jobs) {
  std::set<int64_t> ids;
  for (const Job& job : jobs)
    if (job.state == JobState::waiting) ids.insert(job.after.begin(), job.after.end());
  return ids;
}

}  // namespace

Result<Store> Store::open(const std::string& folder) {
  const std::string path = folder + "/pool.db";
  REMUDA_TRY(create_if_absent(path));
  // SQLite would open what it may not write for reading, and a folder with a sentence of its own.
  const Fd writable(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!writable) return failed(fmt::format("cannot write {}: {}", path, errno_text(errno)));
  REMUDA_ASSIGN(auto database, pool::sqlite::Database::open(path));
  REMUDA_TRY(check_format(*database, path));
  for (const char* beside : {"-wal", "-shm"}) REMUDA_TRY(share_with_group(path + beside, folder));
  return Store(path, std::move(database));
}

Result<PoolState> Store::read(const std::vector<int64_t>& with) {
  PoolState state;
  REMUDA_ASSIGN(const int64_t last, database_->integer("SELECT seq FROM sqlite_sequence WHERE name = 'job'"));
  state.next_job = last + 1;
  REMUDA_ASSIGN(state.jobs, read_open());
  REMUDA_TRY(read_ended(with, state.jobs));
  REMUDA_ASSIGN(state.leases, read_leases());
  REMUDA_ASSIGN(state.usage, read_usage());
  if (const std::string broken = check(state); !broken.empty())
    return failed(fmt::format("{} is damaged: {}; end its jobs, then move it away to begin anew", path_, broken));
  return state;
}

Result<Job> Store::decode(int64_t id, std::string_view record) {
  const auto damaged = [&](const std::string& why) {
    return failed(fmt::format("{} is damaged: {}; end its jobs, then move it away to begin anew", path_, why));
  };
  const std::string where = fmt::format("job {}", id);
  const auto json = parse_json(record, where);
  if (!json) return damaged(json.error().message);
  auto job = parse_job(*json, where);
  if (!job) return damaged(job.error().message);
  if (job->id != id) return damaged(fmt::format("{} calls itself {}", where, job->id));
  return job;
}

Result<std::vector<Job>> Store::read_open() {
  std::vector<Job> jobs;
  std::map<int64_t, Decoded> decoded;
  REMUDA_ASSIGN(pool::sqlite::Statement query,
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
  REMUDA_ASSIGN(pool::sqlite::Statement query,
                database_->prepare("SELECT job, device, share, since_s, until_s FROM lease ORDER BY job, device"));
  for (;;) {
    REMUDA_ASSIGN(const bool found, query.step());
    if (!found) return leases;
    leases.push_back({query.integer(0), printable(query.text(1)), query.real(2), query.real(3), query.real(4)});
  }
}

Result<std::vector<Usage>> Store::read_usage() {
  std::vector<Usage> usage;
  REMUDA_ASSIGN(pool::sqlite::Statement query,
                database_->prepare("SELECT user, device_seconds, at_s FROM usage ORDER BY user"));
  for (;;) {
    REMUDA_ASSIGN(const bool found, query.step());
    if (!found) return usage;
    usage.push_back({printable(query.text(0)), query.real(1), query.real(2)});
  }
}

Result<std::optional<Job>> Store::find(int64_t id) {
  REMUDA_ASSIGN(pool::sqlite::Statement query, database_->prepare("SELECT record FROM job WHERE id = ?"));
  query.bind(1, id);
  REMUDA_ASSIGN(const bool found, query.step());
  if (!found) return std::nullopt;
  REMUDA_ASSIGN(Job job, decode(id, query.text(0)));
  return job;
}

Result<std::vector<Job>> Store::ended(int at_most) {
  std::vector<Job> jobs;
  REMUDA_ASSIGN(pool::sqlite::Statement query,
                database_->prepare("SELECT id, record FROM job WHERE state = 'ended' ORDER BY id DESC LIMIT ?"));
  query.bind(1, static_cast<int64_t>(at_most));
  for (;;) {
    REMUDA_ASSIGN(const bool found, query.step());
    if (!found) return jobs;
    REMUDA_ASSIGN(Job job, decode(query.integer(0), query.text(1)));
    jobs.push_back(std::move(job));
  }
}

Result<void> Store::write(const PoolState& before, const PoolState& after) {
  REMUDA_TRY(write_jobs(before, after));
  REMUDA_TRY(write_leases(before, after));
  return write_usage(before, after);
}

Result<void> Store::write_jobs(const PoolState& before, const PoolState& after) {
  REMUDA_ASSIGN(pool::sqlite::Statement put,
                database_->prepare("INSERT INTO job (id, state, record) VALUES (?, ?, ?) ON CONFLICT "
                                   "(id) DO UPDATE SET state = excluded.state, record = excluded.record"));
  for (const Job& job : before.jobs) REMUDA_CHECK(after.find(job.id), "no transition loses a job");
  for (const Job& job : after.jobs) {
    const Job* known = before.find(job.id);
    if (known && *known == job) continue;
    const std::string record = to_line(to_json(job));
    put.bind(1, job.id);
    put.bind(2, std::string_view(to_string(job.state)));
    put.bind(3, std::string_view(record));
    REMUDA_TRY(put.run());
    if (!known && job.id % 100 == 0) REMUDA_TRY(forget_ended(after));
  }
  return {};
}

Result<void> Store::write_leases(const PoolState& before, const PoolState& after) {
  REMUDA_ASSIGN(pool::sqlite::Statement drop, database_->prepare("DELETE FROM lease WHERE job = ? AND device = ?"));
  REMUDA_ASSIGN(pool::sqlite::Statement add,
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
  REMUDA_ASSIGN(pool::sqlite::Statement put,
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

Result<void> Store::forget_ended(const PoolState& kept) {
  REMUDA_ASSIGN(pool::sqlite::Statement query,
                database_->prepare("SELECT id FROM job WHERE state = 'ended' ORDER BY id DESC "
                                   "LIMIT -1 OFFSET ?"));
  query.bind(1, kMostEnded);
  std::vector<int64_t> old;
  for (;;) {
    REMUDA_ASSIGN(const bool found, query.step());
    if (!found) break;
    if (!kept.find(query.integer(0))) old.push_back(query.integer(0));
  }
  REMUDA_ASSIGN(pool::sqlite::Statement drop, database_->prepare("DELETE FROM job WHERE id = ?"));
  for (const int64_t id : old) {
    drop.bind(1, id);
    REMUDA_TRY(drop.run());
  }
  return {};
}

}  // namespace remuda::pool
