#include "cli/train/train_inputs.h"

#include <fmt/format.h>

#include "base/file.h"
#include "data/image_set.h"
#include "data/token_set.h"

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

Result<void> check_inputs(const job::TrainJob& job) {
  REMUDA_TRY(check_batch(job));
  if (!job.model.path.empty()) REMUDA_TRY(open_for_reading(job.model.path));
  return job.data.format == job::DataFormat::idx ? check_images(job.data) : check_tokens(job);
}

}  // namespace remuda::cli
