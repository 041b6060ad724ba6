#include "cli/subcommands.h"

#include "base/version.h"
#include "cli/help.h"

namespace remuda::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  remuda list                                      the devices of this machine, and who uses them\n"
    "  remuda topo                                      how they are joined, and how fast\n"
    "  remuda web                                       all of it in a browser\n"
    "  remuda top                                       the same in a terminal\n"
    "  remuda doctor                                    whether driver, toolkit and framework fit together\n"
    "  remuda record machine.json                       this machine as a file\n"
    "  remuda list --machine machine.json               a recorded machine in place of this one\n"
    "  remuda place -n 2 --explain                      the best two GPUs for a job, and why\n"
    "  remuda run -n 2 -- python train.py               wait for them, hold them, and run\n"
    "  remuda ps                                        who holds what\n"
    "  remuda train job.toml                            train as the file says\n"
    "  remuda train job.toml --set balance.policy=even  the same, with one value changed\n"
    "  remuda report one.json two.json                  the reports of two runs side by side\n"
    "  remuda completion bash                           completion for your shell\n";

}  // namespace

void add_subcommands(Program& program) {
  program.app.set_version_flag("-V,--version", std::string("remuda ") + version());
  program.app.require_subcommand(0, 1);
  program.app.footer(kExamples);
  add_list(program);
  add_topo(program);
  add_web(program);
  add_top(program);
  add_doctor(program);
  add_record(program);
  add_import(program);
  add_bench(program);
  add_place(program);
  add_run(program);
  add_ps(program);
  add_queue(program);
  add_why(program);
  add_show(program);
  add_wait(program);
  add_logs(program);
  add_cancel(program);
  add_pause(program);
  add_resume(program);
  add_reprioritize(program);
  add_rerun(program);
  add_history(program);
  add_usage(program);
  add_watch(program);
  add_alerts(program);
  add_drain(program);
  add_undrain(program);
  add_policy(program);
  add_exec(program);
  add_hold(program);
  add_release(program);
  add_adopt(program);
  add_bind(program);
  add_jupyter(program);
  add_agent(program);
  add_partition(program);
  add_train(program);
  add_report(program);
  add_checkpoint(program);
  add_completion(program);
  add_help(program);
  use_short_help(program.app);
}

}  // namespace remuda::cli
