// Poller: asks the cloud every few seconds, beside the agent's loop, and says what has changed.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "base/file.h"
#include "spot/cloud.h"

namespace remuda::spot {

/// Where the three clouds answer, and how long one may take.
inline constexpr const char* kMetadataHost = "169.254.169.254";
inline constexpr int kMetadataPort = 80;
inline constexpr double kPatience_s = 5, kEvery_s = 5;

/// Asks that server; each answer has kPatience_s, and none is waited for once `stop` is readable.
Ask asking(HostPort server, int stop);

/// Makes what asks; `stop` is as of asking().
using MakeWatch = std::function<Watch(int stop)>;

/// Used by one thread.
class Poller {
 public:
  /// `say` gets a sentence when the cloud stops answering, or answers again; from the thread that asks.
  Poller(const MakeWatch& make, std::function<void(const std::string&)> say, double every_s);
  ~Poller();
  Poller(const Poller&) = delete;

  /// Readable when what the cloud says has changed, and when it has answered for the first time.
  int fd() const { return ready_.get(); }
  struct News {
    std::optional<Notice> notice;  ///< nothing: there is none, or not any more
  };
  /// The news since the last call; nothing where there are none.
  std::optional<News> take();

 private:
  void work();
  void look();

  Fd stop_;
  Watch watch_;  ///< the thread's own
  const std::function<void(const std::string&)> say_;
  const double every_s_;
  bool answers_ = true;       ///< the thread's own: it did, the last time
  std::optional<News> said_;  ///< likewise: the last news
  Fd ready_;
  std::mutex mutex_;
  std::optional<News> news_;
  std::thread thread_;
};

}  // namespace remuda::spot
