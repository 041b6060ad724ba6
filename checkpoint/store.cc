#include "checkpoint/store.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <ranges>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>
#include <xxhash.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/read_all.h"
#include "checkpoint/checked_file.h"

namespace remuda::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr const char* kManifest = "manifest.json";

std::string manifest_of(const Stored& stored) { return (fs::path(stored.folder) / kManifest).string(); }

std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  int64_t step = 0;
  const char* const end = name.data() + name.size();
  const auto [last, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (error != std::errc() || last != end || step < 0) return std::nullopt;
  return step;
}

/// With a manifest or without, in the order of their steps.
Result<std::vector<Stored>> all_in(const std::string& folder) {
  std::vector<Stored> all;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    std::error_code ignored;
    const auto step = step_of(entry->path().filename().string());
    if (step && entry->is_directory(ignored)) all.push_back({*step, entry->path().string()});
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return usage_error(fmt::format("cannot read the folder {}: {}", folder, error.message()));
  std::ranges::sort(all, {}, &Stored::step);
  return all;
}

bool has_manifest(const Stored& stored) {
  std::error_code ignored;
  return fs::exists(manifest_of(stored), ignored);
}

/// Puts the names in a folder on the disk, as far as its file system can.
void sync_folder(const fs::path& folder) {
  const Fd fd(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) ::fsync(fd.get());
}

/// The manifest first: what is left of it then is no checkpoint. Of a link to one that lies elsewhere only the link.
Result<void> remove(const Stored& stored) {
  std::error_code error, ignored;
  if (!fs::is_symlink(stored.folder, ignored)) fs::remove(manifest_of(stored), error);
  if (!error) fs::remove_all(stored.folder, error);
  if (error) return failed(fmt::format("cannot remove the old checkpoint {}: {}", stored.folder, error.message()));
  return {};
}

Result<uint64_t> sum_of_whole(const std::string& path) {
  REMUDA_ASSIGN(const Fd fd, open_for_reading(path));
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> sum(XXH3_createState(), XXH3_freeState);
  REMUDA_CHECK(sum, "there is memory for a sum");
  XXH3_64bits_reset(sum.get());
  std::vector<std::byte> piece(1 << 20);
  for (;;) {
    const ssize_t got = ::read(fd.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return usage_error(fmt::format("cannot read {}: {}", path, errno_text(errno)));
    if (got == 0) return XXH3_64bits_digest(sum.get());
    XXH3_64bits_update(sum.get(), piece.data(), size_t(got));
  }
}

/// Of a manifest of version 1, that a file is what that says.
Result<void> check_whole(const CheckedFile& file, uint64_t wanted) {
  REMUDA_ASSIGN(const uint64_t sum, sum_of_whole(file.path()));
  if (sum == wanted) return {};
  return usage_error(fmt::format("{} is damaged: its sum is {:016x} in place of {:016x}", file.path(), sum, wanted));
}

}  // namespace

Result<std::vector<Stored>> stored_in(const std::string& folder) {
  REMUDA_ASSIGN(std::vector<Stored> all, all_in(folder));
  std::erase_if(all, [](const Stored& one) { return !has_manifest(one); });
  return all;
}

Result<Manifest> read_manifest(const Stored& stored) {
  constexpr size_t kLongest = 256 << 20;
  REMUDA_ASSIGN(const Fd fd, open_for_reading(manifest_of(stored)));
  REMUDA_ASSIGN(const std::string text, read_all(fd.get(), manifest_of(stored), kLongest, 0));
  REMUDA_ASSIGN(Manifest manifest, parse_manifest(text, manifest_of(stored)));
  if (manifest.step != stored.step)
    return usage_error(fmt::format("{} is of step {}", manifest_of(stored), manifest.step));
  return manifest;
}

Result<Manifest> look_at(const Stored& stored, ReaderOf reader) {
  REMUDA_ASSIGN(Manifest manifest, read_manifest(stored));
  for (size_t i = reader.number; i < manifest.files.size(); i += reader.all) {
    REMUDA_ASSIGN(const CheckedFile file, CheckedFile::open(stored.folder, manifest.files[i], manifest.version));
    if (manifest.version == 1) REMUDA_TRY(check_whole(file, manifest.files[i].sums.at(0)));
  }
  return manifest;
}

