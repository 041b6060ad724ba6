#include "comm/failure_report.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/text.h"

namespace remuda::comm {

FailureReport report_of(const Error& error, int rank, uint64_t sequence) {
  FailureReport report{.sequence = sequence, .culprit = rank};
  if (error.kind == ErrorKind::lost_peer)
    report.culprit = error.peer;
  else
    report.length = static_cast<uint32_t>(error.message.copy(report.sentence, sizeof report.sentence));
  return report;
}

std::optional<Error> cause_in(const FailureReport& report, int peer, int self) {
  if (report.culprit == peer) {
    const std::string_view sentence(report.sentence, std::min<size_t>(report.length, sizeof report.sentence));
    if (sentence.empty()) return std::nullopt;
    return Error{ErrorKind::failed, printable(sentence)};
  }
  if (report.culprit == self)
    return Error{ErrorKind::lost_peer,
                 fmt::format("rank {} gave up waiting for this rank, {}, in call #{}", peer, self, report.sequence),
                 peer};
  return Error{ErrorKind::lost_peer,
               fmt::format("rank {} went away in call #{}, as rank {} reports", report.culprit, report.sequence, peer),
               report.culprit};
}

}  // namespace remuda::comm
