#include "cli/train/train_inputs.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "data/foreign.h"
#include "data/image_files.h"
#include "data/image_set.h"
#include "data/token_set.h"
#include "data/view.h"
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
  if (!files.path.empty() && data::foreign_kind(files.path) != "a folder" &&
      data::foreign_kind(files.path) != "a tar archive")
    return data::refuse_foreign(files.path);
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

/// The numbers for each channel.
Result<void> check_channels(const job::DataSpec& data, const data::ImageShape& shape) {
  return data::check_transform({.mean = data.mean, .deviation = data.std}, shape);
}

/// Reads the first image of each class.
Result<data::ImageFiles> open_image_files(const job::DataSpec& data, const std::string& path) {
  const data::ImageFormat format{.channels = data.color == job::Color::gray ? 1 : 3, .size = data.size};
  REMUDA_ASSIGN(data::ImageFiles set, data::ImageFiles::open(path, format));
  std::vector<uint8_t> values(set.shape().bytes());
  for (size_t i = 0; i < set.size(); ++i)
    if (i == 0 || set.label(i) != set.label(i - 1)) REMUDA_TRY(set.read(i, values));
  return set;
}

Result<void> check_image_files(const job::DataSpec& data) {
  REMUDA_ASSIGN(const data::ImageFiles train, open_image_files(data, data.train.path));
  REMUDA_TRY(check_channels(data, train.shape()));
  if (!data.test) return {};
  REMUDA_ASSIGN(const data::ImageFiles test, open_image_files(data, data.test->path));
  if (test.shape() != train.shape())
    return usage_error(
        fmt::format("{} has images of {}, but those to train on are {} (channels x height x width); "
                    "data.size brings all to one size",
                    data.test->path, to_string(test.shape()), to_string(train.shape())));
  std::vector<std::string> differ;
  std::ranges::set_symmetric_difference(train.class_names(), test.class_names(), std::back_inserter(differ));
  if (differ.empty()) return {};
  const bool in_test = std::ranges::binary_search(test.class_names(), differ[0]);
  return usage_error(fmt::format("{} has the class {}, but {} has not; both must have the same",
                                 in_test ? data.test->path : data.train.path, printable(differ[0]),
                                 in_test ? data.train.path : data.test->path));
}

Result<void> check_idx(const job::DataSpec& data) {
  REMUDA_ASSIGN(const data::ImageSet train, data::ImageSet::open(data.train.images, data.train.labels));
  REMUDA_TRY(check_channels(data, train.shape()));
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
  switch (job.data.format) {
    case job::DataFormat::images:
      return check_image_files(job.data);
    case job::DataFormat::idx:
      return check_idx(job.data);
    case job::DataFormat::tokens:
      return check_tokens(job);
  }
  return {};
}

}  // namespace remuda::cli
