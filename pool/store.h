// Store: reads and writes the tables of a pool. Internal to pool.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pool/files.h"
#include "pool/kept_records.h"
#include "pool/state.h"
#include "sqlite/database.h"

namespace remuda::pool {

class Store {
 public:
  /// Opens or makes the file in an existing folder.
  static Result<Store> open(const std::string& folder);

  sqlite::Database& database() { return *database_; }
  const std::string& path() const { return path_; }

  /// Grows with each change by another connection. To be called within a transaction.
  Result<int64_t> version() { return database_->integer("PRAGMA data_version"); }
  /// `with`: ended jobs to read, too. To be called within a transaction. An error where the state breaks an invariant,
  /// or another program has given the file a newer format.
  Result<PoolState> read(const std::vector<int64_t>& with);
  /// Writes what differs; refuses a state that read() would not accept. To be called within a transaction for writing
  /// that has read `before`. `jobs`: those that differ, as comparing all of a long queue again takes long.
  Result<void> write(const PoolState& before, const PoolState& after, const std::vector<int64_t>& jobs);

  /// What was written within the transaction is not in the file.
  void undone() { kept_version_.reset(); }

  /// As Pool::set_aside(). To be called within a transaction for writing.
  Result<std::vector<std::string>> set_aside(double now_s);

  Result<std::optional<Job>> find(int64_t id);
  Result<std::vector<Job>> ended(int at_most, int64_t below);

 private:
  Store(std::string path, std::unique_ptr<sqlite::Database> database)
      : path_(std::move(path)), database_(std::move(database)) {}

  struct Unread {
    int64_t id;
    std::string record, why;
  };
  Result<std::vector<Unread>> find_unread();
  Result<std::string> set_one_aside(const Folder& folder, const Unread& unread, double now_s);
  std::string damage_text(const std::string& why) const;
  Result<Job> decode(int64_t id, std::string_view record);
  Result<std::string> encode(const Job& job) const;
  Result<std::vector<Job>> read_open();
  Result<void> read_ended(const std::vector<int64_t>& with, std::vector<Job>& jobs);
  Result<std::vector<Lease>> read_leases();
  Result<std::vector<Usage>> read_usage();
  Result<std::vector<Spent>> read_spent();
  Result<std::vector<Drain>> read_drains();
  Result<void> write_jobs(const PoolState& before, const PoolState& after, const std::vector<int64_t>& jobs);
  Result<void> write_leases(const PoolState& before, const PoolState& after);
  Result<void> write_usage(const PoolState& before, const PoolState& after);
  Result<void> write_spent(const PoolState& before, const PoolState& after);
  Result<void> write_drains(const PoolState& before, const PoolState& after);
  Result<void> forget_ended(const PoolState& needed);
  Result<void> read_kept();

  struct Decoded {
    std::string record;
    Job job;
  };
  std::string path_;
  std::unique_ptr<sqlite::Database> database_;
  std::map<int64_t, Json> unknown_;  ///< fields of a newer program in the records that were read; they are kept
  KeptRecords kept_;                 ///< as `kept_version_` has them, and what was written here since
  std::optional<int64_t> kept_version_;
  std::map<int64_t, Decoded> decoded_;  ///< open jobs as they were read last: most have not changed since
};

}  // namespace remuda::pool
