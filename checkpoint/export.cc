#include "checkpoint/export.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <vector>

#include "checkpoint/pieces.h"
#include "weights/writer.h"

namespace remuda::checkpoint {
namespace {

constexpr uint64_t kPieceBytes = 16 << 20;

Result<void> append(weights::Writer& writer, Pieces& pieces, const std::string& kind,
                    const weights::TensorInfo& tensor) {
  const uint64_t element = weights::size_of(tensor.type), count = tensor.bytes() / element;
  std::vector<std::byte> values;
  for (uint64_t first = 0; first < count;) {
    const uint64_t taken = std::min(count - first, kPieceBytes / element);
    values.resize(taken * element);
    REMUDA_TRY(pieces.want(kind, tensor.name, tensor.type, first, values));
    REMUDA_TRY(pieces.fetch());
    REMUDA_TRY(writer.append(values));
    first += taken;
  }
  return {};
}

}  // namespace

Result<uint64_t> write_model(const Found& checkpoint, bool average, const std::string& path) {
  REMUDA_ASSIGN(Pieces pieces, Pieces::open(checkpoint.at.folder, checkpoint.manifest));
  if (average && !pieces.has("average"))
    return usage_error(fmt::format("{} has no average of the weights: train.average was 0", checkpoint.at.folder));
  weights::Header header{
      .metadata = {{"remuda", checkpoint.manifest.remuda}, {"steps", fmt::format("{}", checkpoint.manifest.step)}}};
  const std::map<std::string, std::string> tied = checkpoint.manifest.tied();
  std::map<std::string, std::string> kinds;
  for (const ModelTensor& tensor : checkpoint.manifest.tensors) {
    header.tensors.push_back({.name = tensor.name, .type = tensor.type, .shape = tensor.shape});
    for (const auto& [name, first] : tied)
      if (first == tensor.name) header.tensors.push_back({.name = name, .type = tensor.type, .shape = tensor.shape});
    kinds[tensor.name] = tensor.is_buffer ? "buffer" : average ? "average" : "parameter";
  }
  REMUDA_ASSIGN(PendingFile file, PendingFile::create(path));
  REMUDA_ASSIGN(weights::Writer writer, weights::Writer::create(std::move(file), std::move(header)));
  for (weights::TensorInfo tensor : writer.header().tensors) {
    if (const auto first = tied.find(tensor.name); first != tied.end()) tensor.name = first->second;
    REMUDA_TRY(append(writer, pieces, kinds[tensor.name], tensor));
  }
  REMUDA_TRY(writer.commit());
  return writer.file_bytes();
}

}  // namespace remuda::checkpoint
