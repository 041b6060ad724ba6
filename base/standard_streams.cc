#include "base/standard_streams.h"

#include <fcntl.h>
#include <initializer_list>
#include <unistd.h>

namespace remuda {

void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    const int opened = ::open("/dev/null", stream == STDIN_FILENO ? O_RDONLY : O_WRONLY);  // takes the lowest number
    if (opened != stream) ::_exit(1);
  }
}

}  // namespace remuda
