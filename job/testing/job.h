// Jobs for the tests of this folder.
#pragma once

#include <string>
#include <vector>

#include "job/train_job.h"

namespace remuda::job {

/// The smallest job that is right.
inline const std::string kMlpJob =
    "[model]\n"
    "name = \"mlp\"\n"
    "[data]\n"
    "train = { images = \"i\", labels = \"l\" }\n"
    "[train]\n"
    "global_batch = 32\n";

inline const std::string kGptJob =
    "[model]\n"
    "name = \"gpt\"\n"
    "vocabulary = 256\n"
    "[data]\n"
    "format = \"tokens\"\n"
    "train = \"t\"\n"
    "[train]\n"
    "global_batch = 32\n";

inline Result<ParsedJob> parse(const std::string& text, std::vector<std::string> settings = {},
                               std::vector<DeviceSpec> devices = {}) {
  return parse_job(text, "/jobs/job.toml", {std::move(settings), std::move(devices)});
}

/// The error, without the folder of the job file; "no error" when there is none.
inline std::string error_of(const std::string& text, std::vector<std::string> settings = {},
                            std::vector<DeviceSpec> devices = {}) {
  const auto job = parse(text, std::move(settings), std::move(devices));
  if (job) return "no error";
  if (job.error().kind != ErrorKind::usage) return "not a usage error";
  const std::string folder = "/jobs/";
  const std::string& message = job.error().message;
  return message.starts_with(folder) ? message.substr(folder.size()) : message;
}

}  // namespace remuda::job
