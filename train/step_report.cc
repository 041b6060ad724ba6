#include "train/step_report.h"

#include <fmt/format.h>
#include <span>
#include <utility>

#include "train/labels.h"

namespace remuda::train {

unsigned StepTotals::any_status() const {
  unsigned all = 0;
  for (const unsigned bits : status) all |= bits;
  return all;
}

int StepTotals::first_with(StepStatus bit) const {
  for (size_t rank = 0; rank < status.size(); ++rank)
    if (status[rank] & bit) return int(rank);
  return -1;
}

namespace {

/// The first of these that a rank has otherwise than rank 0.
Result<void> check_same(const std::vector<StepReport>& reports) {
  using Term = std::pair<const char*, double StepReport::*>;
  for (const auto& [name, value] :
       {Term{"the global batch", &StepReport::global_batch}, Term{"the learning rate", &StepReport::learning_rate}})
    for (size_t rank = 1; rank < reports.size(); ++rank)
      if (reports[rank].*value != reports[0].*value)
        return usage_error(fmt::format("{} of the step is {} on rank {} and {} on rank 0; it must be the same", name,
                                       reports[rank].*value, rank, reports[0].*value));
  return {};
}

constexpr size_t kBits = 32;  // that a word holds exactly

/// As bits, the first one lowest.
std::vector<double> packed(const std::vector<char>& flags) {
  std::vector<double> words((flags.size() + kBits - 1) / kBits);
  for (size_t i = 0; i < flags.size(); ++i)
    if (flags[i]) words[i / kBits] += double(uint64_t{1} << (i % kBits));
  return words;
}

bool is_set(const double* words, size_t flag) { return (uint64_t(words[flag / kBits]) >> (flag % kBits) & 1) != 0; }

}  // namespace

Result<StepTotals> exchange(comm::Communicator& communicator, const StepReport& mine) {
  const auto ranks = size_t(communicator.size());
  std::vector<double> words{mine.weight,    mine.loss_sum, mine.square_norm,  double(mine.status),
                            mine.compute_s, mine.wait_s,   mine.global_batch, mine.learning_rate,
                            mine.data_s,    mine.update_s, mine.memory_bytes, mine.gradient_wait_s};
  const size_t fixed = words.size();
  words.insert(words.end(), mine.next_shares.begin(), mine.next_shares.end());
  words.resize(fixed + ranks);
  const std::vector<double> used = packed(mine.used);
  words.insert(words.end(), used.begin(), used.end());

  std::vector<double> all(words.size() * ranks);
  REMUDA_TRY(communicator.all_gather(std::as_bytes(std::span(words)), std::as_writable_bytes(std::span(all)),
                                     label::kReports));
  StepTotals totals;
  totals.used.resize(mine.used.size());
  std::vector<StepReport> reports;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const double* report = &all[rank * words.size()];
    totals.weight += report[0];
    totals.loss_sum += report[1];
    totals.square_norm += report[2];
    totals.status.push_back(unsigned(report[3]));
    totals.compute_s.push_back(report[4]);
    totals.wait_s.push_back(report[5]);
    totals.data_s.push_back(report[8]);
    totals.update_s.push_back(report[9]);
    totals.memory_bytes.push_back(report[10]);
    totals.gradient_wait_s.push_back(report[11]);
    for (size_t i = 0; i < totals.used.size(); ++i)
      if (is_set(report + fixed + ranks, i)) totals.used[i] = 1;
    reports.push_back({.global_batch = report[6], .learning_rate = report[7]});
  }
  REMUDA_TRY(check_same(reports));
  for (size_t rank = 0; rank < ranks; ++rank) totals.next_shares.push_back(int(all[fixed + rank]));
  return totals;
}

}  // namespace remuda::train
