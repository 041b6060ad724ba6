#include "cli/train/train_inputs.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "base/text.h"
#include "cli/train/script_file.h"
#include "data/cifar.h"
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
  const std::string missed = job::batch_too_small(job);
  return missed.empty() ? Result<void>() : usage_error(missed);
}

Result<void> check_files(job::DataFormat format, const job::DataFiles& files) {
  for (const std::string& file : {files.images, files.labels, files.tokens})
    if (!file.empty()) REMUDA_TRY(data::refuse_foreign(file));
  if (files.path.empty()) return {};
  const std::string kind = data::foreign_kind(files.path);
  const bool fits = kind == "a folder" || (kind == "a tar archive" && format == job::DataFormat::images);
  return fits ? Result<void>() : data::refuse_foreign(files.path);
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

Result<void> check_cifar(const job::DataSpec& data) {
  REMUDA_ASSIGN(const data::CifarSet train, data::CifarSet::open(data.train.path, data::Split::train));
  REMUDA_TRY(check_channels(data, train.shape()));
  if (!data.test) return {};
  REMUDA_ASSIGN(const data::CifarSet test, data::CifarSet::open(data.test->path, data::Split::test));
  if (test.classes() == train.classes()) return {};
  return usage_error(fmt::format("{} is of CIFAR-{}, but {} of CIFAR-{}", data.test->path, test.classes(),
                                 data.train.path, train.classes()));
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

Result<void> check_inputs(const job::TrainJob& job) {
  REMUDA_TRY(check_batch(job));
  if (!job.model.path.empty()) REMUDA_TRY(check_script_file(job.model.path, "model.path"));
  if (!job.model.weights.empty()) REMUDA_TRY(weights::Reader::open(job.model.weights));
  if (!job.data.transform.empty()) REMUDA_TRY(check_script_file(job.data.transform, "data.transform"));
  REMUDA_TRY(check_files(job.data.format, job.data.train));
  if (job.data.test) REMUDA_TRY(check_files(job.data.format, *job.data.test));
  switch (job.data.format) {
    case job::DataFormat::images:
      return check_image_files(job.data);
    case job::DataFormat::cifar:
      return check_cifar(job.data);
    case job::DataFormat::idx:
      return check_idx(job.data);
    case job::DataFormat::tokens:
      return check_tokens(job);
  }
  return {};
}

}  // namespace remuda::cli
