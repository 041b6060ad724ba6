#include "agent/partition_intent.h"

#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "device/fields.h"
#include "process/process_id.h"
#include "share/mps_folder.h"

namespace remuda::agent {
namespace {

/// As the file has it.
struct IntentRecord {
  std::string boot;
  PartitionChange::What what = PartitionChange::What::make;
  std::string gpu, profile, partition;
  std::vector<int64_t> before;
  int64_t instance = -1;

  static constexpr const char* kName = "partition_intent";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("boot", self.boot, "the kernel's id of the boot", true);
    visit("what", self.what, "make or remove", true);
    visit("gpu", self.gpu, "UUID of the GPU", true);
    visit("profile", self.profile, "size of the new partition");
    visit("partition", self.partition, "UUID of the one that goes");
    visit("before", self.before, "numbers of the instances that the GPU had before one is made");
    visit("instance", self.instance, "number of the instance that goes, or -1");
  }
};

/// Of a GPU, with its lock. No name of a mark begins so.
std::string folder_of(const std::string& folder, const std::string& gpu) {
  return folder + "/." + share::device_folder_name(gpu);
}
std::string intent_path(const std::string& gpu_folder) { return gpu_folder + "/change"; }

Result<void> make_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return failed(fmt::format("cannot make the folder {}: {}", folder, errno_text(errno)));
}

Fd open_folder(const std::string& folder) {
  return Fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool is_locked(const std::string& gpu_folder) {
  const Fd fd = open_folder(gpu_folder);
  return fd && ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::optional<PartitionIntent> read_intent_in(const std::string& gpu_folder) {
  const std::string path = intent_path(gpu_folder);
  const auto text = read_text(path);
  const auto json = text ? parse_json(*text, path) : tl::unexpected(text.error());
  IntentRecord record;
  if (!json || !fields::read(*json, path, record) || record.boot != process::own_process_id().boot_id)
    return std::nullopt;
  PartitionIntent intent{{record.what, record.gpu, record.profile, record.partition}, {}, {}};
  for (const int64_t number : record.before) intent.before.insert(static_cast<unsigned>(number));
  if (record.instance >= 0) intent.instance = static_cast<unsigned>(record.instance);
  return intent;
}

}  // namespace

Result<Fd> lock_partitions(const std::string& folder, const std::string& gpu) {
  const std::string path = folder_of(folder, gpu);
  REMUDA_TRY(make_folder(folder));
  REMUDA_TRY(make_folder(path));
  Fd fd = open_folder(path);
  if (!fd) return failed(fmt::format("cannot open the folder {}: {}", path, errno_text(errno)));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno == EWOULDBLOCK) return failed("another process is changing partitions of " + gpu);
  return failed(fmt::format("cannot lock {}: {}", path, errno_text(errno)));
}

Result<void> write_intent(const std::string& folder, const PartitionIntent& intent) {
  const PartitionChange& change = intent.change;
  const IntentRecord record{process::own_process_id().boot_id,
                            change.what,
                            change.gpu,
                            change.profile,
                            change.partition,
                            {intent.before.begin(), intent.before.end()},
                            intent.instance ? int64_t{*intent.instance} : -1};
  REMUDA_ASSIGN(PendingFile file, PendingFile::create(intent_path(folder_of(folder, change.gpu))));
  return file.commit(to_line(fields::write(record)) + "\n");
}

std::optional<PartitionIntent> read_intent(const std::string& folder, const std::string& gpu) {
  return read_intent_in(folder_of(folder, gpu));
}

void forget_intent(const std::string& folder, const std::string& gpu) {
  std::error_code ignored;
  std::filesystem::remove(intent_path(folder_of(folder, gpu)), ignored);
}

std::vector<LeftChange> left_changes(const std::string& folder) {
  std::vector<LeftChange> left;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (!entry->path().filename().string().starts_with('.')) continue;
    const bool is_at_work = is_locked(entry->path().string());  // first: its end is that the intent goes
    if (auto intent = read_intent_in(entry->path().string())) left.push_back({std::move(intent->change), is_at_work});
  }
  return left;
}

}  // namespace remuda::agent
