#include "process/affinity.h"

#include <climits>
#include <filesystem>
#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/number.h"

namespace remuda::process {
namespace {

constexpr int kWordBits = sizeof(unsigned long) * CHAR_BIT;
constexpr int kMostCores = 65536, kMostNodes = 1024;

std::vector<unsigned long> mask_of(const std::vector<int>& numbers, int limit) {
  std::vector<unsigned long> mask;
  for (const int number : numbers) {
    if (number < 0 || number >= limit) continue;
    const size_t word = number / kWordBits;
    if (mask.size() <= word) mask.resize(word + 1);
    mask[word] |= 1UL << (number % kWordBits);
  }
  return mask;
}

std::vector<int> numbers_in(const std::vector<unsigned long>& mask) {
  std::vector<int> numbers;
  for (int bit = 0; bit < static_cast<int>(mask.size()) * kWordBits; ++bit)
    if (mask[bit / kWordBits] >> (bit % kWordBits) & 1) numbers.push_back(bit);
  return numbers;
}

}  // namespace

std::vector<int> allowed_cores() {
  std::vector<unsigned long> mask(kMostCores / kWordBits);
  const long bytes = ::syscall(SYS_sched_getaffinity, 0, mask.size() * sizeof mask[0], mask.data());
  return bytes > 0 ? numbers_in(mask) : std::vector<int>{};
}

void bind(int pid, const std::vector<int>& cores) {
  const std::vector<unsigned long> mask = mask_of(cores, kMostCores);
  std::error_code error;
  for (std::filesystem::directory_iterator thread(fmt::format("/proc/{}/task", pid), error), end;
       !error && thread != end; thread.increment(error))
    if (const auto id = parse_number<int>(thread->path().filename().string()); id && !mask.empty())
      ::syscall(SYS_sched_setaffinity, *id, mask.size() * sizeof mask[0], mask.data());
}

AffinityPlan::AffinityPlan(const Affinity& affinity)
    : cores_(mask_of(affinity.cores, kMostCores)), nodes_(mask_of(affinity.nodes, kMostNodes)) {}

bool AffinityPlan::apply() const {
  if (!nodes_.empty()) prefer_nodes();
  return cores_.empty() || ::syscall(SYS_sched_setaffinity, 0, cores_.size() * sizeof cores_[0], cores_.data()) == 0;
}

void AffinityPlan::prefer_nodes() const {
  // The kernel uses one bit less than the given number. MPOL_PREFERRED alone, before Linux 5.15, means the first node.
  const unsigned long bits = nodes_.size() * kWordBits + 1;
  if (::syscall(SYS_set_mempolicy, MPOL_PREFERRED_MANY, nodes_.data(), bits) != 0)
    ::syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes_.data(), bits);
}

}  // namespace remuda::process
