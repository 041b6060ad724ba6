// Recorder: what the threads of one rank do, and when: spans on tracks, one track for each thread; and numbers that
// change meanwhile, as counters.
//
// A thread that works for a rank joins the rank's recorder, and says what it does with spans:
//
//   const Join join(recorder, "exchange");
//   const Span span("reduce_scatter", {{"bucket", 3}, {"bytes", 4096}});
//
// On a thread that has joined none, or while nothing is recorded, a span costs a look at a pointer.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace remuda::profile {

/// A number that a span is about: a bucket's, its bytes. Without a name: none. The name outlives all recorders.
struct Detail {
  const char* name = nullptr;
  int64_t value = 0;
};
using Details = std::array<Detail, 2>;

enum class Kind : uint8_t {
  work,       ///< what the engine does: few, none of them is left out
  operation,  ///< an operator of the framework: many
};

struct SpanRecord {
  std::string_view name;  ///< of the recorder's
  Kind kind = Kind::work;
  double start_s = 0, end_s = 0;  ///< on the recorder's clock
  Details details;
};

/// All operations of one name.
struct OperationTotal {
  std::string_view name;
  int64_t calls = 0;
  double total_s = 0;                      ///< with the operations that they call
  double self_s = 0;                       ///< without these
  double device_s = 0, device_self_s = 0;  ///< the same on the device, where add_device_time() was told of it
};

/// What one thread did. Spans are in the order in which they ended: those within another come before it.
struct TrackRecord {
  std::string name;
  std::vector<SpanRecord> spans;
};

/// A number that changes while the rank works, as the memory that it has in use.
struct CounterRecord {
  struct Value {
    double time_s = 0;  ///< on the recorder's clock
    double value = 0;   ///< from then on
  };
  std::string name;
  std::vector<Value> values;
};

/// Another tool that spans are reported to while they are open, on their own thread: a vendor's profiler, say. A name
/// stays valid.
struct Ranges {
  void (*push)(const char* name) = nullptr;
  void (*pop)() = nullptr;
};

class Recorder;

/// One thread's. Spans of a track are nested.
class Track {
 public:
  Track(Recorder& recorder, std::string name) : recorder_(recorder), name_(std::move(name)) {}

  Recorder& recorder() const { return recorder_; }
  /// Opens a span within those that are open; returns how many were.
  size_t begin(std::string_view name, Kind kind, const Details& details = {});
  /// Closes those that were opened since begin() returned `depth`; returns the seconds of the outermost of them.
  double end(size_t depth);

 private:
  friend class Recorder;
  struct Open {
    SpanRecord span;
    double within_s = 0;  ///< of the operations directly within it
  };
  void close(double now_s);

  Recorder& recorder_;
  const std::string name_;
  std::mutex mutex_;
  std::vector<Open> open_;
  std::vector<SpanRecord> spans_;
  std::map<std::string_view, OperationTotal> totals_;
};

class Recorder {
 public:
  /// Keeps at most so many operations as spans, which bounds its memory (72 bytes each); the totals count all.
  static constexpr size_t kMostOperations = 200'000;

  explicit Recorder(Clock& clock = steady_clock(), size_t most_operations = kMostOperations);
  Recorder(const Recorder&) = delete;

  /// From now on spans that begin are recorded, or none. Any thread.
  void set_recording(bool on) { recording_ = on; }
  bool is_recording() const { return recording_; }
  /// Who else is told of spans. To be set before anything is recorded.
  void report_to(const Ranges& ranges) { ranges_ = ranges; }

  /// Adds to the total of an operation what a device took for it, with the operations that it calls and without. Any
  /// thread.
  void add_device_time(std::string_view name, double total_s, double self_s);

  /// From now on a counter has this value. It is recorded where it differs from the one that was recorded last by more
  /// than a thousandth of the largest so far, and at most so many times as operations are kept. Any thread.
  void set_counter(std::string_view name, double value);

  /// For a thread; lives as long as the recorder. Any thread.
  Track& add_track(std::string name);
  /// Different for each recorder of the process.
  uint64_t id() const { return id_; }

  /// What has ended so far, of each track that recorded something. Names are valid as long as the recorder. Any thread.
  std::vector<TrackRecord> tracks();
  /// By their names. Any thread.
  std::vector<CounterRecord> counters();
  /// Of all threads together, the largest self time first: that of the device, where any is known.
  std::vector<OperationTotal> totals();
  /// How many operations were not kept as spans.
  uint64_t left_out() const;
  /// How many values of counters were not kept. Any thread.
  uint64_t left_out_values();

 private:
  friend class Track;
  const std::string& kept_name(std::string_view name);

  Clock& clock_;
  const size_t most_operations_;
  const uint64_t id_;
  Ranges ranges_;
  std::atomic<bool> recording_ = false;
  std::atomic<uint64_t> operations_ = 0;
  std::mutex mutex_;  ///< of what follows
  std::deque<Track> tracks_;
  std::map<std::string, int, std::less<>> names_;
  std::map<std::string, OperationTotal, std::less<>> on_device_;  ///< times of the device only
  struct Counter {
    double largest = 0;
    CounterRecord record;
    uint64_t left_out = 0;
  };
  std::map<std::string, Counter, std::less<>> counters_;
};

/// The track of this thread, or null.
Track* track_here();
/// The recorder that this thread has joined, or null: what threads that it starts join.
Recorder* recorder_here();

/// While it lives, its thread works for `recorder`, which outlives it; for nobody where that is null.
class Join {
 public:
  Join(Recorder* recorder, std::string name);
  ~Join();
  Join(const Join&) = delete;

 private:
  Track* const before_;
};

/// A span whose length the engine reports as well: one measurement makes both, so that they agree however long the
/// thread is kept from the processor around it. Measures too where nothing is recorded.
class TimedSpan {
 public:
  explicit TimedSpan(std::string_view name, const Details& details = {});
  ~TimedSpan() { end(); }
  TimedSpan(const TimedSpan&) = delete;
  /// Ends it, the first time; returns its seconds.
  double end();

 private:
  Track* const track_;  ///< null where nothing is recorded
  size_t depth_ = 0;
  double start_s_ = 0, seconds_ = -1;
};

/// What its thread does as long as it lives. The name outlives all recorders.
class Span {
 public:
  explicit Span(std::string_view name, const Details& details = {});
  ~Span();
  Span(const Span&) = delete;

 private:
  Track* track_;  ///< null where nothing is recorded
  size_t depth_ = 0;
};

}  // namespace remuda::profile
