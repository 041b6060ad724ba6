// Any bytes are a safetensors file whose every value can be read, and which is written back as the same tensors, or a
// usage error of one line; what is read stays within what was given.
#include <cstdint>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "weights/parse_header.h"
#include "weights/reader.h"

namespace {

namespace weights = remuda::weights;

/// Reads all values; together they are the file's bytes after its header.
void read_all_values(const weights::Reader& reader, std::string_view bytes) {
  std::string values;
  for (const weights::TensorInfo& tensor : reader.header().tensors) {
    const size_t half = tensor.bytes() / 2;
    std::string piece(tensor.bytes(), '\0');
    const auto to = std::as_writable_bytes(std::span(piece));
    REMUDA_CHECK(reader.read(tensor, 0, to.first(half)) && reader.read(tensor, half, to.subspan(half)),
                 "a checked file can be read");
    values += piece;
  }
  REMUDA_CHECK(bytes.ends_with(values), "tensors are the bytes that follow the header, in this order");
}

/// Only places may change: wider types go first.
void write_back(weights::Header header, size_t data_bytes) {
  weights::place_tensors(header);
  const std::string bytes = weights::header_bytes(header);
  const auto again = weights::parse_header(std::string_view(bytes).substr(weights::kLengthBytes), data_bytes);
  REMUDA_CHECK(again, "what is written can be read");
  REMUDA_CHECK(again->metadata == header.metadata, "metadata is kept");
  REMUDA_CHECK(again->tensors.size() == header.tensors.size(), "tensors are kept");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const remuda::Fd file(::memfd_create("safetensors_fuzz", MFD_CLOEXEC));
  REMUDA_CHECK(file && remuda::write_all(file.get(), bytes, "memory"), "there is memory");
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  const auto reader = weights::Reader::open(path);
  if (!reader) {
    const std::string& message = reader.error().message;
    REMUDA_CHECK(reader.error().kind == remuda::ErrorKind::usage, "a wrong file is the user's error");
    REMUDA_CHECK(message.find('\n') == std::string::npos, "an error is one line");
    REMUDA_CHECK(message.find(path) != std::string::npos, "an error names the file");
    return 0;
  }
  read_all_values(*reader, bytes);
  const auto& tensors = reader->header().tensors;
  write_back(reader->header(), tensors.empty() ? 0 : tensors.back().end);
  return 0;
}
