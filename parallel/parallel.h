// Data parallel training for libtorch programs: one model on any number of unlike devices, a process for each.
//
// Each rank (process) runs backward() on the *sum* of the losses of its part of the batch, and says how many losses
// that are: its weight. All ranks then apply the gradient of the mean loss over the whole batch, however it is split:
// 3 samples here and 61 there, or none at all. Each part of the parameters has one owner, which updates it and sends it
// to all, so the parameters are the same bits on all ranks whatever their devices, and the optimizer's state is divided
// by the devices' memory.
//
// Example:
//   Options options;
//   options.optimizer = AdamW{};
//   DataParallel parallel(group, *model, options);
//   for (int64_t first = 0; first + 64 <= inputs.size(0); first += 64) {
//     const Part part = parallel.my_part(64);
//     torch::Tensor loss = torch::zeros({});
//     parallel.begin(double(part.size));
//     if (part.size > 0) {
//       const auto scores = model->forward(inputs.narrow(0, first + part.begin, part.size));
//       loss = torch::mse_loss(scores, targets.narrow(0, first + part.begin, part.size), torch::Reduction::Sum);
//       loss.backward();
//     }
//     const Step step = parallel.step(0.01, loss);
//     if (!step.applied) std::cerr << step.skipped << "\n";
//   }
//
// `group` is Group::from_environment(): `remuda run -n 2 --each -- ./program`, torchrun and others start the ranks.
//
// Collective functions are called by all ranks, in the same order. A rank that dies, or that calls another function,
// ends the wait of the others with an Error that names it; every wait has an end. One thread at a time; the hooks that
// DataParallel puts on the parameters run wherever backward() runs them.
//
// C++17, libtorch, and nothing else. The page for users: docs/cpp.md.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <torch/torch.h>
#include <variant>
#include <vector>

namespace remuda::parallel {

/// What every function here throws when it cannot do its work; what() is one sentence. Exceptions of libtorch pass
/// through. After an Error of a collective function the group cannot be used any more.
class Error : public std::runtime_error {
 public:
  enum class Kind {
    usage,     ///< the call, a file or the environment is wrong; a program should end with status 2
    failed,    ///< it was tried, and failed
    lost_peer  ///< another rank went away: its own error is the cause
  };
  Error(Kind kind, const std::string& sentence, int peer = -1)
      : std::runtime_error(sentence), kind_(kind), peer_(peer) {}
  Kind kind() const { return kind_; }
  /// Of lost_peer: the rank that went away.
  int peer() const { return peer_; }

 private:
  Kind kind_;
  int peer_;
};

/// Names and values that must be the same on all ranks, such as a seed or a file's content; ranks that differ are
/// refused, with what differs.
using Terms = std::map<std::string, std::string>;

/// Where a process stands among those that train together, for programs that have a launcher of their own.
struct Place {
  int rank = 0, size = 1;
  std::string master_address = "127.0.0.1";  ///< where rank 0 listens
  int master_port = 0;
  std::string bind_address = "127.0.0.1";  ///< where this rank listens for others
  std::string secret;  ///< both ends of each connection prove that they know it; between hosts, of 128 bits at least
  torch::Device device = torch::kCPU;
  double connect_timeout_s = 60;
  bool encrypt = true;  ///< connections between hosts; the same on all ranks
  int streams = 4;      ///< connections that two hosts exchange over, each with a thread; the same on all ranks
};

struct GroupState;

/// The processes that train together. Copies are the same group; it lives as long as one of them or of its
/// DataParallels.
class Group {
 public:
  /// Collective. RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and REMUDA_SECRET say who and where the ranks are,
  /// REMUDA_TORCH_DEVICE what this one computes on (cpu unless set), REMUDA_BIND the address that this host has for
  /// others. Without WORLD_SIZE it is a group of one. `encrypt`: connections between hosts; the same on all ranks.
  static Group from_environment(const Terms& terms = {}, bool encrypt = true);
  /// Collective. The same for a place that is known otherwise.
  static Group connect(const Place& place, const Terms& terms = {});

  int rank() const;
  int size() const;
  torch::Device device() const;
  /// As the report of a run has it: "shared memory", "tcp, encrypted", ...; docs/run-report.md lists them.
  std::string transport() const;
  /// The part of the work that each rank should get by its launcher's guess (REMUDA_SHARES); even where there is none,
  /// or not for all ranks.
  std::vector<double> shares() const;

