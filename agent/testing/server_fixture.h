// For tests: an agent's loop in a thread, and clients of it.
#pragma once

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "agent/server.h"
#include "base/clock.h"
#include "base/testing/scratch_folder.h"
#include "wire/client.h"

namespace remuda::agent {

/// A machine whose one device a process uses without a lease, so that every job waits.
inline Inventory busy_box() {
  Inventory box;
  box.host = "box";
  Device device;
  device.id = "gpu:0";
  device.kind = DeviceKind::gpu;
  device.model = "Test 1000";
  device.status.processes = std::vector<Process>{{.pid = 1, .user = std::string("eve")}};
  box.devices.push_back(device);
  return box;
}

inline sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

/// An agent's loop in a thread.
class Running {
 public:
  Running(
      const std::string& folder, const std::string& socket, Limits limits = {},
      UserNames::LookUp look_up = [](int uid) { return Account{{"ada", {}}, uid}; }, Bearers bearers = Bearers())
      : stop_(::eventfd(0, EFD_CLOEXEC)), names_(std::move(look_up)) {
    auto view = pool::MachineView::open(
        folder, [] { return Result<Inventory>(busy_box()); }, [] { return Result<pool::Policy>(); }, false);
    auto service = Service::open(folder, *view, monotonic_s());
    EXPECT_TRUE(service) << service.error().message;
    machine_.emplace(std::move(*view));
    ::unlink(socket.c_str());
    Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const sockaddr_un address = address_of(socket);
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener.get(), 128), 0);
    server_.emplace(std::move(listener), std::move(*service), *machine_, names_, limits, std::move(bearers));
    thread_ = std::thread([this] { EXPECT_TRUE(server_->run(stop_.get())); });
  }
  ~Running() {
    const uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }

 private:
  Fd stop_;
  UserNames names_;
  std::optional<MachineThread> machine_;
  std::optional<Server> server_;
  std::thread thread_;
};

inline pool::Job job_for(const std::string& name) {
  pool::Job job{.name = name, .command = {"true"}};
  job.request.count = 1;
  return job;
}

class ServerTest : public testing::Test {
 protected:
  ServerTest() { running_.emplace(pool_, socket_); }
  std::unique_ptr<wire::Client> client() const {
    auto client = wire::Client::connect(socket_, "");
    EXPECT_TRUE(client) << client.error().message;
    return client ? std::move(*client) : nullptr;
  }
  Fd raw() const {
    Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval patience{20, 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    const sockaddr_un address = address_of(socket_);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  static std::string all_of(const Fd& socket) {
    std::string text;
    char bytes[4096];
    for (ssize_t got; (got = ::recv(socket.get(), bytes, sizeof bytes, 0)) > 0;)
      text.append(bytes, static_cast<size_t>(got));
    return text;
  }

  ScratchFolder folder_;
  const std::string pool_ = folder_.path("pool"), socket_ = folder_.path("socket");
  std::optional<Running> running_;
};

}  // namespace remuda::agent
