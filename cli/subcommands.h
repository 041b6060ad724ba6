// The list of all subcommands of `remuda`. Each is in the file of its name, unless stated otherwise.
#pragma once

#include "cli/command.h"

namespace remuda::cli {

// see: a machine
void add_bench(Program& program);
void add_doctor(Program& program);
void add_import(Program& program);
void add_list(Program& program);
void add_record(Program& program);
void add_topo(Program& program);
void add_web(Program& program);
void add_top(Program& program);

// jobs: devices for programs
void add_adopt(Program& program);
void add_agent(Program& program);
void add_bind(Program& program);
void add_cancel(Program& program);
void add_drain(Program& program);
void add_exec(Program& program);
void add_history(Program& program);
void add_hold(Program& program);
void add_jupyter(Program& program);
void add_logs(Program& program);
void add_partition(Program& program);
void add_pause(Program& program);  // change_jobs.cc
void add_place(Program& program);
void add_policy(Program& program);
void add_ps(Program& program);  // queue.cc
void add_queue(Program& program);
void add_release(Program& program);       // hold.cc
void add_reprioritize(Program& program);  // change_jobs.cc
void add_rerun(Program& program);
void add_resume(Program& program);  // change_jobs.cc
void add_run(Program& program);
void add_show(Program& program);
void add_undrain(Program& program);  // drain.cc
void add_usage(Program& program);    // device_hours.cc
void add_wait(Program& program);
void add_why(Program& program);

// watch: what devices did, and for whom
void add_alerts(Program& program);
void add_watch(Program& program);

// train: a model on unlike devices
void add_checkpoint(Program& program);
void add_report(Program& program);
void add_train(Program& program);

void add_completion(Program& program);
void add_help(Program& program);  // help_command.cc

/// Declares them all, in the order of --help, with the program's own flags and examples.
void add_subcommands(Program& program);

}  // namespace remuda::cli
