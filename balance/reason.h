// The sentences that say why shares move.
#pragma once

#include <string>

namespace remuda::balance {

/// "the step is predicted 12 % shorter" for a gain of 0.12.
std::string gain_text(double gain);

/// A device and what happens to its share.
struct ShareMove {
  std::string device;  ///< its name for people
  int from = 0;
  int to = 0;
};

/// "device 1 became 1.8x slower: its share goes from 60 to 38 samples; the step is predicted 12 % shorter". `factor` is
/// by how much its times grew.
std::string speed_reason(const ShareMove& move, double factor, double gain);
/// "the last 32 steps would have been 4 % shorter with other shares: that of device 1 goes from 60 to 52 samples".
std::string hindsight_reason(const ShareMove& move, int steps, double gain);
/// "device 2 is the slowest: its share goes ...".
std::string slowest_reason(const ShareMove& move, double gain);
/// "device 2 had no samples for 200 steps: its share goes ... to measure it again".
std::string retry_reason(const ShareMove& move, int idle_steps);
/// "device 1 takes at most 38 samples: its share goes ...".
std::string limit_reason(const ShareMove& move, int most);

}  // namespace remuda::balance
