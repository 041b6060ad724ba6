// The three streams that every program expects to be open.
#pragma once

namespace remuda {

/// Opens /dev/null as stdin, stdout and stderr, each where the caller has closed it: otherwise the next file to be
/// opened would get its number, and output for people would be written into it. To be called first in main(). Ends the
/// program with status 1 where /dev/null cannot be opened: there is no stream to report it on.
void open_standard_streams();

}  // namespace remuda
