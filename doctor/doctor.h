// The doctor: makes a list of diagnoses from all facts about a machine, and a text from that list. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "device/inventory.h"
#include "doctor/diagnosis.h"
#include "doctor/facts.h"

namespace remuda::doctor {

/// Runs every check, in the order of the table in doctor.cc. Where the inventory is an error (the devices did not
/// answer), that is a FAIL of its own, and each check that needs the inventory is SKIP with the same sentence.
std::vector<Diagnosis> examine(const Result<Inventory>& inventory, const HostFacts& facts);

struct Tally {
  size_t passed = 0, warnings = 0, failed = 0, skipped = 0;
};
Tally tally(const std::vector<Diagnosis>& diagnoses);

/// A line for each diagnosis under the name of its group, the remedy below it, and the tally. Checks of a group that
/// are skipped for the same reason share a line.
std::string report_text(const std::vector<Diagnosis>& diagnoses, bool colour);
/// {"checks": [{name, verdict, sentence, remedy?, device?}], "passed", "warnings", "failed", "skipped"}.
Json report_json(const std::vector<Diagnosis>& diagnoses);

}  // namespace remuda::doctor
