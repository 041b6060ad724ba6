// TrainJob: what a training run is asked to do, as plain data. The TOML file is its only form outside the program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "balance/policy.h"
#include "balance/role.h"
#include "base/result.h"

namespace remuda::job {

enum class DataFormat { idx, images, cifar, tokens };
enum class Color { rgb, gray };
enum class Optimizer { sgd, adamw };
enum class Schedule { constant, cosine };
enum class Loss { cross_entropy, nll, mse };
enum class Norm { group, batch };
enum class Decay { all, matrices };
enum class Switch { off, on };
enum class Tf32 { off, on, convolutions };
enum class UpdatesOn { device, host };
enum class Held { whole, sharded };
enum class Recompute { none, blocks, automatic };
enum class Activations { device, host, automatic };
enum class Unit { samples, microbatches };
enum class BatchNorm { local, synchronized };
enum class Precision { fp32, bf16, fp16, automatic };
enum class Compression { none, one_bit, powersgd, automatic };

struct ModelSpec {
  std::string name;                   ///< mlp, resnet or gpt; empty when `path` is given
  std::string path;                   ///< a TorchScript file; empty when `name` is given
  std::string weights;                ///< a safetensors file to start from; empty: random, or what `path` holds
  Loss loss = Loss::cross_entropy;    ///< of a TorchScript model; the built-in ones have cross_entropy
  std::vector<int> hidden{256, 128};  ///< mlp: width of each hidden layer
  int width = 16;                     ///< resnet: channels of the first stage; gpt: embedding width
  int depth = 1;                      ///< resnet: blocks per stage; gpt: layers
  int heads = 4;                      ///< gpt
  int vocabulary = 0;                 ///< gpt: number of different tokens
  Norm norm = Norm::group;            ///< resnet

  bool operator==(const ModelSpec&) const = default;
};

/// One split of the data: a pair of IDX files, a folder or a file of images, or a token file.
struct DataFiles {
  std::string images, labels;  ///< format idx
  std::string tokens;          ///< format tokens
  std::string path;            ///< format images: a folder, or a tar file; format cifar: a folder, or a binary file

  bool operator==(const DataFiles&) const = default;
};

struct DataSpec {
  DataFormat format = DataFormat::idx;
  DataFiles train;
  std::optional<DataFiles> test;
  int size = 0;  ///< images: height and width that all are brought to; 0 = those of the first, which all must have
  Color color = Color::rgb;       ///< images: 3 channels or 1
  Switch flip = Switch::off;      ///< images: half of them mirrored, to train with
  int crop = 0;                   ///< images: moved by up to so many pixels, to train with
  std::vector<double> mean, std;  ///< images: of each channel, in 0..1; empty: values of -1..1
  std::string transform;          ///< images: a TorchScript file of what is done to each; empty: nothing
  int context = 128;              ///< tokens: length of a window
  int padding = -1;               ///< tokens: targets with this value do not count; -1 = none
  int cache_mib = 0;              ///< images: memory for decoded ones, of each split and host; 0 = none
  int workers = -1;  ///< threads that make batches ahead; -1: as many as cores where images are decoded, else none

  bool operator==(const DataSpec&) const = default;
};

struct TrainSpec {
  int epochs = 1;
  int max_steps = 0;  ///< stop after this many steps; 0 = no limit
  int global_batch = 0;
  int micro_batch = 0;  ///< samples, for BalanceSpec::unit microbatches; else 0
  Optimizer optimizer = Optimizer::sgd;
  double learning_rate = 0.1;
  Schedule schedule = Schedule::constant;  ///< of the learning rate; cosine: down to 0 over the run
  double momentum = 0.9;                   ///< sgd
  double weight_decay = 0.0;
  Decay decay = Decay::all;  ///< what weight_decay is for: all parameters, or those of two and more dimensions
  double clip_norm = 0;      ///< the gradient's norm is limited to it; 0 = no limit
  double average = 0;        ///< the part of the weights' running average that each step keeps; 0 = no average
  uint64_t seed = 1;
  Precision precision = Precision::fp32;        ///< what devices compute in, where they can
  Precision gradients = Precision::fp32;        ///< what gradients are sent in, to be added up in float32: fp32 or bf16
  Compression compression = Compression::none;  ///< of what hosts send each other, after a warm-up
  int compression_after = 0;                    ///< steps of the warm-up; 0: a part of the run's, see warm_up_of()
  int compression_rank = 4;                     ///< powersgd: of the matrices that hosts send
  Tf32 tf32 = Tf32::convolutions;               ///< what computes products of float32 in 19 bits, on hardware for it
  Switch autotune = Switch::off;            ///< convolutions: try the libraries' algorithms first, and take the fastest
  Switch deterministic = Switch::off;       ///< kernels that give the same bits each time, and no others
  BatchNorm batch_norm = BatchNorm::local;  ///< whose samples it normalises: each device's own, or those of all
  Switch encrypt = Switch::on;              ///< connections between hosts
  int streams = 4;                          ///< connections that two hosts exchange gradients and parameters over
  Switch device_collectives = Switch::on;  ///< buckets go from device to device, where their maker has a library for it
  int check_every = 100;                   ///< steps between comparisons of all ranks' parameters
  double bucket_mib = 4;                   ///< gradients are reduced in buckets of about this size

