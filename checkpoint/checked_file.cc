#include "checkpoint/checked_file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <future>
#include <map>
#include <memory>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <xxhash.h>

namespace remuda::checkpoint {
namespace {

// `./dev bench checkpoint` prints what a disk gives with so many. It needs no more than half of them; but the threads
// of a rank may have one core, and each compares and copies what it has read before it asks for more.
constexpr uint64_t kBlock = 8 * kSummedBytes;
constexpr size_t kThreads = 8;
constexpr uint64_t kPage = 4096;

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

/// Begins with a page, as reading past the page cache needs.
class Buffer {
 public:
  Buffer() : bytes_(static_cast<std::byte*>(std::aligned_alloc(kAlignment, kBlock))) {
    if (bytes_) ::madvise(bytes_.get(), kBlock, MADV_HUGEPAGE);
  }
  std::span<std::byte> bytes() const { return {bytes_.get(), bytes_ ? kBlock : 0}; }

 private:
  static constexpr size_t kAlignment = 2 << 20;
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<std::byte, Free> bytes_;
};

}  // namespace

Result<CheckedFile> CheckedFile::open(const std::string& folder, const StoredFile& file, int version) {
  std::string path = (std::filesystem::path(folder) / file.name).string();
  REMUDA_ASSIGN(Fd fd, open_for_reading(path));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return usage_error(fmt::format("cannot read {}: {}", path, errno_text(errno)));
  if (uint64_t(info.st_size) != file.bytes)
    return usage_error(fmt::format("{} is damaged: it has {} bytes in place of {}", path, info.st_size, file.bytes));
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags >= 0) ::fcntl(fd.get(), F_SETFL, flags | O_DIRECT);  // some refuse it now, some when it is read
  return CheckedFile(std::move(path), std::move(fd), file, version > 1);
}

/// `to` are whole pages, of which the file may have fewer, but at least the bytes that are needed.
Result<void> CheckedFile::read_past_cache(uint64_t at, std::span<std::byte> to, size_t needed) const {
  bool is_cached = false;
  for (size_t done = 0; done < needed;) {
    const ssize_t got = ::pread(fd_.get(), &to[done], to.size() - done, off_t(at + done));
    if (got < 0 && errno == EINTR) continue;
    const int error = errno;
    if (got < 0 && error == EINVAL && !std::exchange(is_cached, true)) {  // another thread may have found that, too
      const int flags = ::fcntl(fd_.get(), F_GETFL);
      if (flags >= 0 && ::fcntl(fd_.get(), F_SETFL, flags & ~O_DIRECT) == 0) continue;
    }
    if (got < 0) return usage_error(fmt::format("cannot read {}: {}", path_, errno_text(error)));
    if (got == 0) return usage_error(fmt::format("{} has become shorter while it was read", path_));
    done += size_t(got);
  }
  return {};
}

Result<void> CheckedFile::compare(uint64_t at, std::span<const std::byte> bytes) const {
  if (!has_sums_) return {};
  const uint64_t sum = XXH3_64bits(bytes.data(), bytes.size()), wanted = file_.sums.at(at / kSummedBytes);
  if (sum == wanted) return {};
  return usage_error(fmt::format("{} is damaged: its sum is {:016x} in place of {:016x} in the {} bytes from {} on",
                                 path_, sum, wanted, bytes.size(), at));
}

/// What is wanted, by the blocks of files that it lies in.
class Fetch {
 public:
  explicit Fetch(const std::vector<Wanted>& wanted) {
    std::map<std::pair<const CheckedFile*, uint64_t>, std::vector<Wanted>> by_place;
    for (Wanted rest : wanted)
      while (rest.bytes > 0) {
        Wanted first = rest;
        first.bytes = std::min(rest.bytes, kBlock - rest.at % kBlock);
        by_place[{rest.file, rest.at / kBlock}].push_back(first);
        rest.at += first.bytes;
        rest.bytes -= first.bytes;
        if (rest.to) rest.to += first.bytes;
      }
    for (auto& [place, all] : by_place) blocks_.push_back(std::move(all));
  }

  /// Blocks, until there are none left, or one was wrong. May be called by several threads at a time.
  Result<void> take_blocks() {
    const Buffer buffer;
    if (buffer.bytes().empty()) return failed("no memory to read a checkpoint");
    for (size_t i = next_++; i < blocks_.size(); i = next_++)
      if (auto taken = take(blocks_[i], buffer.bytes()); !taken) {
        next_ = blocks_.size();
        return taken;
      }
    return {};
  }

  size_t blocks() const { return blocks_.size(); }

 private:
  static Result<void> take(const std::vector<Wanted>& all, std::span<std::byte> buffer) {
    const CheckedFile& file = *all.front().file;
    uint64_t begin = UINT64_MAX, end = 0;
    for (const Wanted& one : all) {
      begin = std::min(begin, one.at / kSummedBytes * kSummedBytes);
      end = std::max(end, std::min(round_up(one.at + one.bytes, kSummedBytes), file.bytes()));
    }
    REMUDA_TRY(file.read_past_cache(begin, buffer.first(round_up(end - begin, kPage)), end - begin));
    for (uint64_t at = begin; at < end; at += kSummedBytes) {
      const auto bytes = buffer.subspan(at - begin, std::min(kSummedBytes, end - at));
      REMUDA_TRY(file.compare(at, bytes));
      for (const Wanted& one : all) give(one, at, bytes);
    }
    return {};
  }

  /// Of these bytes of the file, from `at` on, those that are wanted.
  static void give(const Wanted& one, uint64_t at, std::span<const std::byte> bytes) {
    const uint64_t first = std::max(one.at, at), last = std::min(one.at + one.bytes, at + bytes.size());
    if (one.to && first < last) std::memcpy(one.to + (first - one.at), &bytes[first - at], last - first);
  }

  std::vector<std::vector<Wanted>> blocks_;
  std::atomic<size_t> next_ = 0;
};

Result<void> CheckedFile::read(uint64_t at, std::span<std::byte> to) const {
  return Fetch({{this, at, to.size(), to.data()}}).take_blocks();
}

Result<void> fetch(const std::vector<Wanted>& wanted) {
  Fetch fetch(wanted);
  std::vector<std::future<Result<void>>> others;
  const auto has_another = [&] {
    try {
      others.push_back(std::async(std::launch::async, [&] { return fetch.take_blocks(); }));
      return true;
    } catch (const std::system_error&) {
      return false;  // those that there are do
    }
  };
  while (others.size() + 1 < std::min(fetch.blocks(), kThreads) && has_another()) {
  }
  Result<void> outcome = fetch.take_blocks();
  for (auto& other : others)
    if (auto theirs = other.get(); outcome) outcome = std::move(theirs);
  return outcome;
}

}  // namespace remuda::checkpoint
