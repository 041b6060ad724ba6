#include "cli/train/train_inputs.h"

#include <algorithm>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "data/foreign.h"
#include "data/image_set.h"
#include "data/token_set.h"
#include "weights/reader.h"

namespace remuda::cli {
namespace {

std::string to_string(const data::ImageShape& shape) {
  return fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width);
}

Result<void> check_batch(const job::TrainJob& job) {
  const size_t devices = job.devices.size();
  if (static_cast<size_t>(job.train.global_batch) >= devices) return {};
  return usage_error(fmt::format("train.global_batch is {}; it must be at least {}, a sample for each device",
                                 job.train.global_batch, devices));
}

Result<void> check_files(const job::DataFiles& files) {
  for (const std::string& file : {files.images, files.labels, files.tokens})
    if (!file.empty()) REMUDA_TRY(data::refuse_foreign(file));
  return {};
}

/// The end of a file, which in a ZIP archive contains the list of names.
Result<std::string> tail_of(const std::string& path) {
  constexpr off_t kTail = 4 << 20;
  REMUDA_ASSIGN(const Fd fd, open_for_reading(path));
  const off_t size = ::lseek(fd.get(), 0, SEEK_END);
  if (size < 0) return failed(fmt::format("{} is no plain file", path));
  std::string tail(static_cast<size_t>(std::min(size, kTail)), '\0');
  const ssize_t got = ::pread(fd.get(), tail.data(), tail.size(), size - static_cast<off_t>(tail.size()));
  if (got != static_cast<ssize_t>(tail.size()))
    return failed(fmt::format("cannot read {}: {}", path, errno_text(errno)));
  return tail;
}

Result<void> check_images(const job::DataSpec& data) {
  REMUDA_ASSIGN(const data::ImageSet train, data::ImageSet::open(data.train.images, data.train.labels));
  if (!data.test) return {};
  REMUDA_ASSIGN(const data::ImageSet test, data::ImageSet::open(data.test->images, data.test->labels));
  if (test.shape() != train.shape())
    return usage_error(fmt::format("{} has images of {}, but those to train on are {} (channels x height x width)",
                                   data.test->images, to_string(test.shape()), to_string(train.shape())));
  if (test.classes() > train.classes())
    return usage_error(fmt::format("{} has label {}, but the largest to train on is {}", data.test->labels,
                                   test.classes() - 1, train.classes() - 1));
  return {};
}

Result<void> check_tokens(const job::TrainJob& job) {
  constexpr int kAnyToken = 1 << 16;
  const int vocabulary = job.model.vocabulary > 0 ? job.model.vocabulary : kAnyToken;
  REMUDA_TRY(data::TokenSet::open(job.data.train.tokens, job.data.context, vocabulary));
  if (job.data.test) REMUDA_TRY(data::TokenSet::open(job.data.test->tokens, job.data.context, vocabulary));
  return {};
}

}  // namespace

/// TorchScript is a ZIP archive with constants.pkl in it; torch.save() writes one without.
Result<void> check_model_file(const std::string& path) {
  constexpr const char* kWay =
      "in Python, torch.jit.script(model).save(FILE) writes one (docs/train.md says what the model must take and give)";
  constexpr const char* kEndOfZip = "PK\x05\x06";
  REMUDA_ASSIGN(const std::string tail, tail_of(path));
  const std::string kind = data::foreign_kind(path);
  if (kind.starts_with("a ZIP archive") && tail.find(kEndOfZip) == std::string::npos)
    return usage_error(
        fmt::format("{} is a damaged TorchScript file: its end is missing, as after a copy that broke off", path));
  if (tail.find("constants.pkl") != std::string::npos) return {};
  const bool saved = tail.find("data.pkl") != std::string::npos || kind.find("torch.save()") != std::string::npos;
  if (saved)
    return usage_error(
        fmt::format("{} is a file of torch.save(), which holds values but no program; model.path is a "
                    "TorchScript file: {}",
                    path, kWay));
  if (weights::Reader::open(path))
    return usage_error(
        fmt::format("{} is a safetensors file, which holds values but no program; give it as model.weights, "
                    "and the model's program as model.path: {}",
                    path, kWay));
  return usage_error(fmt::format("{} is no TorchScript file; {}", path, kWay));
}

Result<void> check_inputs(const job::TrainJob& job) {
  REMUDA_TRY(check_batch(job));
  if (!job.model.path.empty()) REMUDA_TRY(check_model_file(job.model.path));
  if (!job.model.weights.empty()) REMUDA_TRY(weights::Reader::open(job.model.weights));
  REMUDA_TRY(check_files(job.data.train));
  if (job.data.test) REMUDA_TRY(check_files(*job.data.test));
  return job.data.format == job::DataFormat::idx ? check_images(job.data) : check_tokens(job);
}

}  // namespace remuda::cli
