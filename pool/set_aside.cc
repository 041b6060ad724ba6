// Records that cannot be read, as of a disk that has lost a part of one: they are put aside, and all else goes on.
#include <filesystem>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "base/text.h"
#include "pool/files.h"
#include "pool/store.h"

namespace remuda::pool {

/// Of what a pool cannot do without: the jobs that have not ended, and those that they wait for.
Result<std::vector<Store::Unread>> Store::find_unread() {
  std::vector<Unread> unread;
  std::vector<Job> open;
  REMUDA_ASSIGN(sqlite::Statement query,
                database_->prepare("SELECT id, record FROM job WHERE state <> 'ended' ORDER BY id"));
  for (;;) {
    REMUDA_ASSIGN(const bool found, query.step());
    if (!found) break;
    const int64_t id = query.integer(0);
    if (auto job = decode(id, query.text(1)))
      open.push_back(std::move(*job));
    else
      unread.push_back({id, std::string(query.text(1)), job.error().message});
  }
  std::set<int64_t> awaited;
  for (const Job& job : open)
    for (const int64_t id : awaited_by(job)) awaited.insert(id);
  for (const int64_t id : awaited) {
    REMUDA_ASSIGN(sqlite::Statement one, database_->prepare("SELECT record FROM job WHERE id = ? AND state = 'ended'"));
    one.bind(1, id);
    REMUDA_ASSIGN(const bool found, one.step());
    if (!found) continue;
    if (const auto job = decode(id, one.text(0)); !job)
      unread.push_back({id, std::string(one.text(0)), job.error().message});
  }
  return unread;
}

/// One that is not there: an earlier pool of this folder may have had such a job.
std::string free_name(const Folder& folder, int64_t job) {
  std::string name = fmt::format("unread-{}", job);
  for (int number = 2; std::filesystem::exists(folder.path_of(name)); ++number)
    name = fmt::format("unread-{}-{}", job, number);
  return name;
}

Result<std::string> Store::set_one_aside(const Folder& folder, const Unread& unread, double now_s) {
  const std::string file = free_name(folder, unread.id);
  REMUDA_TRY(create_file(folder, file, unread.record));
  REMUDA_ASSIGN(const std::vector<Lease> leases, read_leases());
  for (const Lease& lease : leases) {
    if (lease.job != unread.id) continue;
    REMUDA_ASSIGN(sqlite::Statement drain,
                  database_->prepare("INSERT OR IGNORE INTO drain (device, reason, drained_by, "
                                     "since_s) VALUES (?, ?, 'remuda', ?)"));
    const std::string reason =
        fmt::format("job {}, whose record cannot be read, had it, and may have it still", unread.id);
    drain.bind(1, std::string_view(lease.device));
    drain.bind(2, std::string_view(reason));
    drain.bind(3, now_s);
    REMUDA_TRY(drain.run());
  }
  for (const char* statement : {"DELETE FROM lease WHERE job = ?", "DELETE FROM job WHERE id = ?"}) {
    REMUDA_ASSIGN(sqlite::Statement drop, database_->prepare(statement));
    drop.bind(1, unread.id);
    REMUDA_TRY(drop.run());
  }
  return fmt::format("the record of job {} cannot be read and was put aside, as {}; its devices are drained ({})",
                     unread.id, folder.path_of(file), unread.why);
}

Result<std::vector<std::string>> Store::set_aside(double now_s) {
  std::vector<std::string> sentences;
  REMUDA_ASSIGN(const std::vector<Unread> found, find_unread());
  if (found.empty()) return sentences;
  REMUDA_ASSIGN(const Folder folder, open_pool_folder(std::filesystem::path(path_).parent_path().string()));
  for (const Unread& unread : found) {
    REMUDA_ASSIGN(std::string sentence, set_one_aside(folder, unread, now_s));
    sentences.push_back(std::move(sentence));
  }
  decoded_.clear();
  return sentences;
}

}  // namespace remuda::pool
