// Diagnosis: the result of one check of `remuda doctor`.
#pragma once

#include <string>

#include "device/words.h"

namespace remuda::doctor {

enum class Verdict {
  pass,  ///< as it should be
  warn,  ///< it works, but is slow or behaves unexpectedly
  fail,  ///< something does not work
  skip,  ///< not known, or does not apply here
};

struct Diagnosis {
  Verdict verdict = Verdict::skip;
  std::string sentence;
  std::string remedy;  ///< the command or step that fixes it; of warn and fail only
  std::string device;  ///< id of the device it is about; empty: the machine
  std::string name;    ///< of the check
  std::string group;   ///< of checks
};

}  // namespace remuda::doctor

template <>
struct remuda::Words<remuda::doctor::Verdict> {
  static constexpr std::array table{std::pair{doctor::Verdict::pass, "PASS"}, std::pair{doctor::Verdict::warn, "WARN"},
                                    std::pair{doctor::Verdict::fail, "FAIL"}, std::pair{doctor::Verdict::skip, "SKIP"}};
};
