// Lib: the calls of libnccl.so.2 or librccl.so.1, found at run time. One list names field, prototype and symbol.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "comm/nccl/abi.h"

namespace remuda::comm::nccl {

// X(field, prototype, symbol). A stream is a pointer that the library's maker knows.
#define REMUDA_NCCL_SYMBOLS(X)                                                                             \
  X(get_version, Code(int*), "ncclGetVersion")                                                             \
  X(get_unique_id, Code(UniqueId*), "ncclGetUniqueId")                                                     \
  X(init_rank, Code(Comm*, int ranks, UniqueId, int rank, Config*), "ncclCommInitRankConfig")              \
  X(async_error, Code(Comm, Code*), "ncclCommGetAsyncError")                                               \
  X(abort, Code(Comm), "ncclCommAbort")                                                                    \
  X(error_text, const char*(Code), "ncclGetErrorString")                                                   \
  X(last_error, const char*(Comm), "ncclGetLastError")                                                     \
  X(group_start, Code(), "ncclGroupStart")                                                                 \
  X(group_end, Code(), "ncclGroupEnd")                                                                     \
  X(reduce, Code(const void* from, void* to, size_t count, Type, Operation, int root, Comm, void* stream), \
    "ncclReduce")                                                                                          \
  X(reduce_scatter, Code(const void* from, void* to, size_t count, Type, Operation, Comm, void* stream),   \
    "ncclReduceScatter")                                                                                   \
  X(all_gather, Code(const void* from, void* to, size_t count, Type, Comm, void* stream), "ncclAllGather") \
  X(broadcast, Code(const void* from, void* to, size_t count, Type, int root, Comm, void* stream), "ncclBroadcast")

/// All calls are there.
struct Lib {
  std::string file;
  int version = 0;  ///< as version_code() has it
#define REMUDA_NCCL_FIELD(field, prototype, symbol) std::add_pointer_t<prototype> field = nullptr;
  REMUDA_NCCL_SYMBOLS(REMUDA_NCCL_FIELD)
#undef REMUDA_NCCL_FIELD
};

/// The file's name that all versions in use have, "librccl.so.1" for devices of AMD.
std::string file_of(const std::string& maker);

/// Opens `file` for the rest of the process's life: the one that is loaded already, or what the system finds, or the
/// first in `folders`. The error says in one sentence why there is none that can be used.
Result<Lib> load_lib(const std::string& file, const std::vector<std::string>& folders);

/// "2.21.5".
std::string version_text(int version);

}  // namespace remuda::comm::nccl
