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

bool Peers::gone(int peer) const {
  const std::lock_guard lock(mutex_);
  return gone_[peer];
}

bool Peers::read_from(int peer) {
  const std::lock_guard lock(mutex_);
  if (gone_[peer]) return true;
  FailureReport report;
  const ptrdiff_t got = control_[peer].recv_some(std::as_writable_bytes(std::span(&report, 1)));
  if (got == 0) return false;
  gone_[peer] = true;
  if (!reported_ && got == sizeof report)
    if (auto error = cause_in(report, peer, rank_)) reported_ = {report.sequence, std::move(*error)};
  return true;
}

Result<void> Peers::check(uint64_t sequence) {
  for (int peer = 0; peer < size(); ++peer) read_from(peer);
  const std::lock_guard lock(mutex_);
  if (reported_ && reported_->error.kind == ErrorKind::lost_peer && reported_->sequence <= sequence)
    return tl::unexpected(reported_->error);
  return {};
}

Error Peers::cause(int peer, const Call& call, std::string_view what) {
  const double deadline_s = deadline_after(kReportWaitS);
  bool is_gone = read_from(peer);  // poll() does not know of what is decrypted already
  while (!is_gone && wait_ready(control_[peer].get(), POLLIN, deadline_s)) is_gone = read_from(peer);
  const std::lock_guard lock(mutex_);
  return reported_ ? reported_->error : lost_rank(peer, what, call);
}

void Peers::report_failure(const Error& error, uint64_t sequence) {
  const FailureReport report = report_of(error, rank_, sequence);
  const std::lock_guard lock(mutex_);
  for (int peer = 0; peer < size(); ++peer)
    if (!gone_[peer]) control_[peer].send_some(std::as_bytes(std::span(&report, 1)));
}

void Peers::watch(std::vector<pollfd>& polled) const {
  const std::lock_guard lock(mutex_);
  for (int peer = 0; peer < size(); ++peer)
    if (!gone_[peer]) polled.push_back({control_[peer].get(), POLLIN, 0});
}

}  // namespace remuda::comm
