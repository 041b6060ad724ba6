// The three streams that every program counts on.
#pragma once

namespace remuda {

/// Opens /dev/null as stdin, stdout and stderr, each where the caller has closed it: otherwise the next file to be
/// opened would take its number, and what is meant for people would be written into it. To be called first in main().
/// Ends the program with status 1 where /dev/null cannot be opened: there is nobody to tell.
void open_standard_streams();

}  // namespace remuda
