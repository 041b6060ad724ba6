#include "checkpoint/store.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <future>
#include <ranges>
#include <sys/file.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <xxhash.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/read_all.h"

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

/// That a file is what the manifest says.
Result<void> check_file(const Stored& stored, const StoredFile& file) {
  REMUDA_ASSIGN(const StoredFile there, describe(stored, file.name));
  const std::string path = (fs::path(stored.folder) / file.name).string();
  if (there.bytes != file.bytes)
    return usage_error(fmt::format("{} is damaged: it has {} bytes in place of {}", path, there.bytes, file.bytes));
  if (there.sum != file.sum)
    return usage_error(fmt::format("{} is damaged: its sum is {} in place of {}", path, there.sum, file.sum));
  return {};
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

Result<StoredFile> describe(const Stored& stored, const std::string& name) {
  const std::string path = (fs::path(stored.folder) / name).string();
  REMUDA_ASSIGN(const Fd fd, open_for_reading(path));
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  Sum sum;
  std::vector<std::byte> piece(1 << 20);
  StoredFile file{.name = name};
  for (;;) {
    const ssize_t got = ::read(fd.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(fmt::format("cannot read {}: {}", path, errno_text(errno)));
    if (got == 0) break;
    sum.add(std::span(piece).first(size_t(got)));
    file.bytes += uint64_t(got);
  }
  file.sum = sum.text();
  return file;
}

Sum::Sum() : state_(XXH3_createState()) {
  REMUDA_CHECK(state_, "there is memory for a sum");
  XXH3_64bits_reset(state_.get());
}

void Sum::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

void Sum::add(std::span<const std::byte> bytes) { XXH3_64bits_update(state_.get(), bytes.data(), bytes.size()); }

std::string Sum::text() const { return fmt::format("{:016x}", XXH3_64bits_digest(state_.get())); }

/// Several files at a time: the sum of one takes about as long as reading it.
Result<Manifest> verify(const Stored& stored, ReaderOf reader) {
  REMUDA_ASSIGN(Manifest manifest, read_manifest(stored));
  constexpr size_t kMostAtOnce = 8;
  std::vector<const StoredFile*> files;
  for (size_t i = reader.number; i < manifest.files.size(); i += reader.all) files.push_back(&manifest.files[i]);
  std::vector<Result<void>> outcomes(files.size(), failed(stored.folder + " was not read to its end"));
  std::atomic<size_t> next = 0;
  const auto check_some = [&] {
    for (size_t i = next++; i < outcomes.size(); i = next++) outcomes[i] = check_file(stored, *files[i]);
  };
  std::vector<std::future<void>> others;
  const size_t at_once = std::min({outcomes.size(), kMostAtOnce, size_t{std::thread::hardware_concurrency()}});
  const auto has_another = [&] {
    try {
      others.push_back(std::async(std::launch::async, check_some));
      return true;
    } catch (const std::system_error&) {
      return false;  // those that there are do
    }
  };
  while (others.size() + 1 < at_once && has_another()) {
  }
  check_some();
  for (auto& other : others) other.get();
  for (const Result<void>& outcome : outcomes) REMUDA_TRY(outcome);
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

Result<void> publish(const Stored& stored, const Manifest& manifest) {
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
