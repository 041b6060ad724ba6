#include "train/torch_compat.h"

namespace remuda::train {

std::string first_line(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return text.substr(0, text.find('\n'));
}

bool is_out_of_memory(const c10::Error& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error)) return true;
  return std::string(error.what_without_backtrace()).find("DefaultCPUAllocator") != std::string::npos;
}

}  // namespace remuda::train
