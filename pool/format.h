// The format of a pool's file: its number grows with each change of the tables, and a file of an older format is
// brought to the newest by the program that opens it first. Internal to pool.
#pragma once

#include <span>
#include <string>

#include "sqlite/database.h"

namespace remuda::pool {

/// migrations[i] are the statements that turn format i + 1 into i + 2. A released migration is never changed.
using Migrations = std::span<const char* const>;

/// What people should do with a damaged pool, as the end of a sentence.
inline constexpr const char* kIfDamaged = "end its jobs, then move it away to begin anew";

/// The newest format that these lead to.
int64_t newest_format(Migrations migrations);

/// The tables of the oldest format, as the statements that make a file.
std::string first_format();

/// Brings an older file to the newest format, in one transaction. Refuses a file that is not a pool, and one of a newer
/// format.
Result<void> migrate(sqlite::Database& database, const std::string& path, Migrations migrations);

/// An error where the file no longer has the newest format, as another program may have migrated it since it was
/// opened. To be called within each transaction. The error says whether the file or this program is too old.
Result<void> check_format(const sqlite::Database& database, const std::string& path, Migrations migrations);

/// The migrations that this program knows.
Migrations migrations();

}  // namespace remuda::pool
