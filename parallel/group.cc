#include <fmt/format.h>
#include <span>

#include "base/env.h"
#include "comm/call.h"
#include "parallel/group_state.h"
#include "parallel/parts.h"
#include "parallel/raise.h"
#include "train/labels.h"
#include "train/process_tuning.h"
#include "train/rank_environment.h"
#include "train/run_terms.h"

namespace remuda::parallel {
namespace {

namespace label = train::label;

Error::Kind kind_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return Error::Kind::usage;
    case ErrorKind::lost_peer:
      return Error::Kind::lost_peer;
    default:
      return Error::Kind::failed;
  }
}

comm::Encryption encryption_of(bool encrypt) {
  return encrypt ? comm::Encryption::beyond_loopback : comm::Encryption::off;
}

std::shared_ptr<GroupState> make_group(comm::ConnectOptions options, torch::Device device, const Terms& terms,
                                       std::vector<double> shares) {
  comm::name_labels(label::text_of);
  train::DeviceOps ops = or_raise(train::DeviceOps::open(device));
  options.terms = train::terms_of_run();
  for (const auto& [name, value] : terms) options.terms.push_back({name, value});
  const double timeout_s = options.timeout_s;
  auto communicator = or_raise(comm::connect(std::move(options)));
  return std::make_shared<GroupState>(
      GroupState{std::move(communicator), std::move(ops), std::move(shares), timeout_s});
}

}  // namespace

void raise(const remuda::Error& error) { throw Error(kind_of(error.kind), error.message, error.peer); }
void raise_usage(const std::string& sentence) { throw Error(Error::Kind::usage, sentence); }

void GroupState::require_no_step(const char* call) const {
  if (in_step) raise_usage(fmt::format("{} was called between begin() and step(); it belongs between steps", call));
  if (abandoned)
    raise_usage(
        fmt::format("{} was called after a DataParallel ended between begin() and step(), where the others "
                    "wait for this rank; the group cannot be used any more",
                    call));
}

void tune_for_cpu() {
  train::keep_freed_memory();
  train::use_one_blas_thread();
}

Group Group::from_environment(const Terms& terms, bool encrypt) {
  const torch::Device device = or_raise(train::device_of_rank());
  comm::ConnectOptions options = or_raise(train::connect_options());
  options.encryption = encryption_of(encrypt);
  options.streams = Place{}.streams;
  std::vector<double> shares = or_raise(launchers_shares(env::get(env::job_shares).value_or(""), options.size));
  return Group(make_group(std::move(options), device, terms, std::move(shares)));
}

Group Group::connect(const Place& place, const Terms& terms) {
  comm::ConnectOptions options{.rank = place.rank,
                               .size = place.size,
                               .master_address = place.master_address,
                               .master_port = place.master_port,
                               .bind_address = place.bind_address,
                               .secret = place.secret,
                               .encryption = encryption_of(place.encrypt),
                               .streams = place.streams,
                               .connect_timeout_s = place.connect_timeout_s};
  std::vector<double> even = or_raise(launchers_shares("", place.size));
  return Group(make_group(std::move(options), place.device, terms, std::move(even)));
}

const std::shared_ptr<GroupState>& Group::state() const {
  if (!state_) raise_usage("this Group was moved from; use the one that it was moved to");
  return state_;
}

int Group::rank() const { return state()->communicator->rank(); }
int Group::size() const { return state()->communicator->size(); }
torch::Device Group::device() const { return state()->ops.device(); }
std::string Group::transport() const { return state()->communicator->transport(); }
std::vector<double> Group::shares() const { return state()->shares; }

std::vector<double> Group::sum(const std::vector<double>& values) const {
  state()->require_no_step("Group::sum()");
  const size_t count = values.size();
  std::vector<double> all(count * size_t(size()));
  or_raise(state()->communicator->all_gather(std::as_bytes(std::span(values)), std::as_writable_bytes(std::span(all)),
                                             label::kUserSum));
  std::vector<double> sums(count);
  for (size_t i = 0; i < all.size(); ++i) sums[i % count] += all[i];
  return sums;
}

void Group::barrier() const {
  state()->require_no_step("Group::barrier()");
  or_raise(state()->communicator->barrier(label::kUserBarrier));
}

void Group::set_timeout(double seconds) const {
  if (!(seconds > 0)) raise_usage(fmt::format("the timeout is {} s; it must be above 0", seconds));
  state()->timeout_s = seconds;
  state()->communicator->set_timeout(seconds);
}

}  // namespace remuda::parallel