  bool operator==(const TrainSpec&) const = default;
};

/// How a device's memory is saved.
struct MemorySpec {
  Recompute recompute = Recompute::none;  ///< what is computed again in backward() instead of being kept
  int recompute_blocks = 0;               ///< so many, from the first one on; 0: all
  int accumulate = 1;                     ///< a device computes its part of a step in so many pieces, one after another
  Activations activations = Activations::device;  ///< where what backward() needs of a forward pass lies meanwhile
  UpdatesOn optimizer = UpdatesOn::device;        ///< where the optimizer keeps its state, and updates parameters
  Held parameters = Held::whole;     ///< what each device holds of the blocks' between steps: all, or its part
  Switch empty_cache = Switch::off;  ///< what allocators keep of freed memory goes back to the devices

  bool operator==(const MemorySpec&) const = default;
};

/// Other ways to do the same, whose gain is to be measured on a device; docs/train.md has what each does.
struct EngineSpec {
  Switch separate_streams = Switch::off;
  Switch equal_parts = Switch::off;
  Switch bucket_by_latency = Switch::off;
  Switch fused_attention = Switch::on;
  Switch script_fusers = Switch::on;
  Switch pinned_copies = Switch::off;
  Switch fewer_waits = Switch::off;

  bool operator==(const EngineSpec&) const = default;
};

struct BalanceSpec {
  balance::BalancePolicy policy = balance::BalancePolicy::automatic;
  std::vector<double> shares;        ///< for fixed: one weight per device
  std::vector<double> state_shares;  ///< of the optimizer's state, one weight per device; empty: by their memory
  Unit unit = Unit::samples;         ///< of which each device takes a whole number

  bool operator==(const BalanceSpec&) const = default;
};

/// The device of one rank.
struct DeviceSpec {
  std::string use;                              ///< a device id, such as cpu:0
  double slowdown = 1.0;                        ///< pretend to be this many times slower
  bool shared = false;                          ///< other ranks may compute on it, too
  balance::Role role = balance::Role::compute;  ///< what it is there for

  bool operator==(const DeviceSpec&) const = default;
};

/// What a run leaves behind, besides its report.
struct OutputSpec {
  std::string weights;       ///< a file for the trained weights
  int sample = 0;            ///< tokens to generate at the end
  std::string prompt;        ///< text to go on from; empty: a new line
  double temperature = 0.8;  ///< scores are divided by it; 0: always the likeliest token
  int top_k = 0;             ///< choose among so many of the likeliest tokens; 0: among all
  int profile = 0;           ///< so many steps are recorded: what each rank does in them; 0: none
  std::string trace;         ///< a file for the record
  std::string tensorboard;   ///< a folder for what TensorBoard shows of the run

  bool operator==(const OutputSpec&) const = default;
};

/// When the state of a run is kept, so that it can go on after it was ended.
struct CheckpointSpec {
  std::string folder;           ///< empty: never
  int every_steps = 0;          ///< 0: not by steps
  double every_minutes = 0;     ///< 0: not by time
  int keep = 2;                 ///< so many of the newest
  Switch resume = Switch::off;  ///< go on from the newest that is whole, if there is one

  bool operator==(const CheckpointSpec&) const = default;
};

/// How a run goes on when it loses some of its ranks, and where others join it.
struct ElasticSpec {
  int ranks_lost = 0;      ///< at most so many in all; 0: when one is lost, the run ends
  bool buddy = false;      ///< each rank has a copy of what another one owns
  double timeout_s = 300;  ///< a rank that others have waited for so long is lost
  std::string join;        ///< where other ranks may join: a port or HOST:PORT; empty: nowhere

