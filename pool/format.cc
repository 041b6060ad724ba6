#include "pool/format.h"

#include <array>
#include <fmt/format.h>

namespace remuda::pool {
namespace {

constexpr int kApplication = 0x52656d75;  // "Remu"

// A job is stored as JSON; the other columns are those that queries use. AUTOINCREMENT: no id is ever given twice.
constexpr const char* kFirstSchema = R"(
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

/// A view could be without end.
Result<void> check_tables(sqlite::Database& database, const std::string& path) {
  REMUDA_ASSIGN(const int64_t tables,
                database.integer("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('job', 'lease', "
                                 "'usage', 'sqlite_sequence')"));
  if (tables == 4) return {};
  return failed(fmt::format("{} is damaged: it lacks tables; {}", path, kIfDamaged));
}

/// A trigger of whoever could write the pool once would go on changing it.
Result<void> check_schema(sqlite::Database& database, const std::string& path) {
  REMUDA_ASSIGN(const int64_t others,
                database.integer("SELECT count(*) FROM sqlite_schema WHERE type NOT IN ('table', 'index')"));
  if (others == 0) return {};
  return failed(fmt::format("{} is damaged: it has triggers or views; {}", path, kIfDamaged));
}

Result<int64_t> format_of(const sqlite::Database& database) { return database.integer("PRAGMA user_version"); }

tl::unexpected<Error> is_too_new(const std::string& path, int64_t format, int64_t newest) {
  return failed(fmt::format(
      "{} is a pool of format {}, and this remuda knows those up to {}: this remuda is too old; use the one "
      "that made it, or move it away to begin a new one",
      path, format, newest));
}

tl::unexpected<Error> is_too_old(const std::string& path, int64_t format, int64_t newest) {
  return failed(
      fmt::format("{} is a pool of format {}, and this remuda needs {}: the pool is too old; move it away to begin a "
                  "new one",
                  path, format, newest));
}

}  // namespace

Migrations migrations() {
  static constexpr std::array kMigrations{R"(
    CREATE TABLE drain (
      device TEXT PRIMARY KEY,
      reason TEXT NOT NULL,
      drained_by TEXT NOT NULL,
      since_s REAL NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE spent (
      user TEXT NOT NULL,
      day INTEGER NOT NULL,
      device_s REAL NOT NULL,
      PRIMARY KEY (user, day)
    ) STRICT, WITHOUT ROWID;
  )"};
  return kMigrations;
}

int64_t newest_format(Migrations migrations) { return static_cast<int64_t>(migrations.size()) + 1; }

std::string first_format() {
  return fmt::format("PRAGMA application_id = {}; PRAGMA user_version = 1; {}", kApplication, kFirstSchema);
}

Result<void> migrate(sqlite::Database& database, const std::string& path, Migrations migrations) {
  REMUDA_ASSIGN(const int64_t application, database.integer("PRAGMA application_id"));
  if (application != kApplication)
    return failed(fmt::format("{} is no pool of remuda; move it away to begin a new one", path));
  REMUDA_TRY(check_schema(database, path));
  REMUDA_ASSIGN(const int64_t seen, format_of(database));
  if (seen == newest_format(migrations)) return check_tables(database, path);
  if (seen > newest_format(migrations)) return check_format(database, path, migrations);
  REMUDA_ASSIGN(auto transaction, sqlite::Transaction::writing(database));
  REMUDA_ASSIGN(const int64_t format, format_of(database));  // another program may have migrated it meanwhile
  if (format < 1) return is_too_old(path, format, newest_format(migrations));
  for (int64_t next = format; next < newest_format(migrations); ++next)
    REMUDA_TRY(database.execute(migrations[static_cast<size_t>(next - 1)]));
  if (format < newest_format(migrations))
    REMUDA_TRY(database.execute(fmt::format("PRAGMA user_version = {}", newest_format(migrations)).c_str()));
  return transaction.commit();
}

Result<void> check_format(const sqlite::Database& database, const std::string& path, Migrations migrations) {
  REMUDA_ASSIGN(const int64_t format, format_of(database));
  const int64_t newest = newest_format(migrations);
  if (format > newest) return is_too_new(path, format, newest);
  if (format < newest) return is_too_old(path, format, newest);
  return {};
}

}  // namespace remuda::pool
