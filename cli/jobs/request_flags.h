// The flags that say which devices a job wants.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "place/request.h"

namespace remuda::cli {

/// As typed; make_request() checks them.
struct RequestFlags {
  int gpus = 0;   ///< 0: not given
  int cores = 0;  ///< likewise
  std::string memory, model, capability, link, share, where, host_memory;
  std::vector<std::string> devices;
  bool same_model = false, any_model = false, cpu = false;
};

inline constexpr const char* kWhichDevices = "Which devices";  ///< the group of add_request_options()

/// Declares -n/--gpus, --mem, --model, --cap, --link, --same-model, --any-model, --device, --share, --where, --cpu,
/// --cpus and --host-mem. `flags` must live as long as the command's action.
void add_request_options(CLI::App& command, RequestFlags& flags);

/// Without -n: as many devices as --device names, else one. A usage error names the flag that is wrong.
Result<place::Request> make_request(const RequestFlags& flags);

/// The flags as words of a command line, which add_request_options() reads as the same.
std::vector<std::string> words_of(const RequestFlags& flags);

}  // namespace remuda::cli
