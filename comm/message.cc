#include "comm/message.h"

#include <fmt/format.h>

namespace remuda::comm {
namespace {

const char* name_of(Message::Kind kind) {
  switch (kind) {
    case Message::Kind::allocate:
      return "allocate";
    case Message::Kind::all_reduce_float:
    case Message::Kind::all_reduce_double:
      return "all_reduce";
    case Message::Kind::broadcast:
      return "broadcast";
    case Message::Kind::all_gather:
      return "all_gather";
    case Message::Kind::barrier:
      return "barrier";
  }
  return "an unknown call";
}

const char* type_of(Message::Kind kind) {
  if (kind == Message::Kind::all_reduce_float) return " of float";
  return kind == Message::Kind::all_reduce_double ? " of double" : "";
}

}  // namespace

std::string describe(const Message& message) {
  std::string text = fmt::format("{} #{}{} (label {}, {} bytes", name_of(message.kind), message.sequence,
                                 type_of(message.kind), message.label, message.bytes);
  if (message.kind == Message::Kind::broadcast) text += fmt::format(" from rank {}", message.root);
  if (message.offset != 0) text += fmt::format(" at offset {}", message.offset);
  return text + ")";
}

Result<void> agree(int rank, const Message& mine, int peer, const Message& theirs) {
  if (mine == theirs) return {};
  return failed(
      fmt::format("rank {} is at {} while rank {} is at {}; all ranks must make the same calls in the same order", rank,
                  describe(mine), peer, describe(theirs)));
}

}  // namespace remuda::comm
