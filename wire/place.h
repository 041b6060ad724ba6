// Where an agent is found: its socket, and the mark by which every program knows that this machine has one.
#pragma once

#include <optional>
#include <string>

namespace remuda::wire {

/// The socket of the agent of a machine. `installed`, a file beside it, is there from the installation on, whether or
/// not the agent runs: with it, no command makes a pool of its own.
inline constexpr const char* kSocket = "/run/remuda/agent.sock";
inline constexpr const char* kInstalled = "installed";

/// The socket to use; nothing where this machine has no agent. REMUDA_AGENT names one, for any machine; otherwise only
/// the live machine (`live`) has one.
std::optional<std::string> agent_socket(bool live);
/// The same, with what stands for the environment's value and for kSocket.
std::optional<std::string> agent_socket(bool live, const std::optional<std::string>& named, const std::string& socket);

}  // namespace remuda::wire
