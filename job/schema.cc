#include "job/schema.h"

#include <algorithm>
#include <utility>

namespace remuda::job {
namespace {

#define MEMBER(path) [](TrainJob& job) -> auto& { return job.path; }

constexpr Range kSteps{0, 2147483647};
constexpr Range kCount{1, 2147483647};
constexpr Range kBatch{1, 16777216};
constexpr Range kWidth{1, 1048576};
constexpr Range kDepth{1, 10000};
constexpr Range kStreams{1, 16};
constexpr Range kRank{1, 256};
constexpr Range kAtLeast0{0};
constexpr Range kAtLeast1{1};
constexpr Range kAbove0{.low = 0, .above_low = true};
constexpr Range kFraction{.low = 0, .high = 1, .below_high = true};
constexpr Range kBucketMib{.low = 0, .high = 4096, .above_low = true};
constexpr Range kDevices{0, 256};
constexpr Range kSample{0, 65536};
constexpr Range kProfiledSteps{0, 1000};  // a trace of more is too large to look at
constexpr Range kSide{0, 4096};
constexpr Range kUnit{0, 1};
constexpr Range kThreads{-1, 256};
constexpr Range kToken{-1, 2147483647};

/// A choice that is kept as its word.
ChoiceField word(const std::vector<std::string>& words, std::string& (*member)(TrainJob&)) {
  return {words, [words, member](TrainJob& job, size_t index) { member(job) = words.at(index); }, member};
}

DataFiles& test_files(TrainJob& job) {
  if (!job.data.test) job.data.test.emplace();
  return *job.data.test;
}

DeviceSpec& last_device(TrainJob& job) { return job.devices.back(); }

Condition for_model(std::vector<std::string> names) { return {"model.name", std::move(names)}; }
Condition for_data(std::vector<std::string> formats) { return {"data.format", std::move(formats)}; }

std::vector<Key> model_keys() {
  const Need required = Need::required, optional = Need::optional;
  return {
      {"model.name", word({"mlp", "resnet", "gpt"}, MEMBER(model.name)), optional, std::nullopt,
       "a built-in model; or give model.path"},
      {"model.path", PathField{MEMBER(model.path)}, optional, std::nullopt,
       "a TorchScript file; docs/train.md says what it takes and gives"},
      {"model.weights", PathField{MEMBER(model.weights)}, optional, {}, "a safetensors file to start from"},
      {"model.loss", choice<Loss>({"cross_entropy", "nll", "mse"}, MEMBER(model.loss)), optional,
       Condition{"model.path", {}}, "what the model's output is compared by"},
      {"model.hidden", IntegersField{MEMBER(model.hidden), kWidth}, optional, for_model({"mlp"}),
       "width of each hidden layer"},
      {"model.width", IntegerField{MEMBER(model.width), kWidth}, optional, for_model({"resnet", "gpt"}),
       "channels of the first stage, or embedding width"},
      {"model.depth", IntegerField{MEMBER(model.depth), kDepth}, optional, for_model({"resnet", "gpt"}),
       "blocks per stage, or layers"},
      {"model.norm", choice<Norm>({"group", "batch"}, MEMBER(model.norm)), optional, for_model({"resnet"}),
       "normalisation"},
      {"model.heads", IntegerField{MEMBER(model.heads), kDepth}, optional, for_model({"gpt"}),
       "attention heads; width is a multiple of it"},
      {"model.vocabulary", IntegerField{MEMBER(model.vocabulary), kCount}, required, for_model({"gpt"}),
       "number of different tokens"},
  };
}

std::vector<Key> data_keys() {
  const Need required = Need::required, optional = Need::optional, with_table = Need::with_table;
  const Condition any_images = for_data({"idx", "images", "cifar"}), with_path = for_data({"images", "cifar"});
  const auto images = [](TrainJob& job) -> auto& { return test_files(job).images; };
  const auto labels = [](TrainJob& job) -> auto& { return test_files(job).labels; };
  const auto path = [](TrainJob& job) -> auto& { return test_files(job).path; };
  const auto tokens = [](TrainJob& job) -> auto& { return test_files(job).tokens; };
  return {
      {"data.format",
       choice<DataFormat>({"idx", "images", "cifar", "tokens"}, MEMBER(data.format)),
       optional,
       {},
       "kind of data files"},
      {"data.train.images", PathField{MEMBER(data.train.images)}, required, for_data({"idx"}), "IDX file to train on"},
      {"data.train.labels", PathField{MEMBER(data.train.labels)}, required, for_data({"idx"}), "its labels"},
      {"data.train.path", PathField{MEMBER(data.train.path)}, required, with_path,
       "folder or tar file of images, a folder for each class; or CIFAR's; short: data.train = \"FOLDER\""},
      {"data.train.tokens", PathField{MEMBER(data.train.tokens)}, required, for_data({"tokens"}),
       "token file to train on; short: data.train = \"FILE\""},
      {"data.test.images", PathField{images}, with_table, for_data({"idx"}), "IDX file to test with"},
      {"data.test.labels", PathField{labels}, with_table, for_data({"idx"}), "its labels"},
      {"data.test.path", PathField{path}, with_table, with_path, "folder or file to test with"},
      {"data.test.tokens", PathField{tokens}, with_table, for_data({"tokens"}), "token file to test with"},
      {"data.size", IntegerField{MEMBER(data.size), kSide}, optional, for_data({"images"}),
       "height and width that images are brought to; 0: as they are"},
      {"data.color", choice<Color>({"rgb", "gray"}, MEMBER(data.color)), optional, for_data({"images"}),
       "3 channels or 1, whatever the files have"},
      {"data.flip", choice<Switch>({"off", "on"}, MEMBER(data.flip)), optional, any_images,
       "train with half of the images mirrored"},
      {"data.crop", IntegerField{MEMBER(data.crop), kSide}, optional, any_images,
       "train with images moved by up to so many pixels, over black"},
      {"data.mean", NumbersField{MEMBER(data.mean), kUnit}, optional, any_images,
       "taken from the values 0..1 of each channel; without it, they are brought to -1..1"},
      {"data.std", NumbersField{MEMBER(data.std), kAbove0}, optional, any_images,
       "which they are divided by after that"},
      {"data.transform", PathField{MEMBER(data.transform)}, optional, any_images,
       "a TorchScript file of what is done to each image; docs/train.md says what it takes and gives"},
      {"data.cache_mib", IntegerField{MEMBER(data.cache_mib), kSteps}, optional, for_data({"images"}),
       "MiB of memory for decoded images, shared by the ranks of a host, of each set; 0: none"},
      {"data.context", IntegerField{MEMBER(data.context), kWidth}, optional, for_data({"tokens"}),
       "length of a window"},
      {"data.padding", IntegerField{MEMBER(data.padding), kToken}, optional, for_data({"tokens"}),
       "targets with this value do not count; -1: none"},
      {"data.workers",
       IntegerField{MEMBER(data.workers), kThreads},
       optional,
       {},
       "threads that make batches ahead; 0: none; -1: one for each core where images are decoded or transformed, else "
       "none"},
  };
}

std::vector<Key> train_keys() {
  const Need required = Need::required, optional = Need::optional;
  return {
      {"train.epochs", IntegerField{MEMBER(train.epochs), kCount}, optional, {}, "passes over the data"},
      {"train.max_steps", IntegerField{MEMBER(train.max_steps), kSteps}, optional, {}, "stop after these; 0: no limit"},
      {"train.global_batch",
       IntegerField{MEMBER(train.global_batch), kBatch},
       required,
       {},
       "samples per step, over all devices"},
      {"train.micro_batch", IntegerField{MEMBER(train.micro_batch), kBatch}, required,
       Condition{"balance.unit", {"microbatches"}}, "samples that go through the model at a time, on every device"},
      {"train.optimizer", choice<Optimizer>({"sgd", "adamw"}, MEMBER(train.optimizer)), optional, {}, "update rule"},
      {"train.schedule",
       choice<Schedule>({"constant", "cosine"}, MEMBER(train.schedule)),
       optional,
       {},
       "learning rate over the run: as it is, or down to 0 along a cosine"},
      {"train.learning_rate", NumberField{MEMBER(train.learning_rate), kAbove0}, optional, {}, "step size"},
      {"train.momentum", NumberField{MEMBER(train.momentum), kFraction}, optional,
       Condition{"train.optimizer", {"sgd"}}, "part of the last update that is kept"},
      {"train.weight_decay", NumberField{MEMBER(train.weight_decay), kAtLeast0}, optional, {}, "pull towards zero"},
      {"train.decay",
       choice<Decay>({"all", "matrices"}, MEMBER(train.decay)),
       optional,
       {},
       "what weight_decay is for; matrices: not for biases and norms"},
      {"train.clip_norm",
       NumberField{MEMBER(train.clip_norm), kAtLeast0},
       optional,
       {},
       "limit of the gradient's norm; 0: none"},
      {"train.average",
       NumberField{MEMBER(train.average), kFraction},
       optional,
       {},
       "test with a running average of the weights, each step keeping this part of it"},
      {"train.seed", SeedField{MEMBER(train.seed)}, optional, {}, "of parameters and of the order of samples"},
  };
}

/// What steps are computed in.
std::vector<Key> arithmetic_keys() {
  const Need optional = Need::optional;
  return {
      {"train.precision",
       choice<Precision>({"fp32", "bf16", "fp16", "auto"}, MEMBER(train.precision)),
       optional,
       {},
       "what devices compute in, where they can; auto: the fastest type of each"},
      {"train.batch_norm",
       choice<BatchNorm>({"local", "synchronized"}, MEMBER(train.batch_norm)),
       optional,
       {},
       "local: each device normalises its own samples; synchronized: those of all devices, as one device would"},
      {"train.tf32",
       choice<Tf32>({"off", "on", "convolutions"}, MEMBER(train.tf32)),
       optional,
       {},
       "products of float32 with 10 bits of mantissa, on GPUs that have them: in all products, or convolutions only"},
      {"train.autotune",
       choice<Switch>({"off", "on"}, MEMBER(train.autotune)),
       optional,
       {},
       "try the algorithms of convolutions first, on GPUs; for input of one size"},
      {"train.deterministic",
       choice<Switch>({"off", "on"}, MEMBER(train.deterministic)),
       optional,
       {},
       "the same run gives the same bits on GPUs, too, at the cost of speed; operators that cannot are refused"},
  };
}

/// What ranks exchange, and how.
std::vector<Key> exchange_keys() {
  return {
      {"train.gradients", choice<Precision>({"fp32", "bf16"}, MEMBER(train.gradients)), Need::optional, std::nullopt,
       "what gradients are sent in through memory of the host; they are added up in float32"},
      {"train.compression", choice<Compression>({"none", "1-bit", "powersgd", "auto"}, MEMBER(train.compression)),
       Need::optional, std::nullopt, "what hosts send each other, after a warm-up; auto: by their network's speed"},
      {"train.compression_after", IntegerField{MEMBER(train.compression_after), kSteps}, Need::optional,
       Condition{"train.compression", {"1-bit", "powersgd", "auto"}},
       "steps of the warm-up; 0: a fifth of the run's for 1-bit, a tenth for powersgd"},
      {"train.compression_rank", IntegerField{MEMBER(train.compression_rank), kRank}, Need::optional,
       Condition{"train.compression", {"powersgd", "auto"}}, "of the matrices that hosts send"},
      {"train.bucket_mib", NumberField{MEMBER(train.bucket_mib), kBucketMib}, Need::optional, std::nullopt,
       "gradients are reduced in buckets of this size"},
      {"train.device_collectives", choice<Switch>({"off", "auto"}, MEMBER(train.device_collectives)), Need::optional,
       std::nullopt,
       "auto: gradients and parameters go from GPU to GPU by the library of their maker, where all have one and a "
       "trial passes; off, or else: through memory of the host"},
      {"train.encrypt", choice<Switch>({"off", "on"}, MEMBER(train.encrypt)), Need::optional, std::nullopt,
       "connections between hosts; off only where nobody else can reach the network"},
      {"train.streams", IntegerField{MEMBER(train.streams), kStreams}, Need::optional, std::nullopt,
       "connections over which two hosts exchange gradients and parameters, each with a core that encrypts it"},
      {"train.check_every", IntegerField{MEMBER(train.check_every), kCount}, Need::optional, std::nullopt,
       "steps between comparisons of all ranks' parameters"},
  };
}

std::vector<Key> memory_keys() {
  return {
      {"memory.recompute", choice<Recompute>({"none", "blocks", "auto"}, MEMBER(memory.recompute)), Need::optional,
       std::nullopt,
       "blocks: keep the input of each block only, and compute it again in the backward pass; auto: only where a "
       "device's memory needs that"},
      {"memory.recompute_blocks", IntegerField{MEMBER(memory.recompute_blocks), kSteps}, Need::optional,
       Condition{"memory.recompute", {"blocks", "auto"}}, "so many of the blocks, from the first one on; 0: all"},
      {"memory.activations", choice<Activations>({"device", "host", "auto"}, MEMBER(memory.activations)),
       Need::optional, std::nullopt,
       "host: what the backward pass needs of the forward pass lies in the host's memory meanwhile; auto: only where a "
       "device's memory needs that"},
      {"memory.accumulate", IntegerField{MEMBER(memory.accumulate), kDepth}, Need::optional,
       Condition{"balance.unit", {"samples"}},
       "compute a device's part of a step in so many pieces, whose gradients add up"},
      {"memory.optimizer", choice<UpdatesOn>({"device", "host"}, MEMBER(memory.optimizer)), Need::optional,
       std::nullopt, "host: the optimizer's state lies in the host's memory, and its CPU updates the parameters"},
      {"memory.parameters", choice<Held>({"whole", "sharded"}, MEMBER(memory.parameters)), Need::optional, std::nullopt,
       "sharded: of the blocks of a model each device holds its part only, and a block while it computes"},
      {"memory.empty_cache", choice<Switch>({"off", "on"}, MEMBER(memory.empty_cache)), Need::optional, std::nullopt,
       "give freed memory back to the device after each epoch, and before a step that ran out of memory is repeated, "
       "for other programs on it"},
  };
}

std::vector<Key> output_keys() {
  const Need optional = Need::optional;
  const Condition gpt = for_model({"gpt"});
  return {
      {"output.weights",
       PathField{MEMBER(output.weights), PathField::Use::written},
       optional,
       {},
       "file for the weights: safetensors, or TorchScript (*.pt) with model.path"},
      {"output.profile", IntegerField{MEMBER(output.profile), kProfiledSteps}, optional, std::nullopt,
       "record what each rank does in so many steps, after the first three; 0: in none"},
      {"output.trace", PathField{MEMBER(output.trace), PathField::Use::written}, optional,
       Condition{"output.profile", {}}, "file for the record, for Perfetto and Chrome"},
      {"output.tensorboard",
       PathField{MEMBER(output.tensorboard), PathField::Use::filled},
       optional,
       {},
       "folder for what TensorBoard shows: loss, learning rate, speed, shares, times and memory, step by step"},
      {"output.sample", IntegerField{MEMBER(output.sample), kSample}, optional, gpt,
       "bytes of text to generate at the end"},
      {"output.prompt", TextField{MEMBER(output.prompt), "Once upon "}, optional, gpt,
       "text that the sample continues; else a new line"},
      {"output.temperature", NumberField{MEMBER(output.temperature), kAtLeast0}, optional, gpt,
       "of the sample: the lower, the likelier its bytes; 0: the likeliest only"},
      {"output.top_k", IntegerField{MEMBER(output.top_k), kSteps}, optional, gpt,
       "choose among so many of the likeliest; 0: all"},
  };
}

std::vector<Key> checkpoint_keys() {
  const Need optional = Need::optional;
  const Condition with_folder{"checkpoint.folder", {}};
  return {
      {"checkpoint.folder", PathField{MEMBER(checkpoint.folder), PathField::Use::kept}, optional, std::nullopt,
       "where the state of the run is kept, to go on from: at its end, and when it is stopped"},
      {"checkpoint.every_steps", IntegerField{MEMBER(checkpoint.every_steps), kSteps}, optional, with_folder,
       "and each time that so many steps were made; 0: not by steps"},
      {"checkpoint.every_minutes", NumberField{MEMBER(checkpoint.every_minutes), kAtLeast0}, optional, with_folder,
       "and each time that so many minutes have passed; 0: not by time"},
      {"checkpoint.keep", IntegerField{MEMBER(checkpoint.keep), kCount}, optional, with_folder,
       "so many of the newest stay"},
      {"checkpoint.resume", choice<Switch>({"off", "on"}, MEMBER(checkpoint.resume)), optional, with_folder,
       "go on from the newest that is whole; --resume is short for it"},
  };
}

std::vector<Key> elastic_keys() {
  const std::optional<Condition> always, elastic = Condition{"elastic.ranks_lost", {}};
  const Need optional = Need::optional;
  return {
      {"elastic.ranks_lost", IntegerField{MEMBER(elastic.ranks_lost), kDevices}, optional, always,
       "so many devices may be lost in all, and the others go on; 0: when one is lost, the run ends"},
      {"elastic.buddy", FlagField{MEMBER(elastic.buddy)}, optional, elastic,
       "each keeps a copy of what another one owns, in memory of its host: at most one step is repeated"},
      {"elastic.timeout_s", NumberField{MEMBER(elastic.timeout_s), kAbove0}, optional, always,
       "seconds that others wait for a device: then it is lost, or, without ranks_lost, the run ends; never less than "
       "20 of its steps"},
      {"elastic.join", TextField{MEMBER(elastic.join), ":29600"}, optional, always,
       "where other devices join the run, with `remuda train --join`: HOST:PORT, or :PORT of this host"},
  };
}

std::vector<Key> device_keys() {
  const auto use = [](TrainJob& job) -> auto& { return last_device(job).use; };
  const auto slowdown = [](TrainJob& job) -> auto& { return last_device(job).slowdown; };
  const auto shared = [](TrainJob& job) -> auto& { return last_device(job).shared; };
  balance::Role& (*const role)(TrainJob&) = [](TrainJob& job) -> auto& { return last_device(job).role; };
  return {
      {"balance.policy", choice<balance::BalancePolicy>({"auto", "even", "fixed"}, MEMBER(balance.policy)),
       Need::optional, std::nullopt, "how the batch is split over devices"},
      {"balance.unit",
       choice<Unit>({"samples", "microbatches"}, MEMBER(balance.unit)),
       Need::optional,
       {},
       "what is split; microbatches: pieces of train.micro_batch samples, more of them for faster devices"},
      {"balance.shares", NumbersField{MEMBER(balance.shares), kAbove0}, Need::required,
       Condition{"balance.policy", {"fixed"}}, "one weight per device"},
      {"balance.state_shares", NumbersField{MEMBER(balance.state_shares), kAbove0}, Need::optional, std::nullopt,
       "of the optimizer's state, a weight per device; by memory without it"},
      {"device.use", DeviceIdField{use}, Need::with_table, std::nullopt,
       "a device; all CPU devices without [[device]] and [placement]"},
      {"device.slowdown", NumberField{slowdown, kAtLeast1}, Need::optional, {}, "pretend to be slower by this factor"},
      {"device.shared", FlagField{shared}, Need::optional, {}, "several ranks compute on it, each with a [[device]]"},
      {"device.role", choice({"compute", "preprocess", "state", "auto"}, role), Need::optional, std::nullopt,
       "what it does: takes samples, prepares those of others, owns their state; auto: computes, and proposes"},
  };
}

/// The words of `remuda run`, which says what they mean; cli/jobs/request_flags.h.
std::vector<Key> placement_keys() {
  const Need optional = Need::optional;
  const auto text = [](const char* name, Member<std::string> member, const char* example, const char* meaning) {
    return Key{name, TextField{member, example}, Need::optional, {}, meaning};
  };
  return {
      {"placement.gpus", IntegerField{MEMBER(placement.gpus), kDevices}, optional, std::nullopt,
       "ask for so many devices; 0: for one, or those of device"},
      text("placement.mem", MEMBER(placement.mem), "24GiB", "memory that is free on each"),
      text("placement.model", MEMBER(placement.model), "A100*", "their model, where * is any text"),
      text("placement.cap", MEMBER(placement.cap), "bf16", "what each must be able to do"),
      {"placement.link",
       word({"any", "p2p", "nvlink"}, MEMBER(placement.link)),
       optional,
       {},
       "what must join them in a ring; any unless given"},
      {"placement.same_model", FlagField{MEMBER(placement.same_model)}, optional, {}, "all of one model (the default)"},
      {"placement.any_model", FlagField{MEMBER(placement.any_model)}, optional, {}, "unlike devices may be taken"},
      {"placement.device", DeviceIdsField{MEMBER(placement.device)}, optional, {}, "only among these"},
      text("placement.share", MEMBER(placement.share), "30%", "part of each device"),
      text("placement.where", MEMBER(placement.where), "memory >= 40Gi", "a condition on each"),
      {"placement.cpu", FlagField{MEMBER(placement.cpu)}, optional, {}, "CPU devices may be taken too"},
  };
}

#undef MEMBER

}  // namespace

const std::vector<Key>& job_keys() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> all;
    for (auto& part :
         {model_keys(), data_keys(), train_keys(), arithmetic_keys(), exchange_keys(), memory_keys(), engine_keys(),
          output_keys(), checkpoint_keys(), elastic_keys(), device_keys(), placement_keys()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return keys;
}

const Key* find_key(const std::string& name) {
  const auto found = std::ranges::find(job_keys(), name, &Key::name);
  return found == job_keys().end() ? nullptr : &*found;
}

bool is_table_name(const std::string& name) {
  return std::ranges::any_of(job_keys(), [&](const Key& key) { return key.name.starts_with(name + "."); });
}

std::string parent_of(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

}  // namespace remuda::job
