#include "cli/jobs/job_text.h"

#include <algorithm>

#include "base/characters.h"
#include "base/text.h"
#include "cli/jobs/pool_machine.h"

namespace remuda::cli {

std::string what_text(const pool::Job& job) {
  constexpr size_t kLongest = 60;
  std::string text;
  for (const std::string& argument : job.command) text += (text.empty() ? "" : " ") + argument;
  if (!job.name.empty()) text = job.name + ": " + text;
  std::ranges::replace(text, '\t', ' ');
  return shortened(printable(text), kLongest);
}

std::string labels_of(const std::vector<std::string>& devices, const Inventory& inventory) {
  std::string text;
  for (const std::string& device : devices) text += (text.empty() ? "" : ", ") + label_of(inventory, device);
  return text;
}

}  // namespace remuda::cli
