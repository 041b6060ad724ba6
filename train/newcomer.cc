#include "train/newcomer.h"

#include <algorithm>
#include <fmt/format.h>
#include <random>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/host_port.h"
#include "base/text.h"
#include "comm/handshake.h"
#include "comm/wire.h"
#include "train/agreement.h"
#include "train/labels.h"
#include "train/rank_environment.h"

namespace remuda::train {
namespace {

constexpr double kQueue_s = 3600;  // behind others that join
constexpr double kTry_s = 5;       // a handshake takes milliseconds, unless another one is inside
constexpr double kPause_s = 0.3;
constexpr double kSoon_s = 1;
constexpr double kSilence_s = 60;  // rank 0 says several times a second that this rank has to wait

using Channel = std::unique_ptr<comm::Communicator>;

std::string name_of_host() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

void note(const Events& events, const std::string& text) { events.send({{"event", "note"}, {"text", text}}); }

/// Waits until somebody listens there, and says so if that takes long; an error where nobody does in time.
Result<void> find_listener(const comm::ConnectOptions& options, const Events& events) {
  const comm::Endpoint listener{options.master_address, options.master_port};
  if (comm::dial(listener, comm::deadline_after(std::min(kSoon_s, options.connect_timeout_s)))) return {};
  note(events, fmt::format("no run lets others join at {} yet; tries again for {:g} s", listener.text(),
                           options.connect_timeout_s));
  const auto found = comm::dial(listener, comm::deadline_after(options.connect_timeout_s));
  if (found) return {};
  return usage_error(fmt::format("no run lets others join at {}: {} (a run does that with elastic.join)",
                                 listener.text(), found.error().message));
}

/// Says who comes, and hears what it is told then. An error where another one came at the same time.
Result<JoinSignal> introduce(comm::Communicator& channel, const job::TrainJob& job) {
  const Applicant applicant{job.devices.at(0), own_place(), name_of_host()};
  REMUDA_TRY(share_text(channel, 1, to_text(applicant), label::kJoin));
  return exchange_signals(channel, JoinSignal::here);
}

struct Entered {
  Channel channel;
  JoinSignal word;  ///< the first one
};

/// Comes in, behind those that have come before.
Result<Entered> come_in(const job::TrainJob& job, const comm::ConnectOptions& options, const Events& events) {
  const comm::Endpoint listener{options.master_address, options.master_port};
  std::minstd_rand random(std::random_device{}());
  REMUDA_TRY(find_listener(options, events));
  bool has_said = false;
  for (const double end_s = comm::deadline_after(kQueue_s);;) {
    Result<Channel> channel = comm::connect({.rank = 1,
                                             .size = 2,
                                             .master_address = options.master_address,
                                             .master_port = options.master_port,
                                             .bind_address = options.bind_address,
                                             .secret = options.secret,
                                             .encryption = options.encryption,
                                             .terms = terms_of_join(job),
                                             .transport = comm::ConnectOptions::Transport::tcp,
                                             .timeout_s = kSilence_s,
                                             .connect_timeout_s = kTry_s});
    const Result<JoinSignal> heard = channel ? introduce(**channel, job) : tl::unexpected(channel.error());
    if (heard) return Entered{std::move(*channel), *heard};
    if (heard.error().kind != ErrorKind::lost_peer && !comm::is_there_twice(heard.error()))
      return tl::unexpected(heard.error());
    if (monotonic_s() >= end_s)
      return failed(fmt::format("others have joined the run for {:g} s before this one", kQueue_s));
    if (const auto there = comm::dial(listener, comm::deadline_after(kSoon_s)); !there)
      return failed(fmt::format("the run at {} was over before this one could join it: {}", listener.text(),
                                there.error().message));
    if (!has_said && monotonic_s() >= end_s - kQueue_s + kTry_s) {
      note(events, fmt::format("others join the run at {}; waits for its turn", listener.text()));
      has_said = true;
    }
    steady_clock().sleep_s(std::uniform_real_distribution(kPause_s, 4 * kPause_s)(random));  // not with the other again
  }
}

/// After JoinSignal::refused or JoinSignal::failed.
Error reason_of(comm::Communicator& channel, JoinSignal word) {
  const auto why = share_text(channel, 0, "", label::kJoin);
  return {word == JoinSignal::refused ? ErrorKind::usage : ErrorKind::failed,
          fmt::format("the run does not take in this device: {}", why ? *why : why.error().message), -1};
}

bool is_refusal(JoinSignal word) { return word == JoinSignal::refused || word == JoinSignal::failed; }

Error gone(const Error& error) { return {ErrorKind::failed, fmt::format("the run went away: {}", error.message), -1}; }

}  // namespace

Result<Newcomer> Newcomer::ask(const job::TrainJob& job, const std::string& address, const Events& events) {
  const auto listener = parse_host_port(address);
  if (!listener || job.devices.size() != 1)
    return usage_error(fmt::format("{} is '{}' for {}; it must be HOST:PORT, or PORT of this host, for one device",
                                   env::join.name, address, counted(double(job.devices.size()), "device")));
  if (!takes_samples(job.devices[0].role))
    return usage_error(fmt::format("{} has a role other than to compute, and a device that joins a run can have none",
                                   job.devices[0].use));
  REMUDA_ASSIGN(comm::ConnectOptions options, connect_options_of_any());
  options.master_address = listener->host.empty() ? "127.0.0.1" : listener->host;
  options.master_port = listener->port;
  if (job.train.encrypt == job::Switch::off) options.encryption = comm::Encryption::off;
  REMUDA_ASSIGN(Entered entered, come_in(job, options, events));
  Channel& channel = entered.channel;
  for (Result<JoinSignal> word = entered.word; *word != JoinSignal::come;) {
    if (is_refusal(*word)) return tl::unexpected(reason_of(*channel, *word));
    word = exchange_signals(*channel, JoinSignal::here);
    if (!word) return tl::unexpected(gone(word.error()));
  }
  const auto text = share_text(*channel, 0, "", label::kJoin);
  if (!text) return tl::unexpected(gone(text.error()));
  REMUDA_ASSIGN(Invitation invitation, parse_invitation(*text));
  if (const auto heard = exchange_signals(*channel, JoinSignal::here); !heard)
    return tl::unexpected(gone(heard.error()));
  return Newcomer(std::move(invitation), std::move(channel));
}

job::TrainJob Newcomer::job_of(job::TrainJob own) const {
  own.devices = invitation_.devices;
  own.elastic.join = invitation_.join;
  own.checkpoint.resume = invitation_.resume ? job::Switch::on : job::Switch::off;
  return own;
}

Result<void> Newcomer::wait_to_be_taken_in(double timeout_s) const {
  channel_->set_timeout(timeout_s);
  auto word = exchange_signals(*channel_, JoinSignal::here);
  while (word && *word == JoinSignal::wait) word = exchange_signals(*channel_, JoinSignal::here);
  if (word && is_refusal(*word)) return tl::unexpected(reason_of(*channel_, *word));
  return {};
}

}  // namespace remuda::train
