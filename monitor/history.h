// History: what was measured of a machine's devices over time, in a file of bounded size.
//
// Three levels: each second for an hour, each 10 seconds for a day, each minute for 30 days. A level is stored as
// chunks of 60 slots (slot.h); what is older than its level keeps is removed. The newest chunks are in memory and
// written by write(), which the caller does every 10 seconds or so: a killed process loses no more than what came
// since. 8 devices take 31 MB.
//
//   REMUDA_ASSIGN(History history, History::open(folder));
//   REMUDA_TRY(history.add(wall_s(), {{device.id, slot_of(device.status)}}));
//   REMUDA_TRY(history.write());
//   REMUDA_ASSIGN(const Series day, history.read(device.id, now_s - 86400, now_s, 600));
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "monitor/slot.h"
#include "sqlite/database.h"

namespace remuda::monitor {

/// One step of time for each slot, kept for so long.
struct Level {
  int64_t step_s = 1, kept_s = 3600;
};
inline constexpr std::array<Level, 3> kLevels{Level{1, 3600}, Level{10, 86400}, Level{60, 30 * 86400}};
inline constexpr int64_t kChunkSlots = 60;

struct DeviceSlot {
  std::string device;  ///< its id
  Slot slot;
};

/// Slots of equal length without a gap; what nobody has measured is unknown in them.
struct Series {
  double start_s = 0;  ///< when the first one begins, in seconds since 1970
  double step_s = 1;
  std::vector<Slot> slots;
};

/// One thread. One process has it open for writing.
class History {
 public:
  static constexpr size_t kMostDevices = 1024;   ///< at once; further ones are left out
  static constexpr size_t kMostSlots = 100'000;  ///< that read() gives

  /// Opens, or makes, the file history.db in an existing folder.
  static Result<History> open(const std::string& folder);

  /// Takes one reading of the machine. `time_s` in seconds since 1970, as the wall clock has it: where it is set back,
  /// what was there is written over, and removed where it lies further ahead than its level keeps; where it is set
  /// forward by more than a level keeps, what that level has is removed. An error where a full chunk could not be
  /// written: it is lost, and the next ones are taken all the same.
  Result<void> add(double time_s, const std::vector<DeviceSlot>& devices);
  /// Writes what is new, and removes what is too old.
  Result<void> write();

  /// What was measured from `from_s` to `to_s`, in at most `at_most` slots, of the finest level that reaches so far
  /// back. All unknown where nothing was. Both ends are moved to whole slots.
  Result<Series> read(const std::string& device, double from_s, double to_s, size_t at_most);
  /// Ids of all devices of which something is there.
  Result<std::vector<std::string>> devices();

 private:
  struct Chunk {
    int64_t start = -1;  ///< number of its first slot since 1970
    std::array<Slot, kChunkSlots> slots;
    bool is_changed = false;
  };
  struct Track {
    Chunk chunk;
    int64_t slot = -1;  ///< that `sum` is of
    SlotSum sum;
  };
  struct Known {
    int64_t number = 0;  ///< in the file
    std::array<Track, kLevels.size()> tracks;
  };

  explicit History(std::unique_ptr<sqlite::Database> database) : database_(std::move(database)) {}
  Result<int64_t> newest_s() const;
  Result<Known*> known(const std::string& device);
  Result<void> add_to(const Known& known, size_t level, Track& track, int64_t second, const Slot& slot);
  Result<void> load(int64_t number, size_t level, int64_t start, Chunk& chunk);
  Result<void> save(int64_t number, size_t level, const Chunk& chunk);
  Result<void> remove_old();
  Result<std::vector<Slot>> slots(int64_t number, size_t level, int64_t first, int64_t end);

  std::unique_ptr<sqlite::Database> database_;
  std::map<std::string, Known> known_;
  int64_t now_s_ = 0;  ///< of the last reading that this process has taken; 0: none
};

}  // namespace remuda::monitor
