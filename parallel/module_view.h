// ModuleView: a module of the user's, written in C++ or loaded from TorchScript, by the names of its tensors.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "parallel/parallel.h"
#include "train/model/model.h"

namespace remuda::parallel {

/// Each call asks the module anew.
struct ModuleView {
  std::function<std::vector<train::NamedTensor>()> parameters, buffers;

  /// Those that require a gradient, each once: tied weights are one tensor under several names.
  std::vector<train::NamedTensor> trained() const;
  /// Parameters and buffers.
  std::vector<train::NamedTensor> all() const;
};

/// The module outlives the view.
ModuleView view_of(const torch::nn::Module& module);
ModuleView view_of(const torch::jit::Module& module);

/// What of the module a step relies on, and whether it still is as it was.
class ModuleWatch {
 public:
  ModuleWatch() = default;
  /// As the module is now.
  explicit ModuleWatch(ModuleView view);
  const ModuleView& view() const { return view_; }
  /// What has changed since, as in "fc.weight was replaced"; empty where nothing has.
  std::string change() const;
  /// Those of its tensors that lie where they did, and those that were given other memory.
  std::vector<torch::Tensor> unmoved() const { return where(true); }
  std::vector<torch::Tensor> moved() const { return where(false); }

 private:
  struct Seen {
    std::string name;
    torch::Tensor tensor;
    const void* memory;
    torch::ScalarType type;
    torch::Device device;
  };
  std::vector<torch::Tensor> where(bool unmoved) const;

  ModuleView view_;
  std::vector<Seen> seen_;
};

}  // namespace remuda::parallel
