#include "comm/call.h"

#include <atomic>
#include <fmt/format.h>

namespace remuda::comm {
namespace {

std::string numbered(uint32_t label) { return fmt::format("label {}", label); }

std::atomic<std::string (*)(uint32_t)> g_name_of_label = numbered;

std::string name_of_label(uint32_t label) { return g_name_of_label.load()(label); }

const char* name_of(Call::Kind kind) {
  switch (kind) {
    case Call::Kind::allocate:
      return "allocate";
    case Call::Kind::all_reduce:
      return "all_reduce";
    case Call::Kind::reduce_scatter:
      return "reduce_scatter";
    case Call::Kind::gather_parts:
      return "gather_parts";
    case Call::Kind::broadcast:
      return "broadcast";
    case Call::Kind::all_gather:
      return "all_gather";
    case Call::Kind::all_to_all:
      return "all_to_all";
    case Call::Kind::barrier:
      return "barrier";
    case Call::Kind::split:
      return "split";
  }
  return "an unknown call";
}

}  // namespace

void name_labels(std::string (*name)(uint32_t label)) { g_name_of_label = name; }

std::string describe(const Call& call) {
  if (call.kind == Call::Kind::split)
    return fmt::format("split #{} ({}, {} ranks from rank {} on)", call.sequence, name_of_label(call.label), call.bytes,
                       call.root);
  std::string text = fmt::format("{} #{}", name_of(call.kind), call.sequence);
  if (call.type != Element::bytes) text += fmt::format(" of {}", name_of(call.type));
  text += fmt::format(" ({}, {} bytes", name_of_label(call.label), call.bytes);
  if (call.kind == Call::Kind::broadcast) text += fmt::format(" from rank {}", call.root);
  if (call.offset != 0) text += fmt::format(" at offset {}", call.offset);
  return text + ")";
}

Error lost_rank(int peer, std::string_view what, const Call& call) {
  return {ErrorKind::lost_peer, fmt::format("rank {} {} during {}", peer, what, describe(call)), peer};
}

Result<void> check_same(int rank, const Call& mine, int peer, const Call& theirs) {
  if (mine == theirs) return {};
  if (peer < rank) return check_same(peer, theirs, rank, mine);
  Call alike = theirs;
  alike.parts = mine.parts;
  if (alike == mine)
    return failed(fmt::format("rank {} and rank {} are at {}, but {}", rank, peer, describe(mine),
                              mine.kind == Call::Kind::split ? "not with the same ranks"
                                                             : "divide the values among the ranks in unlike ways"));
  return failed(
      fmt::format("rank {} is at {} while rank {} is at {}; all ranks must make the same calls in the same order", rank,
                  describe(mine), peer, describe(theirs)));
}

}  // namespace remuda::comm
