#include "train/agreement.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include "base/check.h"
#include "base/text.h"
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

/// A line for each: what it is, and after a tab its name.
std::string lines_of_parameters(const std::vector<torch::Tensor>& parameters, const std::vector<std::string>& names) {
  std::string list;
  for (size_t i = 0; i < parameters.size(); ++i)
    list += fmt::format("{}\t{}\n", shape_text(parameters[i]), name_of_parameter(names, i));
  return list;
}

/// What of rank 0's list another rank has in another way.
std::string difference_of_lists(const std::string& theirs, const std::string& zeros, size_t rank) {
  const std::vector<std::string> other = split(theirs, '\n'), zero = split(zeros, '\n');  // each ends with an empty one
  size_t at = 0;
  const auto what = [](const std::string& line) { return line.substr(0, line.find('\t')); };
  const auto name = [](const std::string& line) { return line.substr(line.find('\t') + 1); };
  while (at + 1 < std::min(other.size(), zero.size()) && what(other[at]) == what(zero[at])) ++at;
  const bool is_longer = at + 1 < other.size();
  if (is_longer && at + 1 < zero.size())
    return fmt::format("{} is {} on rank {}, and {} is {} on rank 0", name(other[at]), what(other[at]), rank,
                       name(zero[at]), what(zero[at]));
  return fmt::format("rank {} has {}, and rank 0 {}; {} is on rank {} only", rank,
                     counted(double(other.size() - 1), "parameter"), zero.size() - 1,
                     name(is_longer ? other[at] : zero[at]), is_longer ? rank : 0);
}

/// "a, b and 3 other parameters".
std::string first_of_names(const std::vector<std::string>& names) {
  constexpr size_t kShown = 2;
  const size_t shown = std::min(names.size(), kShown);
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + long(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {}", counted(double(names.size() - shown), "other parameter"));
  return text;
}

/// Collective: those whose bytes are not the same on two ranks.
Result<std::string> unlike_parameters(comm::Communicator& communicator, const std::vector<NamedBytes>& parameters,
                                      size_t rank) {
  std::vector<uint64_t> mine, all(parameters.size() * size_t(communicator.size()));
  for (const NamedBytes& one : parameters) mine.push_back(XXH3_64bits(one.bytes.data(), one.bytes.size()));
  REMUDA_TRY(
      communicator.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), label::kHash));
  std::vector<std::string> names;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (all[rank * parameters.size() + i] != all[i]) names.push_back(parameters[i].name);
  return names.empty() ? "parameters" : first_of_names(names);
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

std::string name_of_parameter(const std::vector<std::string>& names, size_t number) {
  return number < names.size() ? names[number] : fmt::format("parameter {}", number + 1);
}

Result<void> check_models(comm::Communicator& communicator, const std::vector<torch::Tensor>& parameters,
                          const std::vector<std::string>& names) {
  REMUDA_CHECK(!parameters.empty(), "there is something to train");
  REMUDA_TRY(check_types(parameters));
  REMUDA_ASSIGN(const std::vector<uint64_t> hashes,
                gather_all(communicator, structure_hash(parameters), label::kStructure));
  const size_t rank = first_that_differs(hashes);
  if (rank == 0) return {};
  const std::string mine = lines_of_parameters(parameters, names);
  REMUDA_ASSIGN(const std::string zeros, share_text(communicator, 0, mine, label::kStructure));
  REMUDA_ASSIGN(const std::string theirs, share_text(communicator, int(rank), mine, label::kStructure));
  return failed("the ranks have unlike models: " + difference_of_lists(theirs, zeros, rank));
}

Result<void> check_values(comm::Communicator& communicator, std::span<const std::byte> values,
                          const std::vector<NamedBytes>& parameters, torch::DeviceType device, int step) {
  REMUDA_ASSIGN(const std::vector<uint64_t> hashes,
                gather_all(communicator, XXH3_64bits(values.data(), values.size()), label::kHash));
  const size_t rank = first_that_differs(hashes);
  if (rank == 0) return {};
  REMUDA_ASSIGN(const std::string unlike, unlike_parameters(communicator, parameters, rank));
  REMUDA_ASSIGN(const std::string kernels, kernels_text(communicator, device, rank));
  return failed(fmt::format(
      "after step {} rank {} and rank 0 have other values of {}: something besides the optimizer has changed "
      "them ({})",
      step, rank, unlike, kernels));
}

}  // namespace remuda::train
