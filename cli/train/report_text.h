// Sentences about the reports of training runs: why one was slow, and how several differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace remuda::cli {

/// The report's devices, by names that differ: "cpu:0", or "cpu:0 #1" where several ranks share it.
std::vector<std::string> device_names(const Json& report);

/// Whether the role of a device of a report is to.
bool takes_samples(const Json& device);

/// By how much the run was faster than predicted, as a part of that; nothing where one of the two is not known.
std::optional<double> predicted_difference(const Json& report);

/// Why the run was much slower than the sum of its devices alone, where that is no matter of its steps (of which
/// bottleneck_of() tells); empty where it was not, or where that was not measured.
std::string efficiency_text(const Json& report);

/// Which device ran out of memory, what was done about it, and what avoids it; empty where none did.
std::string memory_text(const Json& report);

/// Which device's driver refused to register memory of the host, how much, and what may help; empty where none did.
std::string unregistered_text(const Json& report);

/// Where batch norm normalised batches of unlike sizes, as each device has its own: what to do. Empty elsewhere.
std::string batch_norm_text(const Json& report);

/// The cause of a loss for people: "during gather_parts #34 (label 3, ...)" becomes "while parameters were gathered".
/// Any other text is as it was.
std::string plain_cause(const std::string& cause);

/// A sentence for each rank that was lost: when, why, and what that has cost. Empty where none was.
std::string loss_text(const Json& report);
/// Who joined the run, and what that has cost; empty where nobody did.
std::string join_text(const Json& report);

/// What the roles of its devices were predicted to gain; empty where all compute, or that was not measured.
std::string roles_text(const Json& report);

/// How the runs differ other than in their figures, a sentence each: keys of the job, steps, an early stop. Says what
/// cannot be compared because of it.
std::vector<std::string> differences(const std::vector<std::string>& names, const std::vector<Json>& reports);

/// The text in lines of at most `width` characters, broken between words, each with its end.
std::string wrapped(const std::string& text, size_t width);

}  // namespace remuda::cli
