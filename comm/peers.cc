#include "comm/peers.h"

#include <span>

#include "comm/failure_report.h"
#include "comm/wire.h"

namespace remuda::comm {
namespace {
constexpr double kReportWaitS = 1;
}  // namespace

Peers::Peers(int rank, std::vector<Link> control) : rank_(rank), control_(std::move(control)) {
  for (const Link& link : control_) gone_.push_back(!link);
}

void Peers::read_from(int peer) {
  FailureReport report;
  const ptrdiff_t got = control_[peer].recv_some(std::as_writable_bytes(std::span(&report, 1)));
  if (got == 0) return;
  gone_[peer] = true;
  if (reported_ || got != sizeof report) return;
  if (auto error = cause_in(report, peer, rank_)) reported_ = {report.sequence, std::move(*error)};
}

Result<void> Peers::check(uint64_t sequence) {
  for (int peer = 0; peer < size(); ++peer)
    if (!gone_[peer]) read_from(peer);
  if (reported_ && reported_->error.kind == ErrorKind::lost_peer && reported_->sequence <= sequence)
    return tl::unexpected(reported_->error);
  return {};
}

Error Peers::cause(int peer, const Call& call, std::string_view what) {
  const double deadline_s = deadline_after(kReportWaitS);
  if (!gone_[peer]) read_from(peer);  // poll() does not know of what is decrypted already
  while (!gone_[peer] && wait_ready(control_[peer].get(), POLLIN, deadline_s)) read_from(peer);
  return reported_ ? reported_->error : lost_rank(peer, what, call);
}

void Peers::report_failure(const Error& error, uint64_t sequence) {
  const FailureReport report = report_of(error, rank_, sequence);
  for (int peer = 0; peer < size(); ++peer)
    if (!gone_[peer]) control_[peer].send_some(std::as_bytes(std::span(&report, 1)));
}

void Peers::watch(std::vector<pollfd>& polled) const {
  for (int peer = 0; peer < size(); ++peer)
    if (!gone_[peer]) polled.push_back({control_[peer].get(), POLLIN, 0});
}

}  // namespace remuda::comm
