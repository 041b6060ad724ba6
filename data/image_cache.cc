#include "data/image_cache.h"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace remuda::data {
namespace {

constexpr uint64_t kLine = 64;

uint64_t in_lines(uint64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

}  // namespace

ImageCache::ImageCache(std::unique_ptr<Images> images, size_t kept, MemoryFile memory)
    : images_(std::move(images)), kept_(kept), memory_(std::move(memory)) {}

ImageCache::~ImageCache() {
  if (mapped_) ::munmap(mapped_, bytes());
}

Result<std::unique_ptr<ImageCache>> ImageCache::create(std::unique_ptr<Images> images, uint64_t bytes) {
  const size_t kept = std::min<uint64_t>(images->size(), bytes / images->shape().bytes());
  REMUDA_ASSIGN(MemoryFile memory, MemoryFile::create());
  std::unique_ptr<ImageCache> cache(new ImageCache(std::move(images), kept, std::move(memory)));
  if (::ftruncate(cache->memory_.fd(), off_t(cache->bytes())) != 0)
    return failed(fmt::format("cannot make memory of {} bytes for images: {}", cache->bytes(), errno_text(errno)));
  REMUDA_ASSIGN(cache->mapped_, map(cache->memory_.fd(), cache->bytes()));
  return cache;
}

Result<void> ImageCache::attach(const MemoryFile::Offer& offer) {
  REMUDA_ASSIGN(MemoryFile memory, MemoryFile::open(offer, "another rank's memory for images"));
  struct stat status{};
  if (::fstat(memory.fd(), &status) != 0 || uint64_t(status.st_size) != bytes())
    return failed("another rank's memory for images is of another size");
  REMUDA_ASSIGN(std::byte * mapped, map(memory.fd(), bytes()));
  ::munmap(mapped_, bytes());
  mapped_ = mapped;
  memory_ = std::move(memory);
  return {};
}

Result<std::byte*> ImageCache::map(int fd, uint64_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED)
    return failed(fmt::format("cannot map {} bytes of memory for images: {}", bytes, errno_text(errno)));
  return static_cast<std::byte*>(at);
}

uint64_t ImageCache::bytes() const { return kLine + in_lines(kept_) + kept_ * shape().bytes(); }

std::atomic_ref<ImageCache::State> ImageCache::state(size_t index) const {
  return std::atomic_ref(reinterpret_cast<State*>(mapped_ + kLine)[index]);
}

std::span<uint8_t> ImageCache::place(size_t index) const {
  const size_t image = shape().bytes();
  return {reinterpret_cast<uint8_t*>(mapped_ + kLine + in_lines(kept_) + index * image), image};
}

Result<void> ImageCache::read(size_t index, std::span<uint8_t> values) const {
  if (index >= kept_) return images_->read(index, values);
  if (state(index).load(std::memory_order_acquire) == State::there) {
    std::ranges::copy(place(index), values.begin());
    return {};
  }
  REMUDA_TRY(images_->read(index, values));
  State absent = State::absent;
  if (!state(index).compare_exchange_strong(absent, State::begun, std::memory_order_relaxed)) return {};
  std::ranges::copy(values, place(index).begin());
  state(index).store(State::there, std::memory_order_release);
  return {};
}

}  // namespace remuda::data
