#include "weights/writer.h"

#include "base/check.h"

namespace remuda::weights {

Result<Writer> Writer::create(PendingFile file, Header header) {
  place_tensors(header);
  Writer writer(std::move(file), std::move(header));
  const std::string head = header_bytes(writer.header_);
  writer.header_bytes_ = head.size();
  writer.data_bytes_ = writer.header_.tensors.empty() ? 0 : writer.header_.tensors.back().end;
  REMUDA_TRY(writer.file_.append(head));
  return writer;
}

Result<void> Writer::append(std::span<const std::byte> bytes) {
  written_ += bytes.size();
  REMUDA_CHECK(written_ <= data_bytes_, "no more is written than the header announces");
  return file_.append({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Result<void> Writer::commit() {
  REMUDA_CHECK(written_ == data_bytes_, "all values are written that the header announces");
  return file_.commit();
}

}  // namespace remuda::weights
