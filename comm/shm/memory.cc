#include "comm/shm/memory.h"

#include <cerrno>
#include <fmt/format.h>
#include <map>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm/wire.h"

namespace remuda::comm::shm {
namespace {

// The memories of this process by token, so that ranks that are threads find the existing one.
struct Registry {
  std::mutex mutex;
  std::map<std::array<std::byte, 16>, std::weak_ptr<Memory>> memories;
};

Registry& registry() {
  static Registry instance;
  return instance;
}

std::shared_ptr<Memory> find_here(const Offer& offer) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().memories.find(offer.token);
  return found == registry().memories.end() || offer.pid != ::getpid() ? nullptr : found->second.lock();
}

// Whether a rank has the memory.
struct Answer {
  int32_t rank = 0;
  int32_t refused = 0;
  char reason[200] = {};
};

// The control connections of a rank.
class ControlLinks {
 public:
  ControlLinks(const Mesh& mesh, std::span<const int> ranks, double deadline_s)
      : mesh_(mesh), ranks_(ranks), deadline_s_(deadline_s) {}

  bool leads() const { return mesh_.rank == leader(); }
  int leader() const { return ranks_.front(); }
  std::span<const int> followers() const { return ranks_.subspan(1); }

  template <typename T>
  Result<void> send(int peer, const T& value) {
    return named(peer, link(peer).send_all(std::as_bytes(std::span(&value, 1)), deadline_s_, text(peer)));
  }
  template <typename T>
  Result<void> receive(int peer, T& value) {
    return named(peer, link(peer).recv_all(std::as_writable_bytes(std::span(&value, 1)), deadline_s_, text(peer)));
  }
  template <typename T>
  Result<void> send_to_followers(const T& value) {
    for (const int peer : followers()) REMUDA_TRY(send(peer, value));
    return {};
  }

 private:
  const Link& link(int peer) const { return mesh_.control[peer]; }
  static std::string text(int peer) { return fmt::format("rank {}", peer); }
  static Result<void> named(int peer, Result<void> result) {
    if (!result) {
      result.error().peer = peer;
      result.error().message += " while the ranks were sharing memory";
    }
    return result;
  }

  const Mesh& mesh_;
  std::span<const int> ranks_;
  double deadline_s_;
};

Answer answer_of(int rank, const Result<std::shared_ptr<Memory>>& memory) {
  Answer answer{rank};
  if (memory) return answer;
  answer.refused = 1;
  memory.error().message.copy(answer.reason, sizeof answer.reason - 1);
  return answer;
}

Result<Answer> lead(ControlLinks& links, const Result<std::shared_ptr<Memory>>& memory) {
  Answer outcome = answer_of(links.leader(), memory);
  REMUDA_TRY(links.send_to_followers(memory ? (*memory)->offer() : Offer{}));
  for (const int peer : links.followers()) {
    Answer answer;
    REMUDA_TRY(links.receive(peer, answer));
    answer.reason[sizeof answer.reason - 1] = '\0';
    if (answer.refused && !outcome.refused) outcome = answer;
  }
  REMUDA_TRY(links.send_to_followers(outcome));
  return outcome;
}

Result<Answer> follow(const Mesh& mesh, ControlLinks& links, Result<std::shared_ptr<Memory>>& memory) {
  Offer offer;
  REMUDA_TRY(links.receive(links.leader(), offer));
  memory = Memory::open(offer);
  REMUDA_TRY(links.send(links.leader(), answer_of(mesh.rank, memory)));
  Answer outcome;
  REMUDA_TRY(links.receive(links.leader(), outcome));
  outcome.reason[sizeof outcome.reason - 1] = '\0';
  return outcome;
}

}  // namespace

Result<std::shared_ptr<Memory>> Memory::create() {
  REMUDA_ASSIGN(MemoryFile file, MemoryFile::create());
  std::shared_ptr<Memory> memory(new Memory(std::move(file)));
  const std::lock_guard lock(registry().mutex);
  registry().memories[memory->offer().token] = memory;
  return memory;
}

Result<std::shared_ptr<Memory>> Memory::open(const Offer& offer) {
  if (auto here = find_here(offer)) return here;
  REMUDA_ASSIGN(MemoryFile file, MemoryFile::open(offer, "another rank's memory"));
  return std::shared_ptr<Memory>(new Memory(std::move(file)));
}

Memory::~Memory() {
  for (const auto& region : regions_) ::munmap(region.bytes.data(), region.bytes.size());
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().memories.find(offer().token);
  if (found != registry().memories.end() && found->second.expired()) registry().memories.erase(found);
}

// Ranks may race here: all request the same size, and none requests more before all have this one.
Result<void> Memory::grow(size_t bytes) {
  struct stat info{};
  if (::fstat(file_.fd(), &info) == 0 && static_cast<size_t>(info.st_size) >= bytes) return {};
  if (::ftruncate(file_.fd(), static_cast<off_t>(bytes)) != 0)
    return failed(fmt::format("cannot make shared memory {} bytes large: {}", bytes, errno_text(errno)));
  return {};
}

Result<std::byte*> Memory::map(size_t offset, size_t bytes) {
  const std::lock_guard lock(mutex_);
  for (const auto& region : regions_)
    if (region.offset == offset) return region.bytes.data();
  REMUDA_TRY(grow(offset + bytes));
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.fd(), static_cast<off_t>(offset));
  if (at == MAP_FAILED)
    return failed(fmt::format("cannot map {} bytes of shared memory: {}", bytes, errno_text(errno)));
  ::madvise(at, bytes, MADV_HUGEPAGE);
  regions_.push_back({offset, {static_cast<std::byte*>(at), bytes}});
  return static_cast<std::byte*>(at);
}

Result<std::shared_ptr<Memory>> share_memory(const Mesh& mesh, std::span<const int> ranks, double timeout_s) {
  ControlLinks links(mesh, ranks, deadline_after(timeout_s));
  Result<std::shared_ptr<Memory>> memory;
  if (links.leads()) memory = Memory::create();
  REMUDA_ASSIGN(const Answer outcome, links.leads() ? lead(links, memory) : follow(mesh, links, memory));
  if (outcome.refused)
    return failed(
        fmt::format("rank {} cannot share memory with rank {}: {}", outcome.rank, links.leader(), outcome.reason));
  return memory;
}

}  // namespace remuda::comm::shm
