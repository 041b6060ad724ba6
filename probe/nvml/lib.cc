#include "probe/nvml/lib.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <initializer_list>

#include "base/text.h"

namespace remuda::probe::nvml {
namespace {

template <typename Prototype>
void find_symbol(void* library, Prototype*& field, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    field = reinterpret_cast<Prototype*>(::dlsym(library, name));
    if (field) return;
  }
}

auto cannot_open(const std::string& file) {
  const char* error = ::dlerror();
  const std::string why = error ? printable(error) : "no reason given";
  if (why.find("No such file") != std::string::npos)
    return tl::unexpected(Error{ErrorKind::never, fmt::format("{} is not installed: no NVIDIA driver here", file), -1});
  return failed(fmt::format("{} cannot be loaded: {}", file, why));
}

}  // namespace

Result<Lib> load_lib(const std::string& file) {
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return cannot_open(file);
  Lib lib;
#define REMUDA_NVML_FIND(field, prototype, ...) find_symbol(library, lib.field, {__VA_ARGS__});
  REMUDA_NVML_SYMBOLS(REMUDA_NVML_FIND)
#undef REMUDA_NVML_FIND
  if (!lib.init || !lib.device_count || !lib.handle_by_index)
    return failed(fmt::format("{} lacks nvmlInit, nvmlDeviceGetCount or nvmlDeviceGetHandleByIndex", file));
  return lib;
}

}  // namespace remuda::probe::nvml
