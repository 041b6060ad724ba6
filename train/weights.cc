#include "train/weights.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "base/text.h"
#include "base/version.h"
#include "weights/writer.h"

namespace remuda::train {
namespace {

using weights::DType;
using weights::TensorInfo;

constexpr int64_t kPieceBytes = 4 << 20;
constexpr size_t kMostNamed = 3;

/// A tensor of the model with all its names.
struct Slot {
  std::vector<std::string> names;
  torch::Tensor tensor;
};

std::vector<Slot> slots_of(const std::vector<NamedTensor>& tensors) {
  std::vector<Slot> slots;
  std::unordered_map<const at::TensorImpl*, size_t> known;
  for (const NamedTensor& one : tensors) {
    const auto [place, is_new] = known.emplace(one.tensor.unsafeGetTensorImpl(), slots.size());
    if (is_new) slots.push_back({{}, one.tensor.detach()});
    slots[place->second].names.push_back(one.name);
  }
  return slots;
}

constexpr std::array<std::pair<DType, torch::ScalarType>, 10> kTypes{{{DType::boolean, torch::kBool},
                                                                      {DType::u8, torch::kByte},
                                                                      {DType::i8, torch::kChar},
                                                                      {DType::i16, torch::kShort},
                                                                      {DType::i32, torch::kInt},
                                                                      {DType::i64, torch::kLong},
                                                                      {DType::f16, torch::kHalf},
                                                                      {DType::bf16, torch::kBFloat16},
                                                                      {DType::f32, torch::kFloat},
                                                                      {DType::f64, torch::kDouble}}};

std::optional<torch::ScalarType> torch_type(DType type) {
  const auto found = std::ranges::find(kTypes, type, &std::pair<DType, torch::ScalarType>::first);
  return found == kTypes.end() ? std::nullopt : std::optional(found->second);
}

std::vector<uint64_t> shape_of(const torch::Tensor& tensor) { return {tensor.sizes().begin(), tensor.sizes().end()}; }

/// "a, b, c and 4 more".
std::string first_of(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kMostNamed);
  std::string text = printable(fmt::format("{}", fmt::join(names.begin(), names.begin() + long(shown), ", ")));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

/// Which tensor of the file goes where, or how the two differ.
class Match {
 public:
  struct Copy {
    const TensorInfo* from;
    torch::Tensor to;
  };

  Match(const weights::Header& header, const std::vector<Slot>& slots) {
    std::unordered_map<std::string, const TensorInfo*> in_file;
    for (const TensorInfo& tensor : header.tensors) in_file.emplace(tensor.name, &tensor);
    for (const Slot& slot : slots) {
      bool found = false;
      for (const std::string& name : slot.names) {
        const auto entry = in_file.find(name);
        if (entry == in_file.end()) continue;
        found = true;
        add(*entry->second, slot.tensor);
        in_file.erase(entry);
      }
      if (!found) missing_.push_back(slot.names.front());
    }
    for (const TensorInfo& tensor : header.tensors)
      if (in_file.contains(tensor.name)) unexpected_.push_back(tensor.name);
  }

  const std::vector<Copy>& copies() const { return copies_; }
  /// Of those that the file has under several names of one tensor, each with the first of them.
  std::vector<std::pair<Copy, Copy>> tied() const {
    std::vector<std::pair<Copy, Copy>> all;
    for (size_t i = 1; i < copies_.size(); ++i) {
      const auto first = std::ranges::find_if(copies_, [&](const Copy& one) { return one.to.is_same(copies_[i].to); });
      if (first < copies_.begin() + long(i)) all.emplace_back(*first, copies_[i]);
    }
    return all;
  }

  /// Empty where all fits.
  std::string difference() const {
    std::vector<std::string> parts;
    if (!missing_.empty()) parts.push_back("it lacks " + first_of(missing_));
    if (!unexpected_.empty()) parts.push_back("it has " + first_of(unexpected_) + ", which the model has not");
    if (!misfit_.empty()) parts.push_back(misfit_);
    return fmt::format("{}", fmt::join(parts, "; "));
  }

