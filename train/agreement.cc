#include "train/agreement.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "base/check.h"
#include "train/labels.h"

namespace remuda::train {
namespace {

/// A hash of count, shapes and types of all parameters: ranks whose models differ must not start.
uint64_t structure_hash(const std::vector<torch::Tensor>& parameters) {
  std::vector<int64_t> words{int64_t(parameters.size())};
  for (const auto& parameter : parameters) {
    words.push_back(int64_t(parameter.scalar_type()));
    words.push_back(parameter.dim());
    words.insert(words.end(), parameter.sizes().begin(), parameter.sizes().end());
  }
  return XXH3_64bits(words.data(), words.size() * sizeof(int64_t));
}

/// The first rank whose hash is not rank 0's; 0 when all are the same.
size_t first_that_differs(const std::vector<uint64_t>& hashes) {
  for (size_t rank = 1; rank < hashes.size(); ++rank)
    if (hashes[rank] != hashes[0]) return rank;
  return 0;
}

std::string difference(const std::string& what, const std::vector<uint64_t>& hashes, size_t rank) {
  return fmt::format("{} of rank {} and rank 0 differ ({:016x}, {:016x})", what, rank, hashes[rank], hashes[0]);
}

/// The devices and kernels of two ranks whose parameters differ. Collective.
Result<std::string> kernels_text(comm::Communicator& communicator, torch::DeviceType device, size_t rank) {
  std::array<char, 96> mine{};
  kernels_of(device).copy(mine.data(), mine.size() - 1);
  REMUDA_ASSIGN(const auto all, gather_all(communicator, mine, label::kKernels));
  return fmt::format("rank {} computes with {}, rank 0 with {}", rank, all[rank].data(), all[0].data());
}

}  // namespace

Result<std::string> share_text(comm::Communicator& communicator, int root, std::string mine, uint32_t label) {
  uint64_t size = mine.size();
  REMUDA_TRY(communicator.broadcast(std::as_writable_bytes(std::span(&size, 1)), root, label));
  mine.resize(size);
  REMUDA_TRY(communicator.broadcast(std::as_writable_bytes(std::span(mine)), root, label));
  return mine;
}

Result<void> check_types(const std::vector<torch::Tensor>& parameters) {
  const auto type = parameters.at(0).scalar_type();
  if (type != torch::kFloat && type != torch::kDouble)
    return usage_error(fmt::format("parameters are {}; float32 and float64 can be trained", toString(type)));
  for (const auto& parameter : parameters)
    if (parameter.scalar_type() != type)
      return usage_error(fmt::format("parameters mix {} and {}; they must have one type", toString(type),
                                     toString(parameter.scalar_type())));
  return {};
}

Result<void> check_models(comm::Communicator& communicator, const std::vector<torch::Tensor>& parameters) {
  REMUDA_CHECK(!parameters.empty(), "there is something to train");
  REMUDA_TRY(check_types(parameters));
  REMUDA_ASSIGN(const std::vector<uint64_t> hashes,
                gather_all(communicator, structure_hash(parameters), label::kStructure));
  if (const size_t rank = first_that_differs(hashes))
    return failed(difference("the models (shapes and types)", hashes, rank));
  return {};
}

Result<void> check_values(comm::Communicator& communicator, std::span<const std::byte> values, torch::DeviceType device,
                          int step) {
  REMUDA_ASSIGN(const std::vector<uint64_t> hashes,
                gather_all(communicator, XXH3_64bits(values.data(), values.size()), label::kHash));
  const size_t rank = first_that_differs(hashes);
  if (rank == 0) return {};
  REMUDA_ASSIGN(const std::string kernels, kernels_text(communicator, device, rank));
  return failed(fmt::format("{}: something besides the optimizer has changed them ({})",
                            difference(fmt::format("after step {} the parameters", step), hashes, rank), kernels));
}

}  // namespace remuda::train
