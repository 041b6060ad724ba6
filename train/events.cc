#include "train/events.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/file.h"

namespace remuda::train {

class Events::Writer {
 public:
  explicit Writer(int fd) : fd_(fd), thread_([this] { run(); }) {}

  ~Writer() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void push(std::string line, bool is_progress) {
    {
      const std::lock_guard lock(mutex_);
      if (reader_gone_) return;
      if (is_progress) std::erase_if(waiting_, [](const Line& old) { return old.is_progress; });
      waiting_.push_back({std::move(line), is_progress});
    }
    changed_.notify_all();
  }

 private:
  struct Line {
    std::string text;
    bool is_progress;
  };

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const Line line = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      const bool written = write_all(fd_, line.text, "the event stream").has_value();
      lock.lock();
      if (written) continue;
      reader_gone_ = true;  // a launcher that ends takes its workers with it
      waiting_.clear();
    }
  }

  const int fd_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Line> waiting_;
  bool closing_ = false;
  bool reader_gone_ = false;
  std::thread thread_;
};

Events::Events(int fd) : writer_(fd < 0 ? nullptr : std::make_unique<Writer>(fd)) {}

Events::~Events() = default;

void Events::send(const Json& event) const {
  if (writer_) writer_->push(to_line(event) + "\n", event.value("event", "") == "step");
}

Json to_json(const balance::BalanceDecision& decision) {
  Json json{{"step", decision.step},
            {"shares", decision.shares},
            {"predicted_step_s", decision.predicted_step_s},
            {"predicted_gain", decision.predicted_gain},
            {"reason", decision.reason}};
  if (!decision.state_shares.empty()) json["state_shares"] = decision.state_shares;
  return json;
}

}  // namespace remuda::train