 private:
  void add(const TensorInfo& from, const torch::Tensor& to) {
    copies_.push_back({&from, to});
    if (!misfit_.empty()) return;
    const auto type = torch_type(from.type);
    if (from.shape != shape_of(to))
      misfit_ = fmt::format("{} has shape {}, but {} in the model", from.name, weights::shape_text(from.shape),
                            weights::shape_text(shape_of(to)));
    else if (!type || (*type != to.scalar_type() && !(torch::isFloatingType(*type) && to.is_floating_point())))
      misfit_ = fmt::format("{} holds {}, which is not converted to the model's {}", from.name, name_of(from.type),
                            toString(to.scalar_type()));
  }

  std::vector<Copy> copies_;
  std::vector<std::string> missing_, unexpected_;
  std::string misfit_;  ///< of the first tensor that differs in shape or kind
};

/// The elements that are copied at once.
int64_t piece_elements(size_t element_bytes) { return kPieceBytes / int64_t(element_bytes); }

/// What the file has for it from this element on, in the model's type.
Result<torch::Tensor> read_piece(const weights::Reader& reader, const Match::Copy& copy, int64_t first, int64_t count) {
  const auto size = int64_t(weights::size_of(copy.from->type));
  const auto piece = torch::empty({count}, *torch_type(copy.from->type));
  REMUDA_TRY(reader.read(*copy.from, uint64_t(first * size),
                         {static_cast<std::byte*>(piece.data_ptr()), size_t(count * size)}));
  return piece.to(copy.to.scalar_type());
}

Result<void> copy_values(const weights::Reader& reader, const Match::Copy& copy) {
  const bool in_place = copy.to.is_contiguous();
  torch::Tensor values = in_place ? copy.to.view(-1) : torch::empty({copy.to.numel()}, copy.to.options());
  const int64_t step = piece_elements(weights::size_of(copy.from->type));
  for (int64_t first = 0; first < values.numel(); first += step) {
    const int64_t count = std::min(step, values.numel() - first);
    REMUDA_ASSIGN(const torch::Tensor piece, read_piece(reader, copy, first, count));
    values.narrow(0, first, count).copy_(piece);
  }
  if (!in_place) torch::Tensor(copy.to).copy_(values.view(copy.to.sizes()));
  return {};
}

/// Bit by bit: what is no number is like itself.
Result<bool> are_alike(const weights::Reader& reader, const Match::Copy& a, const Match::Copy& b) {
  const int64_t step = piece_elements(weights::size_of(a.from->type));
  for (int64_t first = 0; first < a.to.numel(); first += step) {
    const int64_t count = std::min(step, a.to.numel() - first);
    REMUDA_ASSIGN(const torch::Tensor of_a, read_piece(reader, a, first, count));
    REMUDA_ASSIGN(const torch::Tensor of_b, read_piece(reader, b, first, count));
    if (std::memcmp(of_a.data_ptr(), of_b.data_ptr(), of_a.nbytes()) != 0) return false;
  }
  return true;
}

Result<void> check_tied(const weights::Reader& reader, const Match& match, const std::string& path) {
  for (const auto& [first, other] : match.tied()) {
    REMUDA_ASSIGN(const bool alike, are_alike(reader, first, other));
    if (!alike)
      return usage_error(
          fmt::format("{} does not fit the model: {} and {} are one tensor there, but have unlike values in the file",
                      path, printable(first.from->name), printable(other.from->name)));
  }
  return {};
}

Result<void> append_values(weights::Writer& writer, const torch::Tensor& tensor,
                           const std::function<void()>& after_piece) {
  const auto values = tensor.contiguous().view(-1);
  const int64_t step = piece_elements(values.element_size());
  for (int64_t first = 0; first < values.numel(); first += step) {
    const auto piece = values.narrow(0, first, std::min(step, values.numel() - first)).to(torch::kCPU);
    REMUDA_TRY(writer.append({static_cast<const std::byte*>(piece.data_ptr()), piece.nbytes()}));
    after_piece();
  }
  return {};
}

}  // namespace

std::optional<DType> file_type(torch::ScalarType type) {
  const auto found = std::ranges::find(kTypes, type, &std::pair<DType, torch::ScalarType>::second);
  return found == kTypes.end() ? std::nullopt : std::optional(found->first);
}

std::vector<NamedTensor> named_tensors(Model& model) {
  std::vector<NamedTensor> tensors = model.named_parameters();
  for (NamedTensor& buffer : model.named_buffers()) tensors.push_back(std::move(buffer));
  return tensors;
}

std::map<std::string, std::string> further_names(const std::vector<NamedTensor>& tensors) {
  std::map<std::string, std::string> further;
  for (const Slot& slot : slots_of(tensors))
    for (size_t i = 1; i < slot.names.size(); ++i) further[slot.names[i]] = slot.names[0];
  return further;
}

std::vector<std::string> names_of(Model& model, const std::vector<torch::Tensor>& parameters) {
  std::unordered_map<const at::TensorImpl*, std::string> names;
  for (const NamedTensor& one : model.named_parameters()) names.emplace(one.tensor.unsafeGetTensorImpl(), one.name);
  std::vector<std::string> all;
  for (const torch::Tensor& parameter : parameters) all.push_back(names.at(parameter.unsafeGetTensorImpl()));
  return all;
}

uint64_t bytes_of(const std::vector<NamedTensor>& tensors) {
  uint64_t bytes = 0;
  for (const Slot& slot : slots_of(tensors)) bytes += slot.names.size() * slot.tensor.nbytes();
  return bytes;
}

Result<void> load_weights(const std::vector<NamedTensor>& tensors, const std::string& path) {
  const torch::NoGradGuard no_grad;
  REMUDA_ASSIGN(const weights::Reader reader, weights::Reader::open(path));
  const Match match(reader.header(), slots_of(tensors));
  const std::string difference = match.difference();
  if (!difference.empty()) return usage_error(fmt::format("{} does not fit the model: {}", path, difference));
  REMUDA_TRY(check_tied(reader, match, path));
  for (const auto& copy : match.copies()) REMUDA_TRY(copy_values(reader, copy));
  return {};
}

Result<weights::Header> weights_header(const std::vector<NamedTensor>& tensors) {
  weights::Header header;
  for (const Slot& slot : slots_of(tensors)) {
    const auto type = file_type(slot.tensor.scalar_type());
    if (!type)
      return usage_error(fmt::format("{} of the model has type {}, which safetensors files do not have", slot.names[0],
                                     toString(slot.tensor.scalar_type())));
    for (const std::string& name : slot.names)
      header.tensors.push_back({.name = name, .type = *type, .shape = shape_of(slot.tensor)});
  }
  return header;
}

Result<WrittenWeights> write_weights(const std::vector<NamedTensor>& tensors, PendingFile file, int steps,
                                     const std::function<void()>& after_piece, const ValuesOf& values_of) {
  const torch::NoGradGuard no_grad;
  REMUDA_ASSIGN(weights::Header header, weights_header(tensors));
  // "pt" is how PyTorch's users mark such files; some programs refuse them otherwise.
  header.metadata = {{"format", "pt"}, {"remuda", version()}};
  if (steps >= 0) header.metadata["steps"] = std::to_string(steps);
  REMUDA_ASSIGN(weights::Writer writer, weights::Writer::create(std::move(file), std::move(header)));
  std::unordered_map<std::string, torch::Tensor> by_name;
  for (const NamedTensor& one : tensors) by_name.emplace(one.name, one.tensor);
  for (const TensorInfo& tensor : writer.header().tensors) {
    REMUDA_ASSIGN(const torch::Tensor values, values_of(by_name.at(tensor.name)));
    REMUDA_TRY(append_values(writer, values, after_piece));
  }
  REMUDA_TRY(writer.commit());
  return WrittenWeights{"safetensors", writer.header().tensors.size(), writer.file_bytes()};
}

Result<WrittenWeights> write_script(Model& model, PendingFile file, const std::function<void()>& after_piece) {
  WrittenWeights written{"TorchScript", slots_of(named_tensors(model)).size(), 0};
  Result<void> appended;
  const bool has_script = model.write_script([&](const void* bytes, size_t count) {
    if (appended) appended = file.append({static_cast<const char*>(bytes), count});
    written.bytes += count;
    after_piece();
    return count;
  });
  REMUDA_CHECK(has_script, "the job says that the model came as TorchScript");
  REMUDA_TRY(appended);
  REMUDA_TRY(file.commit());
  return written;
}

}  // namespace remuda::train
