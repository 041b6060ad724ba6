// REMUDA_CHECK(condition, "why it must hold"): aborts with file and line when the condition is false, which is a bug in
// remuda.
#pragma once

#include <cstdio>
#include <cstdlib>

#define REMUDA_CHECK(condition, why)                                                                     \
  do {                                                                                                   \
    if (!(condition)) {                                                                                  \
      std::fprintf(stderr, "%s:%d: bug in remuda: %s (%s)\n", __FILE_NAME__, __LINE__, why, #condition); \
      std::abort();                                                                                      \
    }                                                                                                    \
  } while (false)
