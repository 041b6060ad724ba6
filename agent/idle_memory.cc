#include "agent/idle_memory.h"

#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "process/process_id.h"

namespace remuda::agent {
namespace {

constexpr const char *kBoot = "boot", *kBytes = "bytes";
constexpr size_t kLongestFile = 1 << 20;

}  // namespace

IdleMemory::IdleMemory(std::string file) : file_(std::move(file)) {
  if (!file_.empty()) read();
}

void IdleMemory::read() {
  const auto text = read_text(file_, kLongestFile);
  const auto json = text ? parse_json(*text, file_) : tl::unexpected(text.error());
  if (!json || !json->is_object() || json->value(kBoot, Json()) != process::own_process_id().boot_id) return;
  const Json bytes = json->value(kBytes, Json::object());
  for (const auto& [device, least] : bytes.items())
    if (least.is_number_integer()) least_[device] = least.get<int64_t>();
}

std::optional<int64_t> IdleMemory::of(const std::string& device) const {
  const auto found = least_.find(device);
  return found == least_.end() ? std::nullopt : std::optional(found->second);
}

void IdleMemory::note(const std::string& device, int64_t bytes) {
  const auto [found, is_new] = least_.try_emplace(device, bytes);
  if (!is_new && bytes >= found->second) return;
  found->second = bytes;
  if (!file_.empty()) write();
}

void IdleMemory::write() const {
  Json bytes = Json::object();
  for (const auto& [device, least] : least_) bytes[device] = least;
  auto file = PendingFile::create(file_);
  if (file) (void)file->commit(to_pretty(Json{{kBoot, process::own_process_id().boot_id}, {kBytes, bytes}}));
}

}  // namespace remuda::agent
