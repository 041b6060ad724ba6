#include "tests/elastic_job.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "weights/reader.h"

namespace remuda::tests {

JobText three_ranks() {
  JobText job;
  job.train = "epochs = 16\nglobal_batch = 48\noptimizer = 'adamw'\nlearning_rate = 0.01\n";
  job.balance = "policy = 'fixed'\nshares = [2, 1, 1]\n";
  job.devices =
      "[[device]]\nuse = 'cpu:0'\nslowdown = 20\n"
      "[[device]]\nuse = 'cpu:1'\nshared = true\nslowdown = 20\n"
      "[[device]]\nuse = 'cpu:1'\nshared = true\nslowdown = 40\n"
      "[output]\nweights = 'out.safetensors'\n";
  return job;
}

const ScratchFolder& whole_run() {
  static const ScratchFolder folder = [] {
    ScratchFolder made = job_folder(three_ranks());
    EXPECT_FALSE(train_report(made).is_null());
    return made;
  }();
  return folder;
}

double file_difference(const std::string& a, const std::string& b) {
  const auto one = weights::Reader::open(a), other = weights::Reader::open(b);
  if (!one || !other) return INFINITY;
  double difference = 0, size = 0;
  for (const weights::TensorInfo& tensor : other->header().tensors) {
    std::vector<float> left(tensor.bytes() / sizeof(float)), right = left;
    const auto found = std::ranges::find(one->header().tensors, tensor.name, &weights::TensorInfo::name);
    if (found == one->header().tensors.end() || !one->read(*found, 0, std::as_writable_bytes(std::span(left))) ||
        !other->read(tensor, 0, std::as_writable_bytes(std::span(right))))
      return INFINITY;
    for (size_t i = 0; i < left.size(); ++i) {
      difference += std::pow(double(left[i]) - double(right[i]), 2);
      size += std::pow(double(right[i]), 2);
    }
  }
  return std::sqrt(difference / size);
}

}  // namespace remuda::tests
