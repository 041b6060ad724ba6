#include "comm/testing/standin_library.h"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

namespace remuda::comm {
namespace {

// As the library's public description has them; written a second time, so that a slip on one side shows.
enum Code { kSuccess, kSystemError = 2, kInvalidArgument = 4, kInvalidUsage = 5, kRemoteError = 6, kInProgress = 7 };
enum Type { kUint8 = 1, kFloat32 = 7, kFloat64 = 8 };
constexpr int kSum = 0;
constexpr int kPollsUntilTaken = 2;
constexpr int kVersion = 22105;

struct Id {
  char text[128];
};

struct Config {
  size_t size;
  unsigned magic, version;
  int blocking;
};

enum class Kind { reduce, broadcast, reduce_scatter, all_gather };

/// `count`: as the library has it, so of a scatter or gather the elements of one rank.
struct Operation {
  Kind kind = Kind::reduce;
  const void* from = nullptr;
  void* to = nullptr;
  size_t count = 0;
  int type = 0, root = 0;

  size_t element() const { return type == kUint8 ? 1 : type == kFloat32 ? 4 : 8; }
  size_t bytes() const { return count * element(); }
  bool matches(const Operation& other) const {
    return kind == other.kind && count == other.count && type == other.type && root == other.root;
  }
};
using Operations = std::vector<Operation>;

/// One call of all ranks.
struct Meeting {
  std::map<int, std::shared_ptr<const Operations>> given;
  int read = 0;
};

struct Group {
  std::mutex mutex;
  std::condition_variable changed;
  int size = 0, joined = 0;
  std::map<int, Meeting> meetings;
};

struct Settings {
  StandinDevice device;
  LibraryFaults faults;
};

struct Member {
  std::shared_ptr<Group> group;
  Settings settings;
  int rank = 0;
  bool aborted = false;  // under the group's mutex, as all below
  int calls = 0, state = kSuccess, polls = 0;
  std::shared_ptr<const Operations> waiting;
  void* stream = nullptr;

