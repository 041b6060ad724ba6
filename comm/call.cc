#include "comm/call.h"

#include <fmt/format.h>

namespace remuda::comm {
namespace {

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

std::string describe(const Call& call) {
  if (call.kind == Call::Kind::split)
    return fmt::format("split #{} (label {}, {} ranks from rank {} on, list {:08x})", call.sequence, call.label,
                       call.bytes, call.root, call.parts);
  std::string text = fmt::format("{} #{}", name_of(call.kind), call.sequence);
  if (call.type != Element::bytes) text += fmt::format(" of {}", name_of(call.type));
  text += fmt::format(" (label {}, {} bytes", call.label, call.bytes);
  if (call.kind == Call::Kind::broadcast) text += fmt::format(" from rank {}", call.root);
  if (call.offset != 0) text += fmt::format(" at offset {}", call.offset);
  if (call.parts != 0) text += fmt::format(" in parts {:08x}", call.parts);
  return text + ")";
}

Error lost_rank(int peer, std::string_view what, const Call& call) {
  return {ErrorKind::lost_peer, fmt::format("rank {} {} during {}", peer, what, describe(call)), peer};
}

Result<void> check_same(int rank, const Call& mine, int peer, const Call& theirs) {
  if (mine == theirs) return {};
  if (peer < rank) return check_same(peer, theirs, rank, mine);
  return failed(
      fmt::format("rank {} is at {} while rank {} is at {}; all ranks must make the same calls in the same order", rank,
                  describe(mine), peer, describe(theirs)));
}

}  // namespace remuda::comm
