// Finding PyTorch and the libraries of collectives by their files. Nothing is imported: that would take seconds, and
// may hang with the driver.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "doctor/facts.h"

namespace remuda::doctor {

/// The python3 of the active virtual environment, else "python3", to be found on PATH.
std::string python_program();

/// The folders in which `python` looks for packages, in its order: asks it, so call it within a Question.
Result<std::vector<std::string>> python_folders(const std::string& python);

/// The software in those folders; libraries are also searched in `library_folders` (see system_library_folders()).
Software find_software(const std::vector<std::string>& python_folders, const std::vector<std::string>& library_folders);

/// The system's folders for libraries.
std::vector<std::string> system_library_folders();

/// Software whose readings are all missing, for that reason.
Software no_software(const std::string& why);

std::string to_text(const Software& software);
Result<Software> parse_software(std::string_view text);

}  // namespace remuda::doctor
