#include "train/tensorboard_file.h"

#include <bit>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <unistd.h>

#include "base/crc32c.h"

namespace remuda::train {
namespace {

/// Wire types of protocol buffers.
enum class Wire : uint64_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

template <typename Integer>
std::string little_endian(Integer value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string key(uint64_t field, Wire wire) { return varint(field << 3 | static_cast<uint64_t>(wire)); }

std::string bytes_field(uint64_t field, std::string_view bytes) {
  return key(field, Wire::bytes) + varint(bytes.size()) + std::string(bytes);
}

/// Summary.Value: tag = 1, simple_value = 2.
std::string value_of(const Scalar& scalar) {
  return bytes_field(1, scalar.tag) + key(2, Wire::fixed32) +
         little_endian(std::bit_cast<uint32_t>(static_cast<float>(scalar.value)));
}

/// So that the sum of bytes that hold a sum is not trivial.
std::string masked_sum(std::string_view bytes) {
  constexpr uint32_t kMask = 0xA282EAD8;
  const uint32_t sum = crc32c(bytes);
  return little_endian((sum >> 15 | sum << 17) + kMask);
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != 0 ? name : "localhost";
}

}  // namespace

std::string tf_record(std::string_view bytes) {
  const std::string length = little_endian(static_cast<uint64_t>(bytes.size()));
  return length + masked_sum(length) + std::string(bytes) + masked_sum(bytes);
}

/// Event: wall_time = 1, step = 2, file_version = 3, summary = 5; Summary: value = 1.
std::string event_of(int64_t step, double wall_s, std::span<const Scalar> scalars) {
  std::string event = key(1, Wire::fixed64) + little_endian(std::bit_cast<uint64_t>(wall_s));
  if (scalars.empty()) return event + bytes_field(3, "brain.Event:2");
  std::string summary;
  for (const Scalar& scalar : scalars) summary += bytes_field(1, value_of(scalar));
  return event + key(2, Wire::varint) + varint(static_cast<uint64_t>(step)) + bytes_field(5, summary);
}

Result<TensorBoardFile> TensorBoardFile::create(const std::string& folder, double wall_s) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return usage_error(fmt::format("cannot make the folder {} of output.tensorboard: {}", folder, error.message()));
  const std::string path =
      fmt::format("{}/events.out.tfevents.{:010.0f}.{}.{}.remuda", folder, wall_s, host_name(), ::getpid());
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) return usage_error(fmt::format("cannot write {}: {}", path, errno_text(errno)));
  REMUDA_TRY(write_all(file.get(), tf_record(event_of(0, wall_s, {})), path));
  return TensorBoardFile(std::move(file), path);
}

void TensorBoardFile::add(int64_t step, double wall_s, std::span<const Scalar> scalars) {
  if (!file_ || scalars.empty()) return;
  const auto written = write_all(file_.get(), tf_record(event_of(step, wall_s, scalars)), path_);
  if (written) return;
  why_ended_ = written.error().message;
  std::cerr << "what TensorBoard shows ends here: " << why_ended_ << std::endl;
  file_.reset();
}

std::string TensorBoardFile::why_ended() const {
  if (!file_) return why_ended_;
  const auto kept = check_kept(file_.get(), path_);
  return kept ? "" : kept.error().message;
}

}  // namespace remuda::train
