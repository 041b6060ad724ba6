#include "agent/partition_marks.h"

#include <cerrno>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "process/process_id.h"
#include "share/mps_folder.h"

namespace remuda::agent {
namespace {

namespace fs = std::filesystem;

std::string path_of(const std::string& folder, const std::string& uuid) {
  return folder + "/" + share::device_folder_name(uuid);
}

}  // namespace

Result<void> mark_partition(const std::string& folder, const std::string& uuid) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return failed(fmt::format("cannot make the folder {}: {}", folder, errno_text(errno)));
  REMUDA_ASSIGN(PendingFile file, PendingFile::create(path_of(folder, uuid)));
  return file.commit(process::own_process_id().boot_id + "\n" + uuid + "\n");
}

void unmark_partition(const std::string& folder, const std::string& uuid) {
  std::error_code ignored;
  fs::remove(path_of(folder, uuid), ignored);
}

void unmark_lost_partition(const std::string& folder, const std::string& uuid) {
  constexpr double kOld_s = 120;
  struct stat info{};
  const bool is_there = ::stat(path_of(folder, uuid).c_str(), &info) == 0;
  if (is_there && wall_s() - static_cast<double>(info.st_mtim.tv_sec) >= kOld_s) unmark_partition(folder, uuid);
}

std::set<std::string> marked_partitions(const std::string& folder) {
  std::set<std::string> uuids;
  const std::string of_this_boot = process::own_process_id().boot_id + "\n";
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().string().starts_with('.')) continue;  // partition_intent.h
    const auto text = read_text(entry->path().string());
    if (text && text->starts_with(of_this_boot) && text->ends_with('\n'))
      uuids.insert(text->substr(of_this_boot.size(), text->size() - of_this_boot.size() - 1));
  }
  return uuids;
}

}  // namespace remuda::agent
