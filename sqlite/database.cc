#include "sqlite/database.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <random>
#include <sqlite3.h>
#include <thread>
#include <utility>

#include "base/text.h"

namespace remuda::sqlite {
namespace {

constexpr int kLongestValue = 4 << 20;
// NORMAL: a commit survives the death of any process. A power cut may undo the last commits, but it also ends all
// processes they describe, so there is no reason to wait for the disk.
// 250 pages: so much log the next process to open the database has to read again; SQLite's default is four times as
// much.
constexpr const char* kSettings =
    "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 250; PRAGMA trusted_schema = OFF;";

std::string cause(sqlite3* handle) {
  const int number = sqlite3_system_errno(handle);
  return number != 0 ? errno_text(number) : printable(sqlite3_errmsg(handle));
}

bool may_pass(int code) {
  constexpr std::array kMayPass = {SQLITE_FULL,  SQLITE_BUSY,     SQLITE_LOCKED,
                                   SQLITE_IOERR, SQLITE_PROTOCOL, SQLITE_NOMEM};
  return std::ranges::find(kMayPass, code & 0xff) != kMayPass.end();
}

std::string sentence(const std::string& path, const std::string& if_damaged, sqlite3* handle) {
  switch (sqlite3_extended_errcode(handle) & 0xff) {
    case SQLITE_FULL:
      return fmt::format("cannot write {}: the disk is full; nothing was changed", path);
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return fmt::format("cannot write {}: {}", path, cause(handle));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return fmt::format("{} is busy: other processes keep it", path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return fmt::format("{} is damaged ({}); {}", path, sqlite3_errmsg(handle), if_damaged);
    case SQLITE_IOERR:
      return fmt::format("cannot read or write {}: {}; nothing was changed", path, cause(handle));
    default:
      return fmt::format("{}: {}", path, printable(sqlite3_errmsg(handle)));
  }
}

}  // namespace

/// Waits a little, up to 8 ms, a random time so that waiters do not collide; SQLite's own handler sleeps up to 100 ms.
int Database::wait_for_others(void* waits, int tries) {
  using namespace std::chrono;
  std::random_device random;
  auto& [patience, since] = *static_cast<Waits*>(waits);
  if (tries == 0) since = steady_clock::now();
  if (steady_clock::now() - since > patience) return 0;
  const int most_us = 250 << std::min(tries, 5);
  std::this_thread::sleep_for(microseconds(std::uniform_int_distribution(most_us / 2, most_us)(random)));
  return 1;
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
void Database::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

void Statement::bind(int parameter, int64_t value) { sqlite3_bind_int64(statement_.get(), parameter, value); }
void Statement::bind(int parameter, double value) { sqlite3_bind_double(statement_.get(), parameter, value); }
void Statement::bind(int parameter, std::string_view text) {
  sqlite3_bind_text64(statement_.get(), parameter, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}
void Statement::bind_bytes(int parameter, std::string_view bytes) {
  sqlite3_bind_blob64(statement_.get(), parameter, bytes.data(), bytes.size(), SQLITE_STATIC);
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    sqlite3_reset(statement_.get());
    return false;
  }
  Error error = database_->error();
  sqlite3_reset(statement_.get());
  return tl::unexpected(std::move(error));
}

Result<void> Statement::run() {
  REMUDA_TRY(step());
  return {};
}

int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }
std::string_view Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column));
  return text ? std::string_view(text, size) : std::string_view();
}
std::string_view Statement::bytes(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column));
  return bytes ? std::string_view(bytes, size) : std::string_view();
}

Result<std::unique_ptr<Database>> Database::open(const std::string& path, std::string if_damaged) {
  sqlite3* handle = nullptr;
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(std::filesystem::path(path).parent_path(), error);
  const std::string real = error ? path : (folder / std::filesystem::path(path).filename()).string();
  const int code = sqlite3_open_v2(real.c_str(), &handle,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, nullptr);
  std::unique_ptr<Database> database(new Database(path, std::move(if_damaged), handle));
  if (code != SQLITE_OK) return tl::unexpected(database->error());
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kLongestValue);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_busy_handler(handle, &Database::wait_for_others, &database->waits_);
  if (sqlite3_db_readonly(handle, "main") == 1)
    return failed(fmt::format("cannot write {}: it may only be read", path));
  REMUDA_TRY(database->execute(kSettings));
  return database;
}

Result<std::string> Database::image(const char* statements) {
  constexpr size_t kWriteVersion = 18, kReadVersion = 19;  // of the file's header: 1 rollback journal, 2 WAL
  sqlite3* handle = nullptr;
  const int code = sqlite3_open(":memory:", &handle);
  Database database("a new database", "", handle);
  if (code != SQLITE_OK) return tl::unexpected(database.error());
  REMUDA_TRY(database.execute(statements));
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(handle, "main", &size, 0);
  if (!bytes) return tl::unexpected(database.error());
  std::string image(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  sqlite3_free(bytes);
  image[kWriteVersion] = image[kReadVersion] = 2;
  return image;
}

Result<void> Database::execute(const char* statements) {
  if (sqlite3_exec(handle_.get(), statements, nullptr, nullptr, nullptr) != SQLITE_OK) return tl::unexpected(error());
  return {};
}

Result<Statement> Database::prepare(std::string_view statement) const {
  sqlite3_stmt* prepared = nullptr;
  const int code =
      sqlite3_prepare_v2(handle_.get(), statement.data(), static_cast<int>(statement.size()), &prepared, nullptr);
  if (code != SQLITE_OK) return tl::unexpected(error());
  return Statement(*this, prepared);
}

Result<int64_t> Database::integer(std::string_view statement) const {
  REMUDA_ASSIGN(Statement query, prepare(statement));
  REMUDA_ASSIGN(const bool found, query.step());
  return found ? query.integer(0) : 0;
}

bool Database::has_moved() const {
  int moved = 0;
  sqlite3_file_control(handle_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return moved != 0;
}

Error Database::error() const {
  const int code = sqlite3_errcode(handle_.get()) & 0xff;
  failure_may_pass_ = failure_may_pass_ || may_pass(code);
  was_busy_ = was_busy_ || code == SQLITE_BUSY || code == SQLITE_LOCKED;
  return {ErrorKind::failed, sentence(path_, if_damaged_, handle_.get()), -1};
}

void Database::abandon() { [[maybe_unused]] const sqlite3* left_open = handle_.release(); }

Result<Transaction> Transaction::reading(Database& database) {
  REMUDA_TRY(database.execute("BEGIN"));
  return Transaction(database);
}

Result<Transaction> Transaction::writing(Database& database) {
  REMUDA_TRY(database.execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Result<void> Transaction::commit() {
  REMUDA_TRY(database_->execute("COMMIT"));
  database_ = nullptr;
  return {};
}

// A failure here does no harm: SQLite has rolled the transaction back by itself then.
Transaction::~Transaction() {
  if (database_) (void)database_->execute("ROLLBACK");
}

}  // namespace remuda::sqlite
