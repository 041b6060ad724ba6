#include "tests/train_job_files.h"

#include <gtest/gtest.h>
#include <random>

#include "base/env.h"

namespace remuda::tests {

std::string JobText::text() const {
  return "[model]\n" + model + "[data]\n" + data + "[train]\n" + train + "[balance]\n" + balance + devices;
}

std::string idx_bytes(const std::vector<uint32_t>& dimensions, const std::string& values) {
  std::string bytes{0, 0, 8, static_cast<char>(dimensions.size())};
  for (const uint32_t dimension : dimensions)
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(dimension >> shift);
  return bytes + values;
}

void write_images(const ScratchFolder& folder, const std::string& name, int count) {
  constexpr int kSide = 12, kClasses = 5;
  std::mt19937 random(count);
  std::string images, labels;
  for (int i = 0; i < count; ++i) {
    const int label = i % kClasses;
    labels += static_cast<char>(label);
    for (int pixel = 0; pixel < kSide * kSide; ++pixel)
      images += static_cast<char>(random() % 40 + (pixel % kSide == 2 * label ? 200 : 0));
  }
  const auto n = static_cast<uint32_t>(count);
  folder.write(name + ".images", idx_bytes({n, kSide, kSide}, images));
  folder.write(name + ".labels", idx_bytes({n}, labels));
}

void write_tokens(const ScratchFolder& folder, const std::string& name, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    const bool is_padding = i / 5 % 4 == 3;
    bytes += static_cast<char>(is_padding ? 0 : 1 + i * 4 % (kVocabulary - 1));
    bytes += '\0';
  }
  folder.write(name + ".tokens", bytes);
}

ScratchFolder job_folder(const JobText& job) {
  ScratchFolder folder;
  write_images(folder, "train", kTrainImages);
  write_images(folder, "test", kTestImages);
  write_tokens(folder, "train", 1000);
  folder.write("job.toml", job.text());
  return folder;
}

std::vector<std::string> train_command(const ScratchFolder& folder, const std::vector<std::string>& arguments) {
  std::vector<std::string> command{REMUDA_PROGRAM, "train", folder.path("job.toml")};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

Json train_report(const ScratchFolder& folder, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = train_command(folder, arguments);
  command.insert(command.end(), {"--json", folder.path("report.json")});
  const Finished finished = run(command);
  EXPECT_TRUE(finished.exit.ok()) << finished;
  const auto report = parse_json(folder.read("report.json"), "report.json");
  if (report) return *report;
  ADD_FAILURE() << report.error().message;
  return {};
}

process::Environment HandStarted::environment() const {
  return {{env::rank.name, std::to_string(rank)},
          {env::world_size.name, std::to_string(size)},
          {env::master_addr.name, master},
          {env::master_port.name, std::to_string(port)},
          {env::secret.name, secret},
          {env::bind.name, bind}};
}

std::vector<std::string> worker_command(const ScratchFolder& folder) {
  return {REMUDA_TRAIN_PROGRAM, folder.path("job.toml")};
}

bool has_two_cores() {
  static const bool has = run({REMUDA_PROGRAM, "list", "--cpu-devices", "2"}).exit.ok();
  return has;
}

}  // namespace remuda::tests
