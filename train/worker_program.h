// remuda-train: one rank of a training run, on one device.
//
//   remuda-train FILE.toml    with torchrun's variables set (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT) and
//                             REMUDA_SECRET
//   remuda-train -            the job's text on standard input: how `remuda train` starts it
//   remuda-train --measure    a plan (measure/plan.h) on standard input: how `remuda bench links` starts it
//
// Rank r works on the job's r-th [[device]]. Ranks whose job, data or run id differ refuse each other. Exit status: 0
// done, 1 failed, 2 wrong input.
#pragma once

namespace remuda::train {

/// The whole program. main.cc only calls this, so that one file less includes libtorch's headers.
int run_worker(int argc, char** argv);

}  // namespace remuda::train
