#include "checkpoint/image.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <sys/mman.h>

#include "base/file.h"

namespace remuda::checkpoint {

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

Result<StoredFile> Image::write(const Stored& stored, const std::string& name,
                                const std::atomic<bool>& given_up) const {
  constexpr size_t kPiece = 8 << 20;
  REMUDA_ASSIGN(PendingFile file, PendingFile::create((std::filesystem::path(stored.folder) / name).string()));
  file.bypass_cache();
  Sum sum;
  for (std::span<const std::byte> rest = bytes_; !rest.empty();) {
    if (given_up) return failed("the run did not wait for it");
    const auto piece = rest.first(std::min(kPiece, rest.size()));
    sum.add(piece);
    REMUDA_TRY(file.append({reinterpret_cast<const char*>(piece.data()), piece.size()}));
    rest = rest.subspan(piece.size());
  }
  REMUDA_TRY(file.commit());
  return StoredFile{name, bytes_.size(), sum.text()};
}

}  // namespace remuda::checkpoint
