#include "monitor/history.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>

#include "monitor/file.h"

namespace remuda::monitor {
namespace {

static_assert(std::endian::native == std::endian::little, "values are stored as they are in memory");

std::string encode(const std::array<Slot, kChunkSlots>& slots) {
  std::string bytes(sizeof slots, '\0');
  std::memcpy(bytes.data(), slots.data(), bytes.size());
  return bytes;
}

void decode(std::string_view bytes, std::array<Slot, kChunkSlots>& slots) {
  const size_t there = bytes.size() / sizeof(float) / kChunkSlots;  // values in each slot
  const size_t used = std::min(there, kMeasures) * sizeof(float);
  for (size_t i = 0; i < slots.size(); ++i) {
    slots[i] = Slot();
    std::memcpy(slots[i].values.data(), bytes.data() + i * there * sizeof(float), used);
  }
}

int64_t floor_to(int64_t value, int64_t step) { return value / step * step; }

}  // namespace

Result<History> History::open(const std::string& folder) {
  REMUDA_ASSIGN(auto database, open_file(folder));
  return History(std::move(database));
}

/// Where another process takes the readings, the newest is what the file has.
Result<int64_t> History::newest_s() const {
  if (now_s_ > 0) return now_s_;
  REMUDA_ASSIGN(const int64_t newest, database_->integer("SELECT max(start) FROM chunk WHERE level = 0"));
  return newest + kChunkSlots - 1;
}

/// Null: there are too many.
Result<History::Known*> History::known(const std::string& device) {
  if (const auto found = known_.find(device); found != known_.end()) return &found->second;
  if (known_.size() >= kMostDevices) return nullptr;
  REMUDA_ASSIGN(sqlite::Statement add, database_->prepare("INSERT OR IGNORE INTO device (id) VALUES (?)"));
  add.bind(1, device);
  REMUDA_TRY(add.run());
  REMUDA_ASSIGN(sqlite::Statement query, database_->prepare("SELECT number FROM device WHERE id = ?"));
  query.bind(1, device);
  REMUDA_ASSIGN(const bool found, query.step());
  if (!found) return failed(fmt::format("the history has no number for {}", device));
  Known& known = known_[device];
  known.number = query.integer(0);
  return &known;
}

Result<void> History::load(int64_t number, size_t level, int64_t start, Chunk& chunk) {
  chunk = Chunk{start, {}, false};
  REMUDA_ASSIGN(sqlite::Statement query,
                database_->prepare("SELECT slots FROM chunk WHERE device = ? AND level = ? AND start = ?"));
  query.bind(1, number);
  query.bind(2, static_cast<int64_t>(level));
  query.bind(3, start);
  REMUDA_ASSIGN(const bool found, query.step());
  if (found) decode(query.bytes(0), chunk.slots);
  return {};
}

Result<void> History::save(int64_t number, size_t level, const Chunk& chunk) {
  if (!chunk.is_changed) return {};
  REMUDA_ASSIGN(sqlite::Statement put,
                database_->prepare("INSERT INTO chunk (device, level, start, slots) VALUES (?, ?, ?, ?) "
                                   "ON CONFLICT (device, level, start) DO UPDATE SET slots = excluded.slots"));
  const std::string bytes = encode(chunk.slots);
  put.bind(1, number);
  put.bind(2, static_cast<int64_t>(level));
  put.bind(3, chunk.start);
  put.bind_bytes(4, bytes);
  return put.run();
}

/// The slot under way is written anew with each reading, so that readers see it, too.
Result<void> History::add_to(const Known& known, size_t level, Track& track, int64_t second, const Slot& slot) {
  const int64_t number = second / kLevels[level].step_s, start = floor_to(number, kChunkSlots);
  Result<void> outcome;
  if (start != track.chunk.start) {
    outcome = save(known.number, level, track.chunk);
    if (auto loaded = load(known.number, level, start, track.chunk); !loaded) outcome = std::move(loaded);
  }
  if (number != track.slot) {
    track.slot = number;
    track.sum = SlotSum();
  }
  track.sum.add(slot);
  track.chunk.slots[static_cast<size_t>(number - start)] = track.sum.slot();
  track.chunk.is_changed = true;
  return outcome;
}

Result<void> History::add(double time_s, const std::vector<DeviceSlot>& devices) {
  now_s_ = static_cast<int64_t>(std::max(0.0, time_s));
  Result<void> outcome;
  for (const DeviceSlot& one : devices) {
    REMUDA_ASSIGN(Known* const found, known(one.device));
    if (!found) continue;
    for (size_t level = 0; level < kLevels.size(); ++level)
      if (auto added = add_to(*found, level, found->tracks[level], now_s_, one.slot); !added)
        outcome = std::move(added);
  }
  return outcome;
}

Result<void> History::write() {
  REMUDA_ASSIGN(auto transaction, sqlite::Transaction::writing(*database_));
  for (auto& [_, known] : known_)
    for (size_t level = 0; level < kLevels.size(); ++level)
      REMUDA_TRY(save(known.number, level, known.tracks[level].chunk));
  REMUDA_TRY(remove_old());
  REMUDA_TRY(transaction.commit());
  for (auto& [_, known] : known_)
    for (Track& track : known.tracks) track.chunk.is_changed = false;
  return {};
}

/// What is further in the future than its level keeps was written while the clock was wrong.
Result<void> History::remove_old() {
  for (size_t level = 0; level < kLevels.size(); ++level) {
    const auto [step_s, kept_s] = kLevels[level];
    REMUDA_ASSIGN(sqlite::Statement drop,
                  database_->prepare("DELETE FROM chunk WHERE level = ? AND (start < ? OR start > ?)"));
    drop.bind(1, static_cast<int64_t>(level));
    drop.bind(2, (now_s_ - kept_s) / step_s - kChunkSlots);
    drop.bind(3, (now_s_ + kept_s) / step_s);
    REMUDA_TRY(drop.run());
  }
  return {};
}

/// Of the slots [first, end) of a level: what the file has, with what is in memory over it.
Result<std::vector<Slot>> History::slots(int64_t number, size_t level, int64_t first, int64_t end) {
  std::vector<Slot> found(static_cast<size_t>(end - first));
  const auto place = [&](int64_t start, const std::array<Slot, kChunkSlots>& slots) {
    for (int64_t i = std::max(first, start); i < std::min(end, start + kChunkSlots); ++i)
      found[static_cast<size_t>(i - first)] = slots[static_cast<size_t>(i - start)];
  };
  REMUDA_ASSIGN(
      sqlite::Statement query,
      database_->prepare("SELECT start, slots FROM chunk WHERE device = ? AND level = ? AND start >= ? AND start < ?"));
  query.bind(1, number);
  query.bind(2, static_cast<int64_t>(level));
  query.bind(3, floor_to(first, kChunkSlots));
  query.bind(4, end);
  std::array<Slot, kChunkSlots> slots;
  for (;;) {
    REMUDA_ASSIGN(const bool is_row, query.step());
    if (!is_row) break;
    decode(query.bytes(1), slots);
    place(query.integer(0), slots);
  }
  for (const auto& [_, known] : known_)
    if (known.number == number && known.tracks[level].chunk.start >= 0)
      place(known.tracks[level].chunk.start, known.tracks[level].chunk.slots);
  return found;
}

Result<Series> History::read(const std::string& device, double from_s, double to_s, size_t at_most) {
  at_most = std::clamp<size_t>(at_most, 1, kMostSlots);
  const auto from = static_cast<int64_t>(std::clamp(from_s, 0.0, 1e12));
  const auto to = std::max(from + 1, static_cast<int64_t>(std::ceil(std::clamp(to_s, 0.0, 1e12))));
  REMUDA_ASSIGN(const int64_t now_s, newest_s());
  size_t level = 0;
  while (level + 1 < kLevels.size() && from < now_s - kLevels[level].kept_s) ++level;
  const auto [step, kept] = kLevels[level];
  // Times beyond all that is kept make no step longer: what is read begins with a whole number of steps since 1970.
  const int64_t begin_s = std::max(from, now_s - kept), length_s = std::min(to, now_s + kept) - begin_s;
  const int64_t merged =
      std::max<int64_t>(0, length_s) / step / std::max<int64_t>(1, static_cast<int64_t>(at_most) - 1) + 1;
  const int64_t first = begin_s / step / merged * merged;
  const int64_t end = std::min((to + step - 1) / step, now_s / step + 1);
  Series series{static_cast<double>(first * step), static_cast<double>(step * merged), {}};
  if (end <= first) return series;
  REMUDA_ASSIGN(sqlite::Statement query, database_->prepare("SELECT number FROM device WHERE id = ?"));
  query.bind(1, device);
  REMUDA_ASSIGN(const bool is_known, query.step());
  if (!is_known) return series;
  REMUDA_ASSIGN(const std::vector<Slot> fine, slots(query.integer(0), level, first, end));
  for (size_t i = 0; i < fine.size(); i += static_cast<size_t>(merged)) {
    SlotSum sum;
    for (size_t k = i; k < std::min(fine.size(), i + static_cast<size_t>(merged)); ++k) sum.add(fine[k]);
    series.slots.push_back(sum.slot());
  }
  return series;
}

Result<std::vector<std::string>> History::devices() {
  REMUDA_ASSIGN(sqlite::Statement query, database_->prepare("SELECT id FROM device ORDER BY id"));
  std::vector<std::string> ids;
  for (;;) {
    REMUDA_ASSIGN(const bool is_row, query.step());
    if (!is_row) return ids;
    ids.emplace_back(query.text(0));
  }
}

}  // namespace remuda::monitor