  bool operator==(const ElasticSpec&) const = default;
};

/// Which devices to ask for: the words of `remuda run`, each as it is typed there. place checks what they say.
struct PlacementSpec {
  int gpus = 0;  ///< 0: not given
  std::string mem, model, cap, link, share, where;
  std::vector<std::string> device;
  bool same_model = false, any_model = false, cpu = false;

  bool asks() const { return *this != PlacementSpec{}; }
  bool operator==(const PlacementSpec&) const = default;
};

struct TrainJob {
  ModelSpec model;
  DataSpec data;
  TrainSpec train;
  MemorySpec memory;
  EngineSpec engine;
  OutputSpec output;
  CheckpointSpec checkpoint;
  ElasticSpec elastic;
  BalanceSpec balance;
  std::vector<DeviceSpec> devices;
  PlacementSpec placement;

  bool operator==(const TrainJob&) const = default;
};

/// What the command line puts in place of the file's values. A setting that changes the kind of model, data, optimizer
/// or balance takes along the file's keys that were for the former kind: `balance.policy=even` drops the file's shares.
struct JobOverrides {
  std::vector<std::string> settings;  ///< KEY=VALUE, as in balance.policy=even; VALUE is TOML, or else a plain string
  std::vector<DeviceSpec> devices;    ///< in place of all [[device]] entries and of [placement], when not empty
  bool devices_follow = false;        ///< others will be: what must fit their number is not checked now
  bool writes_files = true;           ///< false: the job's keys of files to write do not count
};

/// A job file's text, with overrides applied and relative paths made absolute (against the folder of `name`), and the
/// job it describes. The text is what workers are given: they read it with the same function.
struct ParsedJob {
  TrainJob job;
  std::string text;
};

/// Reads and checks a job: TOML errors with file and line, unknown keys with the nearest known one, values out of
/// range, keys that do not go together. Does not touch the data files. A job without devices is allowed: a caller that
/// chooses them parses again with them as overrides, which checks the global batch and the shares against their number.
Result<ParsedJob> parse_job(const std::string& text, const std::string& name, const JobOverrides& overrides = {});

/// The refusal of a device that is named more than once, unless every [[device]] that names it is shared.
std::string named_twice(const std::string& device);

/// The refusal of a train.precision that no device of the job computes in, adding up in float32.
std::string precision_refusal(Precision precision, const std::string& libtorch);

/// The refusal of train.batch_norm = "synchronized" for a model from TorchScript.
std::string synchronized_norm_refusal();

/// The ranks' devices, by names that people can tell apart: made_distinct() of base/text.h.
std::vector<std::string> device_names(const TrainJob& job);

/// Its word in a job file.
const char* name_of(Compression compression);

/// The samples that each rank's share of a batch is a multiple of.
int share_unit(const TrainJob& job);

/// Where each rank cannot have at least one of what the batch is split into: what is missed, as in "train.global_batch
/// is 2, but each of the 3 devices needs at least one sample". Else empty.
std::string batch_too_small(const TrainJob& job);

/// What each rank does: compute, where its role is automatic.
std::vector<balance::Role> roles_of(const TrainJob& job);
/// The ranks that do this.
std::vector<int> ranks_with(const TrainJob& job, balance::Role role);
bool computes(const TrainJob& job, int rank);

/// The word of a job file for a role.
std::string role_word(balance::Role role);

/// The refusal of a job of which no device takes samples.
std::string nobody_computes();

/// How many ranks compute on the device of this rank.
int ranks_on_device_of(const TrainJob& job, int rank);

/// The same job on some of its devices: those of `ranks`, in this order, with their weights.
TrainJob on_ranks(TrainJob job, const std::vector<int>& ranks);

/// A key and its value, as it is written in a job file.
struct Setting {
  std::string key, value;

  bool operator==(const Setting&) const = default;
};

/// All keys but paths and those of [placement]: what must be the same on all ranks of a run. A path may be another on
/// each machine, and so may what was asked for there.
std::vector<Setting> settings_of(const TrainJob& job);

/// Of these, what the ranks of a run must have in common with one that joins it: neither devices nor how the run began.
std::vector<Setting> settings_to_join(const TrainJob& job);

/// The files that the job reads: the keys of paths that are given.
std::vector<Setting> files_of(const TrainJob& job);

/// The files that the job writes: the keys that are given.
std::vector<Setting> outputs_of(const TrainJob& job);

/// Every key with its type, range, default and meaning, as text for a terminal.
std::string job_reference();

}  // namespace remuda::job
