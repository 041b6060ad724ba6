// Times in this machine's time zone. For people only: programs get seconds.
#pragma once

#include <string>

namespace remuda {

/// `at_s` in seconds since 1970: "2026-11-22 09:30 CET".
std::string local_time_text(double at_s);

}  // namespace remuda
