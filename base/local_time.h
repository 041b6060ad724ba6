// Times as people of this machine's time zone write them. For people only: programs get the seconds.
#pragma once

#include <string>

namespace remuda {

/// `at_s` in seconds since 1970: "2026-11-22 09:30 CET".
std::string local_time_text(double at_s);

}  // namespace remuda
