// Precision: the floating-point type that a device computes in, beside parameters and gradients that stay float32.
//
// Every rank may compute in another type. Matrix products and convolutions run in it (libtorch's autocast decides which
// operations do), and gradients come out in float32 again, so that what ranks add up and what owners update is float32
// everywhere. float16 needs a loss scale, since small gradients vanish in it (Micikevicius et al. 2018, "Mixed
// Precision Training", arXiv:1710.03740).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/communicator.h"
#include "job/train_job.h"
#include "train/torch_compat.h"

namespace remuda::train {

/// The type in which `device` computes for a job with this precision; float32 where it cannot do what is asked, or
/// would add up products in the short type itself, which libtorch is told not to from then on, in the whole process. A
/// model whose parameters are float64 computes in that.
torch::ScalarType compute_type(job::Precision precision, torch::Device device,
                               torch::ScalarType parameters = torch::kFloat);

/// What applies to the whole process: train.tf32, train.autotune and train.deterministic, and that sums of 16-bit
/// products are float32 in all their parts. Nothing where no device has them. Before the first product on a device.
void configure_arithmetic(const job::TrainSpec& spec);

/// Collective. The type in which each rank computes, of which `mine` is this one's. A type that was asked for by name
/// and that no device has, or that is not for the model, is a usage error.
Result<std::vector<torch::ScalarType>> agree_on_precision(comm::Communicator& communicator, job::Precision precision,
                                                          torch::ScalarType mine);

/// The type in which parameters are sent to the others: the one of 16 bits in which every rank computes; nothing where
/// there is none.
std::optional<torch::ScalarType> common_short_type(const std::vector<torch::ScalarType>& types);

/// The type in which gradients of parameters of this type are sent; that they are float64 and `asked` is shorter is a
/// usage error.
Result<torch::ScalarType> gradient_type(job::Precision asked, torch::ScalarType parameters);

/// "float32", "float64", "bf16" or "fp16".
std::string precision_name(torch::ScalarType type);

/// While it lives, forward passes on this thread and device compute in `type`. Nothing for those of more than 16 bits.
class Autocast {
 public:
  /// The type in which forward passes of this thread compute on `device` at present.
  static torch::ScalarType type_on(torch::Device device);

  Autocast(torch::Device device, torch::ScalarType type);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  torch::DeviceType device_;
  bool active_;
  bool was_enabled_ = false;
  torch::ScalarType before_ = torch::kFloat;
};

/// A tensor of 16 bits as float32, others as they are: losses and normalisation add up, and libtorch's CPU kernels want
/// input and weights of one type.
torch::Tensor widened(const torch::Tensor& x);

/// The factor of the loss on ranks that compute in float16. All ranks keep it, and change it alike, as all know of each
/// step whether it was finite: a step that was not halves it, many in a row that were double it.
///
/// float16 ends at 65504, and backward() runs on a sum of losses: the factor is that of a mean over the global batch,
/// or the gradients of a large batch would overflow at any factor. Powers of two change no bit of a gradient, and as
/// gradients are divided by the factor before they leave, ranks may take different ones.
class LossScale {
 public:
  /// The factor of a rank that computes in `type`, in a step of about `units` loss units on all ranks together. Less
  /// than one counts as one. The same in all backward passes of a step.
  double of(torch::ScalarType type, double units) const;
  /// Where it stands, and to go on from there.
  double scale() const { return scale_; }
  int finite_in_a_row() const { return finite_in_a_row_; }
  void resume(double scale, int finite_in_a_row) {
    scale_ = scale;
    finite_in_a_row_ = finite_in_a_row;
  }
  /// After each step. False when the step was not finite although the scale cannot be the reason any more.
  bool update(bool finite);

 private:
  static constexpr double kFirst = 65536, kLeast = 1, kMost = 65536 * 256;
  static constexpr int kGrowAfter = 2000;  ///< as torch.cuda.amp.GradScaler has it
  double scale_ = kFirst;
  int finite_in_a_row_ = 0;
};

}  // namespace remuda::train
