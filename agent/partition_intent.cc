#include "agent/partition_intent.h"

#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <vector>

#include "device/fields.h"
#include "process/process_id.h"

namespace remuda::agent {
namespace {

/// As the file has it.
struct IntentRecord {
  std::string boot;
  PartitionChange::What what = PartitionChange::What::make;
  std::string gpu, profile, partition;
  std::vector<int64_t> before;

  static constexpr const char* kName = "partition_intent";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("boot", self.boot, "the kernel's id of the boot", true);
    visit("what", self.what, "make or remove", true);
    visit("gpu", self.gpu, "UUID of the GPU", true);
    visit("profile", self.profile, "size of the new partition");
    visit("partition", self.partition, "UUID of the one that goes");
    visit("before", self.before, "numbers of the GPU's instances that stay as they are");
  }
};

/// No name of a mark begins so.
std::string intent_path(const std::string& folder) { return folder + "/.change"; }

Fd open_folder(const std::string& folder) {
  return Fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

}  // namespace

Result<Fd> lock_partitions(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return failed(fmt::format("cannot make the folder {}: {}", folder, errno_text(errno)));
  Fd fd = open_folder(folder);
  if (!fd) return failed(fmt::format("cannot open the folder {}: {}", folder, errno_text(errno)));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno == EWOULDBLOCK) return failed("another process is changing partitions");
  return failed(fmt::format("cannot lock {}: {}", folder, errno_text(errno)));
}

bool are_partitions_locked(const std::string& folder) {
  const Fd fd = open_folder(folder);
  return fd && ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

Result<void> write_intent(const std::string& folder, const PartitionIntent& intent) {
  const PartitionChange& change = intent.change;
  const IntentRecord record{
      process::own_process_id().boot_id,           change.what, change.gpu, change.profile, change.partition,
      {intent.before.begin(), intent.before.end()}};
  REMUDA_ASSIGN(PendingFile file, PendingFile::create(intent_path(folder)));
  return file.commit(to_line(fields::write(record)) + "\n");
}

std::optional<PartitionIntent> read_intent(const std::string& folder) {
  const std::string path = intent_path(folder);
  const auto text = read_text(path);
  const auto json = text ? parse_json(*text, path) : tl::unexpected(text.error());
  IntentRecord record;
  if (!json || !fields::read(*json, path, record) || record.boot != process::own_process_id().boot_id)
    return std::nullopt;
  PartitionIntent intent{{record.what, record.gpu, record.profile, record.partition}, {}};
  for (const int64_t number : record.before) intent.before.insert(static_cast<unsigned>(number));
  return intent;
}

void forget_intent(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::remove(intent_path(folder), ignored);
}

}  // namespace remuda::agent
