// The file of a machine's past: what its devices did (history.h), and what became of leases (use_store.h). Internal to
// monitor.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "sqlite/database.h"

namespace remuda::monitor {

/// Opens history.db in an existing folder, or makes it. Refuses a file that is none, and one of a newer format.
Result<std::unique_ptr<sqlite::Database>> open_file(const std::string& folder);

}  // namespace remuda::monitor
