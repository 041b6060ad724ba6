// `remuda train`: trains a model across devices.
#pragma once

#include "cli/command.h"

namespace remuda::cli {

void add_train(Program& program);

}  // namespace remuda::cli
