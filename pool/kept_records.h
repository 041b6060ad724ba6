// KeptRecords: which jobs that have ended a pool still remembers. Pure. Internal to pool.
//
// Each owner has a part of its own, by number and by bytes, so that nobody's jobs make those of others be forgotten.
// Where all together are too many, nobody keeps more than the level at which they fit: it goes from those who have
// most.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace remuda::pool {

class KeptRecords {
 public:
  struct Limits {
    size_t jobs_of_owner = 10'000, jobs = 50'000;
    size_t bytes_of_owner = 32 << 20, bytes = 256 << 20;
  };
  KeptRecords() = default;
  explicit KeptRecords(Limits limits) : limits_(limits) {}

  /// A job of this user has ended, and its record has so many bytes.
  void add(int64_t job, int uid, size_t bytes);
  /// The jobs that are forgotten from here on, the oldest of each owner first; none that is still needed.
  std::vector<int64_t> take_excess(const std::function<bool(int64_t)>& is_needed);

 private:
  struct Owner {
    std::map<int64_t, size_t> records;  ///< bytes of each job's
    size_t bytes = 0;
  };
  Limits limits_;
  std::map<int, Owner> owners_;
};

}  // namespace remuda::pool
