#include "data/content.h"

#include <fmt/format.h>
#include <memory>
#include <span>
#include <xxhash.h>

#include "base/file.h"

namespace remuda::data {
namespace {

constexpr size_t kReadWhole = 64 << 20;
constexpr size_t kParts = 256;
constexpr size_t kPartBytes = 64 << 10;

class Hash {
 public:
  Hash() { XXH3_64bits_reset(state_.get()); }
  void add(std::span<const std::byte> bytes) { XXH3_64bits_update(state_.get(), bytes.data(), bytes.size()); }
  uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_{XXH3_createState()};
};

}  // namespace

Result<std::string> describe_content(const std::string& path) {
  REMUDA_ASSIGN(const Fd fd, open_for_reading(path));
  REMUDA_ASSIGN(const MappedFile file, MappedFile::map(fd.get(), path));
  const auto bytes = file.bytes();
  Hash hash;
  if (bytes.size() <= kReadWhole) {
    hash.add(bytes);
  } else {
    for (size_t part = 0; part < kParts; ++part)
      hash.add(bytes.subspan((bytes.size() - kPartBytes) / (kParts - 1) * part, kPartBytes));
    hash.add(bytes.last(kPartBytes));
  }
  return fmt::format("{} bytes, hash {:016x}", bytes.size(), hash.value());
}

}  // namespace remuda::data
