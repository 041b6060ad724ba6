// machine_file(): where a recorded machine of testdata/machines is. For tests only.
#pragma once

#include <string>
#include <string_view>

namespace remuda {

/// The path of the inventory of that name: machine_file("nv-dgx1-v100-8gpu-4nic").
std::string machine_file(std::string_view name);

}  // namespace remuda
