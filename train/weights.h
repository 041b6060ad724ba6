// Weights: a model's parameters and buffers, from a safetensors file and into one.
//
// Names are the module's own, as in "layer0.up.weight"; parameters may be on any device. Values pass by in pieces of a
// few MiB, so that neither way needs a second copy of the model in memory.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/result.h"
#include "train/model/model.h"
#include "weights/reader.h"

namespace remuda::train {

/// The type that safetensors files have for it, where they have one.
std::optional<weights::DType> file_type(torch::ScalarType type);

/// All that a file of the model's weights has: parameters and buffers.
std::vector<NamedTensor> named_tensors(Model& model);
/// Of tensors with several names: each name after the first, with the first.
std::map<std::string, std::string> further_names(const std::vector<NamedTensor>& tensors);

/// The first name of each of these parameters of the model.
std::vector<std::string> names_of(Model& model, const std::vector<torch::Tensor>& parameters);

/// Of their values, those of a tensor with several names once: a file of them has hardly more.
uint64_t bytes_of(const std::vector<NamedTensor>& tensors);

/// Copies the file's values into the tensors, which must have the same names and shapes. Floating-point values become
/// those of the parameter's type: from F16 and BF16 to float exactly, from F64 rounded. A tensor of several names may
/// have any of them; where the file has several, their values must be alike. The error says, in one sentence, which
/// names, shapes or values differ; no tensor is changed then.
Result<void> load_weights(const std::vector<NamedTensor>& tensors, const std::string& path);
inline Result<void> load_weights(Model& model, const std::string& path) {
  return load_weights(named_tensors(model), path);
}

/// The header under which the model's weights are written, a tensor of several names under each of them, as the
/// module's state_dict() has it: with its values once more, since a file's tensors do not overlap. The error names a
/// tensor whose type safetensors does not have.
Result<weights::Header> weights_header(const std::vector<NamedTensor>& tensors);
inline Result<weights::Header> weights_header(Model& model) { return weights_header(named_tensors(model)); }

/// The values of a tensor, where it may have no memory of its own: on whatever device, until the next call.
using ValuesOf = std::function<Result<torch::Tensor>(const torch::Tensor&)>;
inline Result<torch::Tensor> as_it_is(const torch::Tensor& tensor) { return tensor; }

struct WrittenWeights {
  std::string format;  ///< "safetensors" or "TorchScript"
  size_t tensors = 0;
  uint64_t bytes = 0;  ///< of the file
};

/// Writes a safetensors file, whole or not at all. Its metadata says which remuda wrote it and after how many steps
/// (negative: not known). `after_piece` is called after each piece.
Result<WrittenWeights> write_weights(const std::vector<NamedTensor>& tensors, PendingFile file, int steps,
                                     const std::function<void()>& after_piece, const ValuesOf& values_of = as_it_is);
inline Result<WrittenWeights> write_weights(Model& model, PendingFile file, int steps,
                                            const std::function<void()>& after_piece,
                                            const ValuesOf& values_of = as_it_is) {
  return write_weights(named_tensors(model), std::move(file), steps, after_piece, values_of);
}

/// The same as TorchScript, for a model that came as such.
Result<WrittenWeights> write_script(Model& model, PendingFile file, const std::function<void()>& after_piece);

}  // namespace remuda::train
