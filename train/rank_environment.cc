#include "train/rank_environment.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/env.h"
#include "train/device/device_ops.h"

namespace remuda::train {
namespace {

constexpr int kMostRanks = 1 << 16;

Result<comm::ConnectOptions::Transport> transport_named(const std::string& name) {
  using Transport = comm::ConnectOptions::Transport;
  if (name == "auto") return Transport::automatic;
  if (name == "shm") return Transport::shared_memory;
  if (name == "tcp") return Transport::tcp;
  return usage_error(
      fmt::format("{} is '{}'; it must be auto, shm or tcp ({})", env::transport.name, name, env::transport.meaning));
}

/// All but the socket at which rank 0 listens.
Result<comm::ConnectOptions> options_of_rank(int ranks) {
  REMUDA_ASSIGN(comm::ConnectOptions options, connect_options_of_any());
  REMUDA_ASSIGN(options.size, env::get_int(env::world_size, ranks, ranks));
  REMUDA_ASSIGN(options.rank, env::get_int(env::rank, 0, options.size - 1));
  if (options.size == 1) return options;
  options.master_address = env::get(env::master_addr).value_or(options.master_address);
  REMUDA_ASSIGN(options.master_port, env::get_master_port());
  return options;
}

}  // namespace

Result<comm::ConnectOptions> connect_options_of_any() {
  comm::ConnectOptions options;
  REMUDA_ASSIGN(options.transport, transport_named(env::get(env::transport).value_or("auto")));
  options.bind_address = env::get(env::bind).value_or(options.bind_address);
  options.secret = env::get(env::secret).value_or("");
  if (env::get(env::connect_timeout)) {
    REMUDA_ASSIGN(options.connect_timeout_s, env::get_int(env::connect_timeout, 1, 86400));
  }
  return options;
}

Result<comm::ConnectOptions> connect_options(int ranks) {
  REMUDA_ASSIGN(comm::ConnectOptions options, options_of_rank(ranks));
  if (options.size > 1 && options.rank == 0 && env::get(env::listen_fd)) {
    REMUDA_ASSIGN(const int fd, env::get_int(env::listen_fd, 0, 1 << 20));
    options.listener = Fd(fd);
  }
  return options;
}

Result<comm::ConnectOptions> connect_options(const Members& members, int number) {
  REMUDA_ASSIGN(comm::ConnectOptions options, connect_options_of_any());
  Fd listener(members.listen_fd);
  const auto place = std::ranges::find(members.ranks, number);
  if (place == members.ranks.end()) return failed(fmt::format("rank {} is not one of those that are left", number));
  options.rank = static_cast<int>(place - members.ranks.begin());
  options.size = static_cast<int>(members.ranks.size());
  options.master_address =
      members.address.empty() ? env::get(env::master_addr).value_or(options.master_address) : members.address;
  options.master_port = members.port;
  if (options.rank == 0 && options.size > 1) options.listener = std::move(listener);
  return options;
}

Result<comm::ConnectOptions> connect_options() {
  if (!env::get(env::world_size)) return comm::ConnectOptions{};
  REMUDA_ASSIGN(const int ranks, env::get_int(env::world_size, 1, kMostRanks));
  return connect_options(ranks);
}

Result<torch::Device> device_of_rank() {
  const std::string type = env::get(env::torch_device).value_or("cpu");
  try {
    const torch::Device device(type == "cpu" ? type : type + ":0");
    REMUDA_TRY(DeviceOps::open(device));
    return device;
  } catch (const c10::Error&) {
    return usage_error(fmt::format("{} is '{}', which is no type of device of libtorch {} ({})", env::torch_device.name,
                                   type, TORCH_VERSION, env::torch_device.meaning));
  }
}

}  // namespace remuda::train
