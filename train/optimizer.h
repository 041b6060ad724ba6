// What a job's keys mean for the optimizer.
#pragma once

#include <cstdint>
#include <vector>

#include "job/train_job.h"
#include "train/update_rule.h"

namespace remuda::train {

UpdateRule rule_of(const job::TrainSpec& spec);
UpdatesOn updates_on(const job::MemorySpec& spec);

/// The group of each parameter, for job::Decay: 0 decays, 1 does not.
std::vector<size_t> groups_of(const job::TrainSpec& spec, const std::vector<torch::Tensor>& parameters);

/// Steps of the whole run over so many samples. At most the largest int: a run that is to go on until it is stopped may
/// ask for any number of epochs.
int steps_of(const job::TrainSpec& spec, uint64_t samples);

/// So many of `steps` are made before this compression begins.
int warm_up_of(const job::TrainSpec& spec, job::Compression compression, int steps);

/// The learning rate of step `step` of `steps`, counted from 0. Cosine: Loshchilov and Hutter 2017, arXiv:1608.03983.
double learning_rate(const job::TrainSpec& spec, int step, int steps);

/// Of both groups, in that step.
std::vector<GroupSettings> settings_of(const job::TrainSpec& spec, int step, int steps);

}  // namespace remuda::train
