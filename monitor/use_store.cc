#include "monitor/use_store.h"

#include <fmt/format.h>

#include "base/json.h"
#include "device/fields.h"
#include "monitor/file.h"

namespace remuda::monitor {
namespace {

Result<LeaseUse> parse(std::string_view record, const std::string& what) {
  REMUDA_ASSIGN(const Json json, parse_json(std::string(record), what));
  LeaseUse use;
  REMUDA_TRY(fields::read(json, what, use));
  return use;
}

}  // namespace

Result<UseStore> UseStore::open(const std::string& folder) {
  REMUDA_ASSIGN(auto database, open_file(folder));
  return UseStore(std::move(database));
}

Result<void> UseStore::write(const std::vector<LeaseUse>& uses) {
  if (uses.empty()) return {};
  REMUDA_ASSIGN(auto transaction, sqlite::Transaction::writing(*database_));
  REMUDA_ASSIGN(
      sqlite::Statement put,
      database_->prepare("INSERT INTO use (job, device, since_s, last_s, record) VALUES (?, ?, ?, ?, ?) ON CONFLICT "
                         "(job, device, since_s) DO UPDATE SET last_s = excluded.last_s, record = excluded.record"));
  for (const LeaseUse& use : uses) {
    const std::string record = to_line(fields::write(use));
    put.bind(1, use.job);
    put.bind(2, use.device);
    put.bind(3, use.since_s);
    put.bind(4, use.last_s);
    put.bind(5, record);
    REMUDA_TRY(put.run());
  }
  REMUDA_ASSIGN(sqlite::Statement drop,
                database_->prepare(
                    "DELETE FROM use WHERE rowid IN (SELECT rowid FROM use ORDER BY last_s DESC LIMIT -1 OFFSET ?)"));
  drop.bind(1, kMostKept);
  REMUDA_TRY(drop.run());
  return transaction.commit();
}

Result<std::vector<LeaseUse>> UseStore::read(double since_s) {
  REMUDA_ASSIGN(sqlite::Statement query,
                database_->prepare("SELECT job, device, record FROM use WHERE last_s >= ? ORDER BY last_s DESC"));
  query.bind(1, since_s);
  std::vector<LeaseUse> uses;
  int unreadable = 0;
  std::string first;
  for (;;) {
    REMUDA_ASSIGN(const bool is_row, query.step());
    if (!is_row) break;
    auto use = parse(query.text(2), fmt::format("the use of {} by job {}", query.text(1), query.integer(0)));
    if (use)
      uses.push_back(std::move(*use));
    else if (unreadable++ == 0)
      first = use.error().message;
  }
  left_out_ = unreadable == 0 ? "" : fmt::format("{} records of leases are left out: {}", unreadable, first);
  return uses;
}

}  // namespace remuda::monitor
