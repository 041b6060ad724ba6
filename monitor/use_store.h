// UseStore: keeps what became of leases (use.h) beside the history of devices, in the same file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "monitor/use.h"
#include "sqlite/database.h"

namespace remuda::monitor {

/// One thread.
class UseStore {
 public:
  /// How many leases are kept; the oldest are forgotten.
  static constexpr int64_t kMostKept = 50'000;

  /// Opens the file in the folder of a History, or makes it.
  static Result<UseStore> open(const std::string& folder);

  /// Adds these, or replaces what was there of the same leases.
  Result<void> write(const std::vector<LeaseUse>& uses);
  /// Those that were alive at `since_s` or after it, the newest first. What cannot be read is left out.
  Result<std::vector<LeaseUse>> read(double since_s);
  /// Of the last read(): a sentence about what was left out; empty: nothing was.
  const std::string& left_out() const { return left_out_; }

 private:
  explicit UseStore(std::unique_ptr<sqlite::Database> database) : database_(std::move(database)) {}
  std::unique_ptr<sqlite::Database> database_;
  std::string left_out_;
};

}  // namespace remuda::monitor