  /// Collective, between steps: adds up each value over all ranks. As many values on each.
  std::vector<double> sum(const std::vector<double>& values) const;
  /// Collective, between steps: returns when all ranks have called it.
  void barrier() const;
  /// The longest wait for another rank; 300 unless set. The same on all ranks.
  void set_timeout(double seconds) const;

 private:
  friend class DataLoader;
  friend class DataParallel;
  explicit Group(std::shared_ptr<GroupState> state) : state_(std::move(state)) {}
  const std::shared_ptr<GroupState>& state() const;
  std::shared_ptr<GroupState> state_;
};

/// For programs that compute on a CPU, first in main(). malloc keeps the memory of freed tensors, as the next step
/// needs it again, and OpenBLAS leaves the cores to OpenMP's threads, unless OPENBLAS_NUM_THREADS is set: the two
/// together slow each other down many times over.
void tune_for_cpu();

/// As torch::optim has them.
struct Sgd {
  double momentum = 0;
};
struct AdamW {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
};

/// What a device computes in. Parameters, gradients and what is sent are of the parameters' own type, and each rank may
/// compute in another type.
enum class Precision {
  fp32,
  bf16,
  fp16,
  automatic  ///< the best that each device has
};

/// The same on all ranks, except for `precision`, `optimizer_on_host` and `trial`.
struct Options {
  std::variant<Sgd, AdamW> optimizer;
  double weight_decay = 0;
  /// Of the parameters for which this says so, such as biases and those of norms; all others decay.
  std::function<bool(const std::string& name, const torch::Tensor&)> without_decay;
  /// In effect where forward passes run under an Autocast; ranks may ask for different ones. A type that no device has
  /// is refused.
  Precision precision = Precision::fp32;
  /// What gradients are sent in: fp32, or bf16 for half of the bytes, added up in float32 all the same. In effect where
  /// they go through memory of the host; see device_collectives.
  Precision gradients = Precision::fp32;
  double clip_norm = 0;  ///< the largest norm of the gradient; a longer one is shortened to it. 0: no limit
  double average = 0;    ///< above 0: an average of the weights is kept, too; the part of it that each step keeps
  /// Proportions of the batch, one per rank. Empty: by measured speed, adjusted while training goes on.
  std::vector<double> shares;
  /// Above 1: a part of a batch is a whole number of so many samples, except for the last part. A rank that computes
  /// them one after another (see accumulate()) gives batch norm the same number of samples on all ranks.
  int64_t micro_batch = 1;
  /// Proportions of the optimizer's state, one per rank. Empty: by the memory of the devices; where `shares` are empty,
  /// too, it moves to where steps have shown that it is updated faster, as far as there is room.
  std::vector<double> state_shares;
  /// This rank keeps the optimizer's state in memory of the host, whose CPU updates the parameters: for a model that
  /// has no room on its device otherwise. A change of parameters after the first step is not seen there.
  bool optimizer_on_host = false;
  double bucket_mib = 4;  ///< gradients are sent in pieces of about this size
  /// Pieces go from GPU to GPU where each rank has one of its own, all of one maker, whose library (NCCL, RCCL) is
  /// there and passes a trial. False: they always go through memory of the host.
  bool device_collectives = true;
  /// Runs one backward() of a sample, from which the order is learned in which gradients become ready. Without it they
  /// are sent in the reverse order of the parameters, which for most models is the same.
  std::function<void()> trial;
};

/// Of a batch: which samples are this rank's. All parts together are the batch.
struct Part {
  int64_t begin = 0, size = 0;
};

/// The result of a step over all ranks, the same on every rank.
struct Step {
  bool applied = false;
  std::string skipped;  ///< why it was not applied, in one sentence; no rank has changed anything then
  double weight = 0;    ///< of all ranks
  double loss = 0;      ///< the mean over the whole batch
  double norm = 0;      ///< of the gradient, before it was clipped
};

/// Trains the parameters of a module that require a gradient. They must be on the group's device, and of one type,
/// float32 or float64.
class DataParallel {
 public:
  /// Collective. Gives all ranks rank 0's parameters. Ranks whose models or options differ are refused. The module
  /// stays in place as long as this lives; the parameters keep their values when this ends. Where this ends between
  /// begin() and step(), as when an exception leaves the loop, the group cannot be used any more.
  DataParallel(const Group& group, torch::nn::Module& module, const Options& options = {});
  DataParallel(const Group& group, torch::jit::Module& module, const Options& options = {});
  DataParallel(DataParallel&&) noexcept;
  DataParallel& operator=(DataParallel&&) noexcept;
  ~DataParallel();