  bool has(LibraryFault fault) const {
    return settings.faults.fault == fault && settings.faults.rank == rank && calls >= settings.faults.after_calls;
  }
};

std::mutex g_mutex;
Settings g_settings;
std::map<std::string, std::shared_ptr<Group>> g_groups;
int g_ids = 0;
std::atomic<int> g_calls = 0, g_members = 0, g_at_once = 0;
thread_local int t_version = kVersion;
thread_local int t_depth = 0;
thread_local Operations t_operations;
thread_local std::shared_ptr<Member> t_member;
thread_local void* t_stream = nullptr;

template <typename T>
std::vector<std::byte> sum(const Member& member, const Meeting& meeting, size_t index) {
  const Operation& mine = (*meeting.given.at(member.rank))[index];
  std::vector<T> total(mine.count);
  const size_t first = mine.kind == Kind::reduce_scatter ? mine.count * size_t(member.rank) : 0;
  for (const auto& [rank, given] : std::ranges::reverse_view(meeting.given)) {
    const auto* const from =
        static_cast<const T*>(member.settings.device.memory(const_cast<void*>((*given)[index].from))) + first;
    for (size_t i = 0; i < mine.count; ++i) total[i] += from[i];
  }
  if (member.settings.faults.fault == LibraryFault::wrong_sum && member.settings.faults.rank == member.rank &&
      mine.bytes() >= member.settings.faults.least_bytes)
    total[0] += 1;
  std::vector<std::byte> bytes(mine.bytes());
  std::memcpy(bytes.data(), total.data(), bytes.size());
  return bytes;
}

std::vector<std::byte> gathered(const Member& member, const Meeting& meeting, size_t index) {
  std::vector<std::byte> all;
  for (const auto& [rank, given] : meeting.given) {
    const Operation& one = (*given)[index];
    const auto* const from = static_cast<const std::byte*>(member.settings.device.memory(const_cast<void*>(one.from)));
    all.insert(all.end(), from, from + one.bytes());
  }
  return all;
}

/// What this rank is to have where the operation writes; nothing where it keeps what it has.
std::vector<std::byte> result_of(const Member& member, const Meeting& meeting, size_t index) {
  const Operation& mine = (*meeting.given.at(member.rank))[index];
  if (mine.kind == Kind::all_gather) return gathered(member, meeting, index);
  if (mine.kind == Kind::reduce && mine.root != member.rank)
    return std::vector<std::byte>(mine.bytes(), std::byte{0xff});  // NaN: it is not specified
  if (mine.kind != Kind::broadcast)
    return mine.type == kFloat32 ? sum<float>(member, meeting, index) : sum<double>(member, meeting, index);
  const auto* const from = static_cast<const std::byte*>(
      member.settings.device.memory(const_cast<void*>((*meeting.given.at(mine.root))[index].from)));
  return {from, from + mine.bytes()};
}

bool all_match(const Meeting& meeting) {
  const Operations& first = *meeting.given.begin()->second;
  for (const auto& [rank, given] : meeting.given) {
    if (given->size() != first.size()) return false;
    for (size_t i = 0; i < first.size(); ++i)
      if (!(*given)[i].matches(first[i])) return false;
  }
  return true;
}

/// In the stream. A rank whose calls are not those of the others hangs, as it would.
void work(const std::shared_ptr<Member>& member, int number, const std::shared_ptr<const Operations>& operations) {
  Group& group = *member->group;
  std::unique_lock lock(group.mutex);
  const auto wait_for = [&](auto condition) {
    group.changed.wait(lock, [&] { return member->aborted || condition(); });
    return !member->aborted;
  };
  Meeting& meeting = group.meetings[number];
  meeting.given[member->rank] = operations;
  group.changed.notify_all();
  if (!wait_for([&] { return int(meeting.given.size()) == group.size && all_match(meeting); })) return;
  lock.unlock();
  std::vector<std::vector<std::byte>> results;
  for (size_t i = 0; i < operations->size(); ++i) results.push_back(result_of(*member, meeting, i));
  lock.lock();
  ++meeting.read;
  group.changed.notify_all();
  if (!wait_for([&] { return meeting.read == group.size; })) return;
  lock.unlock();
  for (size_t i = 0; i < operations->size(); ++i) {
    const Operation& one = (*operations)[i];
    if (one.kind == Kind::reduce_scatter)  // in place
      std::memset(member->settings.device.memory(const_cast<void*>(one.from)), 0xff, one.bytes() * size_t(group.size));
    std::memcpy(member->settings.device.memory(one.to), results[i].data(), results[i].size());
  }
}

/// What waits for it gets into its stream.
void launch(const std::shared_ptr<Member>& member, std::unique_lock<std::mutex>& lock) {
  const auto operations = std::exchange(member->waiting, nullptr);
  const int number = member->calls;
  const bool hangs = member->has(LibraryFault::work_hangs), fails = member->has(LibraryFault::work_fails);
  ++member->calls;
  ++g_calls;
  lock.unlock();
  member->settings.device.enqueue(member->stream, [member, number, operations, hangs, fails] {
    if (!hangs && !fails) return work(member, number, operations);
    std::unique_lock until_abort(member->group->mutex);
    if (fails) member->state = kRemoteError;
    member->group->changed.wait(until_abort, [&] { return member->aborted; });
  });
  lock.lock();
}

int state_of(const std::shared_ptr<Member>& member, std::unique_lock<std::mutex>& lock) {
  if (member->state != kSuccess) return member->state;
  if (member->group->joined < member->group->size) return kInProgress;
  if (!member->waiting) return kSuccess;
  if (member->has(LibraryFault::call_hangs) || --member->polls > 0) return kInProgress;
  launch(member, lock);
  return kSuccess;
}

/// All that the thread has given since the group began.
int take(const std::shared_ptr<Member>& member) {
  const std::lock_guard lock(member->group->mutex);
  if (member->waiting) return kInvalidUsage;
  if (member->has(LibraryFault::call_fails)) return kSystemError;
  member->waiting = std::make_shared<Operations>(std::exchange(t_operations, {}));
  member->stream = t_stream;
  member->polls = kPollsUntilTaken;
  return kInProgress;
}

int give(const std::shared_ptr<Member>& member, const Operation& operation, void* stream) {
  t_operations.push_back(operation);
  t_member = member;
  t_stream = stream;
  return t_depth > 0 ? kSuccess : take(std::exchange(t_member, nullptr));
}

}  // namespace

void configure_standin_library(const StandinDevice& device, const LibraryFaults& faults) {
  const std::lock_guard lock(g_mutex);
  g_settings = {device, faults};
}

void set_standin_version(int version) { t_version = version; }
int standin_library_calls() { return g_calls; }
int standin_library_calls_of_all_parts() { return g_at_once; }
int standin_library_members() { return g_members; }

using Handle = std::shared_ptr<Member>*;

extern "C" int ncclGetVersion(int* version) {
  *version = t_version;
  return kSuccess;
}

extern "C" int ncclGetUniqueId(Id* id) {
  const std::lock_guard lock(g_mutex);
  const std::string name = "stand-in " + std::to_string(++g_ids);
  *id = {};
  name.copy(id->text, sizeof id->text - 1);
  return kSuccess;
}

extern "C" int ncclCommInitRankConfig(Handle* handle, int ranks, Id id, int rank, Config* config) {
  *handle = nullptr;
  const bool known = config->size >= 20 && config->magic == 0xcafebeef && config->version >= 21400;
  if (!known || config->blocking != 0 || rank < 0 || rank >= ranks) return kInvalidArgument;
  const std::lock_guard lock(g_mutex);
  auto& group = g_groups[id.text];
  if (!group) group = std::make_shared<Group>();
  const auto member = std::make_shared<Member>();
  member->group = group;
  member->settings = g_settings;
  member->rank = rank;
  if (member->has(LibraryFault::init_fails)) return kSystemError;
  const std::lock_guard in_group(group->mutex);
  group->size = ranks;
  if (!member->has(LibraryFault::init_hangs)) ++group->joined;
  ++g_members;
  *handle = new std::shared_ptr<Member>(member);
  return kInProgress;
}

extern "C" int ncclCommGetAsyncError(Handle handle, int* state) {
  const std::shared_ptr<Member> member = *handle;
  std::unique_lock lock(member->group->mutex);
  *state = state_of(member, lock);
  return kSuccess;
}

extern "C" int ncclCommAbort(Handle handle) {
  const std::shared_ptr<Member> member = *handle;
  delete handle;
  {
    const std::lock_guard lock(member->group->mutex);
    member->aborted = true;
  }
  member->group->changed.notify_all();
  --g_members;
  return kSuccess;
}

extern "C" const char* ncclGetErrorString(int code) {
  switch (code) {
    case kSystemError:
      return "unhandled system error";
    case kRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "an error of the stand-in";
  }
}

extern "C" const char* ncclGetLastError(Handle) { return "as the test wants it"; }

extern "C" int ncclGroupStart() {
  ++t_depth;
  return kSuccess;
}

extern "C" int ncclGroupEnd() {
  if (--t_depth > 0) return kSuccess;
  const auto member = std::exchange(t_member, nullptr);
  return member ? take(member) : kSuccess;
}

extern "C" int ncclReduce(const void* from, void* to, size_t count, int type, int operation, int root, Handle handle,
                          void* stream) {
  if (operation != kSum || (type != kFloat32 && type != kFloat64)) return kInvalidArgument;
  return give(*handle, {Kind::reduce, from, to, count, type, root}, stream);
}

extern "C" int ncclBroadcast(const void* from, void* to, size_t count, int type, int root, Handle handle,
                             void* stream) {
  if (type != kUint8) return kInvalidArgument;
  return give(*handle, {Kind::broadcast, from, to, count, type, root}, stream);
}

extern "C" int ncclReduceScatter(const void* from, void* to, size_t count, int type, int operation, Handle handle,
                                 void* stream) {
  if (operation != kSum || (type != kFloat32 && type != kFloat64)) return kInvalidArgument;
  ++g_at_once;
  return give(*handle, {Kind::reduce_scatter, from, to, count, type, 0}, stream);
}

extern "C" int ncclAllGather(const void* from, void* to, size_t count, int type, Handle handle, void* stream) {
  if (type != kUint8) return kInvalidArgument;
  ++g_at_once;
  return give(*handle, {Kind::all_gather, from, to, count, type, 0}, stream);
}

}  // namespace remuda::comm