Result<Manifest> verify(const Stored& stored) {
  REMUDA_ASSIGN(Manifest manifest, look_at(stored, {}));
  if (manifest.version == 1) return manifest;
  for (const StoredFile& stored_file : manifest.files) {
    REMUDA_ASSIGN(const CheckedFile file, CheckedFile::open(stored.folder, stored_file, manifest.version));
    REMUDA_TRY(fetch({{&file, 0, file.bytes(), nullptr}}));
  }
  return manifest;
}

Result<Newest> newest_whole(const std::string& folder) {
  REMUDA_ASSIGN(const std::vector<Stored> all, stored_in(folder));
  Newest newest;
  for (const Stored& one : std::views::reverse(all)) {
    auto manifest = verify(one);
    if (manifest) {
      newest.found = Found{one, std::move(*manifest)};
      return newest;
    }
    newest.passed_over.push_back(manifest.error().message);
  }
  return newest;
}

Stored place_of(const std::string& folder, int64_t step) {
  return {step, (fs::path(folder) / fmt::format("{}{:09}", kPrefix, step)).string()};
}

Result<Stored> begin(const std::string& folder, int64_t step) {
  Stored stored = place_of(folder, step);
  std::error_code error;
  fs::create_directories(stored.folder, error);
  if (!error) fs::remove(manifest_of(stored), error);
  if (error) return failed(fmt::format("cannot make the checkpoint {}: {}", stored.folder, error.message()));
  return stored;
}

std::string file_of_rank(int rank) { return fmt::format("rank-{}.safetensors", rank); }

/// The first that is not there, or not whole.
std::optional<std::string> missing_file(const Stored& stored, const Manifest& manifest) {
  for (const StoredFile& file : manifest.files) {
    std::error_code error;
    const fs::path path = fs::path(stored.folder) / file.name;
    if (fs::file_size(path, error) != file.bytes || error) return path.string();
  }
  return std::nullopt;
}

Result<void> publish(const Stored& stored, const Manifest& manifest, double patience_s) {
  constexpr double kPause_s = 0.1;
  std::optional<std::string> missing = missing_file(stored, manifest);
  for (const double end_s = monotonic_s() + patience_s; missing && monotonic_s() < end_s;) {
    steady_clock().sleep_s(kPause_s);
    missing = missing_file(stored, manifest);
  }
  if (missing)
    return failed(
        fmt::format("{} is not there: all ranks must have the same checkpoint.folder, on a file system that "
                    "they share",
                    *missing));
  REMUDA_ASSIGN(PendingFile file, PendingFile::create(manifest_of(stored)));
  REMUDA_TRY(file.commit(to_pretty(to_json(manifest))));
  sync_folder(fs::path(stored.folder).parent_path());  // before older ones are removed
  return {};
}

void abandon(const Stored& stored) { (void)remove(stored); }

Result<void> remove_old(const std::string& folder, int64_t newest, int kept) {
  REMUDA_ASSIGN(const std::vector<Stored> all, all_in(folder));
  Result<void> outcome;
  int newer = 0;
  for (const Stored& one : std::views::reverse(all)) {
    if (one.step > newest || (has_manifest(one) && newer++ < kept)) continue;
    const auto removed = remove(one);
    if (outcome && !removed) outcome = removed;
  }
  return outcome;
}

/// The lock is the folder's own: nothing is left of it when the run has ended, however it has.
Result<Claim> Claim::take(const std::string& folder, double patience_s) {
  constexpr double kPause_s = 0.05;
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const double end_s = monotonic_s() + patience_s;
  while (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return Claim(Fd());
    if (monotonic_s() >= end_s)
      return usage_error(fmt::format(
          "another run writes its checkpoints to {}; give each run a checkpoint.folder of its own", folder));
    steady_clock().sleep_s(kPause_s);
  }
  return Claim(std::move(fd));
}

Claim::~Claim() {
  if (folder_) ::flock(folder_.get(), LOCK_UN);
}

}  // namespace remuda::checkpoint