  /// This rank's part of the next batch, of which `batch` is the size on all ranks together; the same call on all of
  /// them. The time from here to step() is what this rank's speed is measured by.
  Part my_part(int64_t batch);

  /// Before a backward() that is not the last one of the step: its gradients add to those of the next. `weight`: of its
  /// losses.
  void accumulate(double weight);
  /// Before the last, or only, backward() of the step; also where this rank has no samples, and runs none. Checks that
  /// the model is still the one that this was made with. `weight`: the number of losses in the sum, such as samples or
  /// the tokens that count.
  void begin(double weight);
  /// In a step: loss.backward(), on the loss times the scale that float16 needs. In other precisions that is the same.
  /// A loss that requires no gradient, or is a mean, is refused by step(), on all ranks.
  void backward(const torch::Tensor& loss);
  /// After begin(), where this rank could not do its part, as when it ran out of memory: step() is then skipped by all,
  /// and later parts of this rank are smaller. Frees what the failed backward() holds.
  void give_up();
  /// Collective. Adds up, updates, sends the new parameters to all. Ranks that say another learning rate, or asked
  /// my_part() for another batch, are refused. `loss`: the sum of this rank's losses, one number. One that is a mean
  /// over more than one loss is refused, as autograd remembers what has made it.
  Step step(double learning_rate, const torch::Tensor& loss = {});

  /// Collective, between steps. Exchanges the parameters for their average (Options::average); once more, back.
  void swap_average();
  /// Collective, between steps. Running statistics, as those of batch norm, are each rank's own: replaces them by their
  /// mean, by the weights of the steps since the last call.
  void average_buffers();
  /// Collective, between steps. Compares the parameters of all ranks, bit by bit.
  void check() const;

  /// What this rank computes in: "float32", "float64", "bf16" or "fp16".
  std::string precision() const;
  /// The library by which gradients go from GPU to GPU, as "NCCL 2.21.5"; or a sentence that begins with "none: " and
  /// says why they go through memory of the host.
  std::string device_library() const;
  /// Bytes of the optimizer's state on this rank.
  size_t state_bytes() const;

 private:
  friend class Autocast;
  friend class DataLoader;
  struct Impl;
  Impl& impl() const;
  /// What my_part() would give if it were called now.
  Part part_of(int64_t batch) const;
  std::unique_ptr<Impl> impl_;
};

/// Samples of a program's own as batches: in an order that is another in each epoch, the same on all ranks and for any
/// number of them; each rank makes its own part only, on threads, while the step before computes.
///
///   DataLoader::Options options;
///   options.batch = 256;
///   DataLoader loader(group, images.size(), [&](int64_t index, int64_t) { return images.get(index); }, options);
///   while (loader.epoch() <= 10) {
///     const auto [part, data, target] = loader.next(parallel);
///     ...                                       // begin(), backward(), step()
///   }
class DataLoader {
 public:
  struct Options {
    int64_t batch = 0;  ///< of all ranks together; the last one of an epoch has what is left
    uint64_t seed = 1;  ///< of the order
    bool shuffle = true;
    int workers = 0;  ///< threads, for which next() works along; 0: it makes all samples itself
  };
  /// As torch::data::datasets give it: two tensors on the CPU, each of one shape and type for all samples.
  using Sample = torch::data::Example<>;
  struct Batch {
    Part part;             ///< of the batch, this rank's
    torch::Tensor data;    ///< of all samples of the part, on the CPU: [part.size, ...]
    torch::Tensor target;  ///< of the same samples
  };

  /// Collective, between steps; the same on all ranks, except for the workers. `make`: the sample `index` of 0 to
  /// `samples` - 1, as it is in this epoch, the first of which is 1. It depends on these two only, and is called by
  /// several threads at once where there are workers.
  DataLoader(const Group& group, int64_t samples, std::function<Sample(int64_t index, int64_t epoch)> make,
             const Options& options);
  DataLoader(DataLoader&&) noexcept;
  DataLoader& operator=(DataLoader&&) noexcept;
  ~DataLoader();

