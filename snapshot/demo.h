// The recording that comes with remuda, inside the program.
#pragma once

#include <string_view>

namespace remuda::snapshot {

/// For ReplaySource: eight unlike devices, an hour of their users' jobs. make_demo.py makes it.
std::string_view demo_recording();

}  // namespace remuda::snapshot
