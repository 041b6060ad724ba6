// Tests only: small jobs with made-up data, and the programs run on them.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "tests/program.h"

namespace remuda::tests {

/// A job file by its parts, each of which a test may replace. By default two devices train an mlp on images.
struct JobText {
  std::string model = "name = 'mlp'\nhidden = [16]\n";
  std::string data =
      "train = {images = 'train.images', labels = 'train.labels'}\n"
      "test = {images = 'test.images', labels = 'test.labels'}\n";
  std::string train = "epochs = 3\nglobal_batch = 48\nlearning_rate = 0.02\n";
  std::string balance = "policy = 'auto'\n";
  std::string devices = "[[device]]\nuse = 'cpu:0'\n[[device]]\nuse = 'cpu:1'\n";

  std::string text() const;
};

constexpr int kTrainImages = 250;  // not a multiple of the batch
constexpr int kTestImages = 60;
constexpr int kVocabulary = 16;

/// `count` images of 12x12 in an IDX pair NAME.images, NAME.labels: five classes, a bright column of its own for each,
/// noise elsewhere. The same in every run.
void write_images(const ScratchFolder& folder, const std::string& name, int count);
/// A repeated phrase of tokens below kVocabulary, with runs of 0, the padding, in between.
void write_tokens(const ScratchFolder& folder, const std::string& name, int count);
/// The bytes of an IDX array of unsigned bytes.
std::string idx_bytes(const std::vector<uint32_t>& dimensions, const std::string& values);

/// A folder with images to train on and test with, tokens, and the job as job.toml.
ScratchFolder job_folder(const JobText& job = {});

/// The command line `remuda train job.toml ARGUMENTS`.
std::vector<std::string> train_command(const ScratchFolder& folder, const std::vector<std::string>& arguments = {});
/// Runs it with --json; returns its report, or null, with the test failed, when it did not succeed.
Json train_report(const ScratchFolder& folder, const std::vector<std::string>& arguments = {});

/// One rank of a job whose ranks are started by hand.
struct HandStarted {
  int rank = 0, size = 1, port = 0;
  std::string master = "127.0.0.1", bind = "127.0.0.1";
  std::string secret = "known to the ranks of one test";

  process::Environment environment() const;
};
/// The command line `remuda-train job.toml`.
std::vector<std::string> worker_command(const ScratchFolder& folder);

/// Whether this machine's cores can be split into two CPU devices: the two threads of one core cannot.
bool has_two_cores();

#define REMUDA_NEEDS_TWO_CORES() \
  if (!has_two_cores()) GTEST_SKIP() << "needs two cores, as two devices"

}  // namespace remuda::tests