  /// In place of DataParallel::my_part(). One epoch follows another. What `make` throws comes as an Error.
  Batch next(DataParallel& parallel);
  /// Of the batch that next() gives next; the first is 1.
  int64_t epoch() const;

 private:
  struct Impl;
  Impl& impl() const;
  std::unique_ptr<Impl> impl_;
};

/// While it lives, forward passes on this thread compute in the precision of `parallel`, by libtorch's autocast. It
/// ends before backward().
class Autocast {
 public:
  explicit Autocast(const DataParallel& parallel);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// block(input), of which backward() keeps `input` and `block` only, and runs the block once more: less memory, for
/// one more forward pass. Gradients are the same bits, random numbers and `buffers`, those of the block, included.
///
///   x = recomputed([layer](const torch::Tensor& in) { return layer->forward(in); }, x, layer->buffers());
///
/// The block owns what it uses, leaves `input` as it is (one that changes it throws), and may use parameters and
/// constants; any other tensor that needs a gradient must be `input`. What it computes while it trains must not depend
/// on buffers that it changes itself. Where blocks share a parameter with each other or with the rest of the model,
/// Options::trial is needed: it shows how often that becomes ready.
torch::Tensor recomputed(std::function<torch::Tensor(const torch::Tensor&)> block, const torch::Tensor& input,
                         std::vector<torch::Tensor> buffers = {});

/// The same of a module with its parameters and buffers, which marks it as a block. Its parameters may be shared with
/// other blocks and with the rest of the model, and still each becomes ready once: gradients are the same bits (in
/// float32, where a block uses a shared one once), and no trial is needed. A block within it is marked so, too. A
/// parameter that it uses without having registered it throws in backward(), as its gradient would be lost. `forward`
/// owns what it uses.
///
///   x = recomputed(*layer, [layer, mask](const torch::Tensor& in) { return layer->forward(in, mask); }, x);
torch::Tensor recomputed(const torch::nn::Module& module, std::function<torch::Tensor(const torch::Tensor&)> forward,
                         const torch::Tensor& input);
/// recomputed(layer, x) in place of layer(x).
template <typename Module>
torch::Tensor recomputed(const std::shared_ptr<Module>& module, const torch::Tensor& input) {
  return recomputed(*module, [module](const torch::Tensor& x) { return module->forward(x); }, input);
}
template <typename Module>
torch::Tensor recomputed(const torch::nn::ModuleHolder<Module>& module, const torch::Tensor& input) {
  return recomputed(module.ptr(), input);
}

/// Batch norm, of [n, channels, ...], over the samples of all ranks: while a DataParallel trains it, outputs, gradients
/// and running statistics are those of one device that has the whole batch. The first backward passes of a step are
/// normalised together on all ranks, then the second ones (see accumulate()), ...; a rank may have fewer than others,
/// or no samples. At other times, without gradients and in evaluation it is torch's own. It needs Options::trial, which
/// shows the order of the calls: each forward pass that trains takes that way through the model, and has its backward
/// pass before the next one.
class SynchronizedBatchNormImpl
    : public torch::nn::NormImplBase<2, SynchronizedBatchNormImpl, torch::nn::BatchNormOptions> {
 public:
  using torch::nn::NormImplBase<2, SynchronizedBatchNormImpl, torch::nn::BatchNormOptions>::NormImplBase;
  torch::Tensor forward(const torch::Tensor& input);
  void reset() override;

 protected:
  void _check_input_dim(const torch::Tensor& input) override;

 private:
  friend class SynchronizedNorms;
  std::function<torch::Tensor(const torch::Tensor&)> together_;  ///< null: there is no DataParallel
  const void* owner_ = nullptr;
};
TORCH_MODULE(SynchronizedBatchNorm);

/// Copies parameters and buffers from a safetensors file, which must have the same names and shapes. Before
/// DataParallel, or on all ranks.
void load_weights(torch::nn::Module& module, const std::string& path);
void load_weights(torch::jit::Module& module, const std::string& path);

/// Writes parameters and buffers as safetensors, whole or not at all. For one rank, say rank 0: all have the same.
void save_weights(const torch::nn::Module& module, const std::string& path);
void save_weights(const torch::jit::Module& module, const std::string& path);

}  // namespace remuda::parallel
