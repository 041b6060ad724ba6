#include "train/worker_program.h"

#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <iostream>
#include <iterator>
#include <unistd.h>
#include <utility>

#include "base/env.h"
#include "base/file.h"
#include "base/standard_streams.h"
#include "base/version.h"
#include "measure/plan.h"
#include "train/device/memory_watch.h"
#include "train/elastic_run.h"
#include "train/measure/rank.h"
#include "train/precision.h"
#include "train/process_tuning.h"
#include "train/rank_environment.h"
#include "train/run_terms.h"

namespace remuda::train {
namespace {

constexpr const char* kMeasure = "--measure";

std::atomic<bool> g_leave = false;
std::atomic<bool> g_leaves_alone = false;  // the others go on without this rank, which need not stop together with them
std::atomic<int> g_signal = 0;             // the last one that asked for it
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "a signal handler may set them");

/// To be called once the ranks are connected: until then a signal ends the process at once, as there is nothing to
/// report yet. A terminal that is closed sends SIGHUP to all processes of its foreground group, workers too.
void leave_on_signals() {
  struct sigaction action{};
  action.sa_handler = [](int signal) {
    if (g_leaves_alone) ::_exit(128 + signal);
    g_signal = signal;
    g_leave = true;
  };
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction hang_up{};
  sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // nohup's setting is kept
}

std::string read_input() { return {std::istreambuf_iterator<char>(std::cin), {}}; }

Result<job::TrainJob> read_job(const std::string& file) {
  std::string text;
  if (file == "-") {
    text = read_input();
  } else {
    REMUDA_ASSIGN(text, read_text(file));
  }
  REMUDA_ASSIGN(job::ParsedJob parsed, job::parse_job(text, file == "-" ? "standard input" : file));
  return std::move(parsed.job);
}

Result<void> measure_plan(const Events& events) {
  REMUDA_ASSIGN(const measure::Plan plan, measure::parse_plan(read_input()));
  REMUDA_ASSIGN(comm::ConnectOptions options, connect_options(measure::rank_count(plan)));
  const int rank = options.rank;
  if (options.size > 1) options.terms = terms_of(plan);
  options.timeout_s += 2 * measure::longest_phase_s(plan);  // ranks wait for each other's phases
  REMUDA_ASSIGN(const std::unique_ptr<comm::Communicator> communicator, connect(std::move(options)));
  REMUDA_TRY(measure_rank(plan, *communicator, events));
  events.send({{"event", "done"}, {"rank", rank}});
  return {};
}

/// While that descriptor is open here, the claim holds.
Result<bool> has_claim() {
  if (!env::get(env::claim_fd)) return false;
  REMUDA_ASSIGN(const int fd, env::get_int(env::claim_fd, 0, 1 << 20));
  if (::fcntl(fd, F_GETFD) >= 0) return true;
  return usage_error(fmt::format("{}={} is no open descriptor", env::claim_fd.name, fd));
}

Result<void> train_job(const std::string& file, const Events& events) {
  TrainerOptions trainer_options;
  REMUDA_ASSIGN(trainer_options.device, device_of_rank());
  REMUDA_ASSIGN(const job::TrainJob job, read_job(file));
  if (job.devices.empty())
    return usage_error("the job names no [[device]]; a worker needs to know which one is its own");
  if (job.train.deterministic == job::Switch::on) use_one_cublas_workspace();
  bool is_ready = false;
  const auto connected = [&](int rank, bool may_leave_alone) {
    g_leaves_alone = may_leave_alone;
    if (may_leave_alone && g_leave) ::_exit(128 + g_signal);  // it came while this rank had to wait for the others
    if (std::exchange(is_ready, true)) return;
    leave_on_signals();
    events.send({{"event", "ready"}, {"rank", rank}, {"pid", getpid()}, {"torch", TORCH_VERSION}});
  };
  if (const auto address = env::get(env::join)) {
    REMUDA_ASSIGN(Newcomer newcomer, Newcomer::ask(job, *address, events));
    return ElasticRun(job, events, g_leave, std::move(newcomer), trainer_options, connected).run();
  }
  if (env::get(env::step_times_fd)) {
    REMUDA_ASSIGN(trainer_options.step_times_fd, env::get_int(env::step_times_fd, 0, 1 << 20));
  }
  REMUDA_ASSIGN(trainer_options.folder_is_claimed, has_claim());
  REMUDA_ASSIGN(MembersFeed feed, MembersFeed::open());
  return ElasticRun(job, events, g_leave, std::move(feed), trainer_options, connected).run();
}

Result<void> work(const std::string& argument, const Events& events) {
  try {
    return argument == kMeasure ? measure_plan(events) : train_job(argument, events);
  } catch (const c10::Error& error) {
    return failed("libtorch: " + first_line(error));
  } catch (const std::exception& error) {
    return failed(first_line(error));
  }
}

/// For `remuda`, which does not link libtorch: its version, and what it computes in on CPUs.
Json abilities() {
  Json types{"float32"};
  for (const auto asked : {job::Precision::bf16, job::Precision::fp16})
    if (const auto type = compute_type(asked, torch::kCPU); type != torch::kFloat)
      types.push_back(precision_name(type));
  return {{"torch", TORCH_VERSION}, {"cpu", std::move(types)}};
}

const char* kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return "usage";
    case ErrorKind::lost_peer:
      return "lost_peer";
    default:
      return "failed";
  }
}

int run(const std::string& argument) {
  int fd = -1;
  if (env::get(env::events_fd)) {
    const auto given = env::get_int(env::events_fd, 0, 1 << 20);
    if (!given) return std::cerr << "remuda-train: " << given.error().message << "\n", 2;
    fd = *given;
    if (::fcntl(fd, F_GETFD) < 0)
      return std::cerr << fmt::format("remuda-train: {}={} is no open descriptor\n", env::events_fd.name, fd), 2;
  }
  const Events events(fd);
  const auto outcome = work(argument, events);
  if (outcome) return 0;
  const Error& error = outcome.error();
  events.send({{"event", "error"}, {"kind", kind_name(error.kind)}, {"message", error.message}, {"peer", error.peer}});
  if (fd < 0) std::cerr << "remuda-train: " << error.message << "\n";
  return exit_status(error.kind);
}

}  // namespace

int run_worker(int argc, char** argv) {
  open_standard_streams();
  const std::string argument = argc == 2 ? argv[1] : "";
  if (argument == "--version") return std::cout << "remuda-train " << version() << "\n", 0;
  if (argument == "--abilities") return std::cout << to_line(abilities()) << "\n", 0;
  if (argument.empty() || argument == "--help") {
    (argument.empty() ? std::cerr : std::cout)
        << "usage: remuda-train FILE.toml\n"
           "One rank of a training run; RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and REMUDA_SECRET say which.\n"
           "All ranks need the same job, the same data (the files may lie elsewhere) and the same "
           "TORCHELASTIC_RUN_ID.\n"
           "`remuda train FILE.toml` starts one per device. `remuda-train --abilities` says what its libtorch can "
           "do.\n";
    return argument.empty() ? 2 : 0;
  }
  keep_freed_memory();
  count_cpu_memory();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of its write, as a full disk is
  return run(argument);
}

}  // namespace remuda::train
