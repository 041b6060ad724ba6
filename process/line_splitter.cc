#include "process/line_splitter.h"

#include <algorithm>

namespace remuda::process {

void LineSplitter::feed(std::string_view bytes, const OnLine& on_line) {
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    const size_t room = limit_ - line_.size();
    line_.append(bytes.substr(0, std::min(end, room)));
    if (end > room) too_long_ = true;
    if (end == bytes.size()) return;
    emit(on_line);
    bytes.remove_prefix(end + 1);
  }
}

void LineSplitter::finish(const OnLine& on_line) {
  if (!line_.empty()) emit(on_line);
}

void LineSplitter::emit(const OnLine& on_line) {
  on_line(line_, too_long_);
  line_.clear();
  too_long_ = false;
}

}  // namespace remuda::process
