#include "train/step_trace.h"

#include <iostream>

#include "base/file.h"

namespace remuda::train {

void StepTrace::write(const std::string& line) {
  if (!active()) return;
  const auto written = write_all(fd_, line + "\n", "the trace");
  if (written) return;
  std::cerr << "the trace ends here: " << written.error().message << std::endl;
  fd_ = -1;
}

}  // namespace remuda::train
