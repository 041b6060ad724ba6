#include "checkpoint/image.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <sys/mman.h>
#include <xxhash.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"

namespace remuda::checkpoint {
namespace {

/// That this part of the file is not written too soon; in turns, as the haste may change.
void wait_until(double part, double begin_s, const Haste& haste) {
  constexpr double kTurn_s = 0.02;
  for (;;) {
    const double left_s = begin_s + part * haste.spread_s - monotonic_s();
    if (haste.given_up || left_s <= 0) return;
    steady_clock().sleep_s(std::min(left_s, kTurn_s));
  }
}

void copy_past_caches(std::byte* to, const std::byte* from, size_t bytes) {
#ifdef __SSE2__
  constexpr size_t kStore = sizeof(__m128i), kLine = 4 * kStore;
  const size_t before = std::min(bytes, (kStore - reinterpret_cast<uintptr_t>(to) % kStore) % kStore);
  std::memcpy(to, from, before);
  to += before, from += before, bytes -= before;
  for (; bytes >= kLine; to += kLine, from += kLine, bytes -= kLine)
    for (size_t at = 0; at < kLine; at += kStore)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + at),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
  _mm_sfence();
#endif
  std::memcpy(to, from, bytes);
}

}  // namespace

Result<Image> Image::create(weights::Header header) {
  weights::place_tensors(header);
  const std::string head = weights::header_bytes(header);
  const uint64_t size = head.size() + (header.tensors.empty() ? 0 : header.tensors.back().end);
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return failed(fmt::format("no memory for a copy of {} bytes: {}", size, errno_text(errno)));
  ::madvise(memory, size, MADV_HUGEPAGE);  // of small pages, their first use would take longer than the copy
  std::memcpy(memory, head.data(), head.size());
  return Image(std::move(header), {static_cast<std::byte*>(memory), size}, head.size());
}

Image::Image(Image&& other) noexcept
    : header_(std::move(other.header_)), bytes_(std::exchange(other.bytes_, {})), header_bytes_(other.header_bytes_) {}

Image::~Image() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

std::span<std::byte> Image::bytes_of(const weights::TensorInfo& tensor) const {
  return bytes_.subspan(header_bytes_ + tensor.begin, tensor.bytes());
}

void Image::fill(const weights::TensorInfo& tensor, std::span<const std::byte> values) const {
  REMUDA_CHECK(values.size() == tensor.bytes(), "there is room for all of the tensor");
  copy_past_caches(bytes_of(tensor).data(), values.data(), values.size());
}

Result<StoredFile> Image::write(const Stored& stored, const std::string& name, const Haste& haste) const {
  constexpr size_t kPiece = 8 * kSummedBytes;
  REMUDA_ASSIGN(PendingFile file, PendingFile::create((std::filesystem::path(stored.folder) / name).string()));
  file.bypass_cache();
  const double begin_s = monotonic_s();
  StoredFile stored_file{name, bytes_.size(), {}};
  for (std::span<const std::byte> rest = bytes_; !rest.empty();) {
    wait_until(1 - double(rest.size()) / double(bytes_.size()), begin_s, haste);
    if (haste.given_up) return failed("the run did not wait for it");
    const auto piece = rest.first(std::min(kPiece, rest.size()));
    for (size_t at = 0; at < piece.size(); at += kSummedBytes)
      stored_file.sums.push_back(XXH3_64bits(&piece[at], std::min(kSummedBytes, piece.size() - at)));
    REMUDA_TRY(file.append({reinterpret_cast<const char*>(piece.data()), piece.size()}));
    rest = rest.subspan(piece.size());
  }
  REMUDA_TRY(file.commit());
  return stored_file;
}

}  // namespace remuda::checkpoint
