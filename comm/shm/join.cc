#include "comm/shm/join.h"

#include <fmt/format.h>

#include "comm/wire.h"

namespace remuda::comm::shm {
namespace {

// One rank's word on whether it has the memory.
struct Answer {
  int32_t rank = 0;
  int32_t refused = 0;
  char reason[200] = {};
};

class Table {
 public:
  Table(const Mesh& mesh, double deadline_s) : mesh_(mesh), deadline_s_(deadline_s) {}

  template <typename T>
  Result<void> tell(int peer, const T& what) {
    return named(peer, send_all(fd(peer), std::as_bytes(std::span(&what, 1)), deadline_s_, text(peer)));
  }
  template <typename T>
  Result<void> hear(int peer, T& what) {
    return named(peer, recv_all(fd(peer), std::as_writable_bytes(std::span(&what, 1)), deadline_s_, text(peer)));
  }
  template <typename T>
  Result<void> tell_all(const T& what) {
    for (int peer = 0; peer < mesh_.size; ++peer)
      if (peer != mesh_.rank) REMUDA_TRY(tell(peer, what));
    return {};
  }

 private:
  int fd(int peer) const { return mesh_.control[peer].get(); }
  static std::string text(int peer) { return fmt::format("rank {}", peer); }
  static Result<void> named(int peer, Result<void> result) {
    if (!result) {
      result.error().peer = peer;
      result.error().message += " while the ranks were sharing memory";
    }
    return result;
  }

  const Mesh& mesh_;
  double deadline_s_;
};

Answer answer_of(int rank, const Result<std::shared_ptr<Memory>>& memory) {
  Answer answer{rank};
  if (memory) return answer;
  answer.refused = 1;
  memory.error().message.copy(answer.reason, sizeof answer.reason - 1);
  return answer;
}

Result<Answer> lead(const Mesh& mesh, Table& table, const Result<std::shared_ptr<Memory>>& memory) {
  Answer verdict = answer_of(0, memory);
  REMUDA_TRY(table.tell_all(memory ? (*memory)->offer() : Offer{}));
  for (int peer = 1; peer < mesh.size; ++peer) {
    Answer answer;
    REMUDA_TRY(table.hear(peer, answer));
    if (answer.refused && !verdict.refused) verdict = answer;
  }
  REMUDA_TRY(table.tell_all(verdict));
  return verdict;
}

Result<Answer> follow(const Mesh& mesh, Table& table, Result<std::shared_ptr<Memory>>& memory) {
  Offer offer;
  REMUDA_TRY(table.hear(0, offer));
  memory = Memory::open(offer);
  REMUDA_TRY(table.tell(0, answer_of(mesh.rank, memory)));
  Answer verdict;
  REMUDA_TRY(table.hear(0, verdict));
  verdict.reason[sizeof verdict.reason - 1] = '\0';
  return verdict;
}

}  // namespace

Result<std::shared_ptr<Memory>> join(const Mesh& mesh, double timeout_s) {
  Table table(mesh, deadline_after(timeout_s));
  Result<std::shared_ptr<Memory>> memory;
  if (mesh.rank == 0) memory = Memory::create();
  REMUDA_ASSIGN(const Answer verdict, mesh.rank == 0 ? lead(mesh, table, memory) : follow(mesh, table, memory));
  if (verdict.refused)
    return failed(fmt::format("rank {} cannot share memory with rank 0: {}", verdict.rank, verdict.reason));
  return memory;
}

}  // namespace remuda::comm::shm
