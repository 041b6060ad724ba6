// What ranks compare, so that those that differ are named and do not go on.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/communicator.h"
#include "train/torch_compat.h"

namespace remuda::train {

/// Every rank's `mine`, in rank order. Collective.
template <typename T>
Result<std::vector<T>> gather_all(comm::Communicator& communicator, const T& mine, uint32_t label) {
  std::vector<T> all(communicator.size());
  REMUDA_TRY(
      communicator.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), label));
  return all;
}

/// Collective. The text of rank `root`, on every rank.
Result<std::string> share_text(comm::Communicator& communicator, int root, std::string mine, uint32_t label);

/// Refuses parameters of types that cannot be trained.
Result<void> check_types(const std::vector<torch::Tensor>& parameters);

/// As errors name it; where there are no names, by its place: "parameter 3".
std::string name_of_parameter(const std::vector<std::string>& names, size_t number);

/// Collective. Refuses parameters that cannot be trained, or that differ in number, shape or type between ranks. The
/// error has the first that does.
Result<void> check_models(comm::Communicator& communicator, const std::vector<torch::Tensor>& parameters,
                          const std::vector<std::string>& names = {});

struct NamedBytes {
  std::string name;
  std::span<const std::byte> bytes;
};

/// Collective: compares the bytes of all ranks (a 64-bit hash of them). The error names two ranks that differ, the
/// parameters in which they do, and the kernels of both. `parameters`: where each lies among the values.
Result<void> check_values(comm::Communicator& communicator, std::span<const std::byte> values,
                          const std::vector<NamedBytes>& parameters, torch::DeviceType device, int step);

}  // namespace remuda::train
