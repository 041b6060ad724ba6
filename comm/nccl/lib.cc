#include "comm/nccl/lib.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"

namespace remuda::comm::nccl {
namespace {

/// Libraries of one process must not be two: where libtorch has loaded one, the bare name is that one.
void* open_any(const std::string& file, const std::vector<std::string>& folders, std::string& why) {
  constexpr int kHow = RTLD_NOW | RTLD_LOCAL;
  std::vector<std::string> places{file};
  for (const std::string& folder : folders) places.push_back(fmt::format("{}/{}", folder, file));
  for (const std::string& place : places) {
    if (void* found = ::dlopen(place.c_str(), kHow)) return found;
    const char* error = ::dlerror();
    const std::string text = error ? printable(error) : "no reason given";
    if (why.empty() && text.find("No such file") == std::string::npos) why = text;
  }
  return nullptr;
}

}  // namespace

std::string file_of(const std::string& maker) { return maker == "hip" ? "librccl.so.1" : "libnccl.so.2"; }

std::string version_text(int version) {
  const int thousand = version < 10000 ? 1000 : 10000;
  return fmt::format("{}.{}.{}", version / thousand, version % thousand / 100, version % 100);
}

Result<Lib> load_lib(const std::string& file, const std::vector<std::string>& folders) {
  std::string why;
  void* const library = open_any(file, folders, why);
  if (!library)
    return failed(why.empty() ? fmt::format("{} is not installed", file)
                              : fmt::format("{} cannot be loaded: {}", file, why));
  Lib lib;
  lib.file = file;
  std::vector<std::string> missing;
#define REMUDA_NCCL_FIND(field, prototype, symbol)                                       \
  lib.field = reinterpret_cast<std::add_pointer_t<prototype>>(::dlsym(library, symbol)); \
  if (!lib.field) missing.emplace_back(symbol);
  REMUDA_NCCL_SYMBOLS(REMUDA_NCCL_FIND)
#undef REMUDA_NCCL_FIND
  if (!lib.get_version) return failed(fmt::format("{} lacks ncclGetVersion", file));
  if (lib.get_version(&lib.version) != kSuccess) return failed(fmt::format("{} does not say its version", file));
  if (lib.version < kLeastVersion)
    return failed(fmt::format("{} is version {}; {} or newer can be used", file, version_text(lib.version),
                              version_text(kLeastVersion)));
  if (!missing.empty()) return failed(fmt::format("{} lacks {}", file, fmt::join(missing, ", ")));
  return lib;
}

}  // namespace remuda::comm::nccl
