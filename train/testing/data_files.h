// Tests only: small data sets in files, the same in every run.
#pragma once

#include <random>
#include <string>

#include "base/testing/scratch_folder.h"
#include "train/samples.h"
#include "train/testing/cases.h"

namespace remuda::train::testing {

constexpr int kLabels = 5;

inline std::string big_endian(uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift);
  return bytes;
}

inline std::string random_bytes(size_t count, uint32_t below, uint32_t seed) {
  std::mt19937 random(seed);
  std::string values;
  for (size_t i = 0; i < count; ++i) values += static_cast<char>(random() % below);
  return values;
}

/// Writes `count` samples that fit the case's input, and returns where they are.
inline job::DataSpec write_samples(const ScratchFolder& folder, const ModelCase& model_case, int count) {
  const auto& input = model_case.input;
  if (input.context > 0) {
    std::string bytes;
    const auto tokens = random_bytes(size_t(count * input.context + 1), uint32_t(model_case.spec.vocabulary), 3);
    for (const char token : tokens) bytes += {token, '\0'};
    return {.format = job::DataFormat::tokens,
            .train = {.tokens = folder.write("tokens", bytes)},
            .context = int(input.context),
            .padding = model_case.padding};
  }
  const auto height = uint32_t(input.height), width = uint32_t(input.width), images = uint32_t(count);
  const std::string header =
      std::string("\0\0\x08\x03", 4) + big_endian(images) + big_endian(height) + big_endian(width);
  const std::string labels = std::string("\0\0\x08\x01", 4) + big_endian(images);
  return {.train = {.images = folder.write("images", header + random_bytes(size_t(images * height * width), 256, 3)),
                    .labels = folder.write("labels", labels + random_bytes(images, kLabels, 5))}};
}

/// The same samples, opened; the files are removed already.
inline Samples make_samples(const ModelCase& model_case, int count) {
  const ScratchFolder folder;
  const job::DataSpec data = write_samples(folder, model_case, count);
  return Samples::open(data, data::Split::train, model_case.spec).value();
}

}  // namespace remuda::train::testing
