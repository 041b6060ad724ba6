// Reads the files of an installed PyTorch. Pure, except read_torch. No byte is trusted.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/facts.h"

namespace remuda::doctor {

/// The PyTorch in `folder` (.../torch), from version.py, include/ATen/cuda/CUDAConfig.h and lib/libtorch_python.so.
Reading<Torch> read_torch(const std::string& folder);

/// The value of `name = 'value'` or `name: Optional[str] = 'value'` in the text of version.py; empty for None, and
/// when there is no such line.
std::string version_value(std::string_view text, std::string_view name);

/// The targets among nvcc's flags in the text of CUDAConfig.h: "...arch=compute_70,code=sm_70;..." -> {"sm_70"}.
std::vector<std::string> gencode_targets(std::string_view text);

/// The list that torch.cuda.get_arch_list() shows, "sm_70 sm_80 compute_80" or "gfx90a gfx942", as found in the
/// library: a text between NULs that contains only targets. The longest one; none when that could also be another word.
std::vector<std::string> listed_targets(std::string_view library);

}  // namespace remuda::doctor
