// The small part of SQLite that stores need: owned handles, and Result in place of error codes.
//
// One thread per Database. Every error is one sentence that names the file and says whether anything was changed.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace remuda::sqlite {

class Database;

/// A prepared statement. Must not outlive its database.
class Statement {
 public:
  /// Parameters count from 1. A text must stay valid until the last step().
  void bind(int parameter, int64_t value);
  void bind(int parameter, double value);
  void bind(int parameter, std::string_view text);
  void bind_bytes(int parameter, std::string_view bytes);
  /// True: there is a row. After false, or an error, the statement may be bound and stepped again.
  Result<bool> step();
  /// Runs a statement that gives no rows.
  Result<void> run();

  /// Columns count from 0. A text, or bytes, are valid until the next step().
  int64_t integer(int column) const;
  double real(int column) const;
  std::string_view text(int column) const;
  std::string_view bytes(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(const Database& database, sqlite3_stmt* statement) : database_(&database), statement_(statement) {}
  const Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Database {
 public:
  /// Opens an existing file for reading and writing; a link in its place is not followed. `if_damaged` says what people
  /// should do with a damaged one, as the end of a sentence.
  static Result<std::unique_ptr<Database>> open(const std::string& path,
                                                std::string if_damaged = "move it away to begin anew");
  /// The bytes of a database file in WAL mode, made by these statements.
  static Result<std::string> image(const char* statements);

  Result<void> execute(const char* statements);
  Result<Statement> prepare(std::string_view statement) const;
  /// The first column of the first row; 0 where there is none.
  Result<int64_t> integer(std::string_view statement) const;
  /// Whether the path now leads to another file, or to none.
  bool has_moved() const;

  /// Describes the last call that failed.
  Error error() const;
  /// Whether one of the calls since begin_call() failed for a cause that may be temporary: a full disk, a database that
  /// other processes keep busy, an input or output error.
  bool failure_may_pass() const { return failure_may_pass_; }
  /// Whether one of them failed as other processes kept it busy.
  bool was_busy() const { return was_busy_; }
  void begin_call() { failure_may_pass_ = was_busy_ = false; }
  /// For so long a call waits for other processes; 10 seconds unless this is called.
  void set_patience(std::chrono::milliseconds patience) { waits_.patience = patience; }
  /// Never closes the handle: a forked child must do so with its parent's handle.
  void abandon();

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  Database(std::string path, std::string if_damaged, sqlite3* handle)
      : path_(std::move(path)), if_damaged_(std::move(if_damaged)), handle_(handle) {}
  std::string path_, if_damaged_;
  struct Waits {
    std::chrono::milliseconds patience{10000};
    std::chrono::steady_clock::time_point since;
  };
  static int wait_for_others(void* waits, int tries);
  Waits waits_;
  mutable bool failure_may_pass_ = false, was_busy_ = false;  ///< error() sets them
  std::unique_ptr<sqlite3, Close> handle_;
};

/// Rolled back when destroyed, unless it was committed.
class Transaction {
 public:
  /// All reads within it see one state of the database.
  static Result<Transaction> reading(Database& database);
  /// No other process writes until this one ends. Waits for others, 10 seconds at the most.
  static Result<Transaction> writing(Database& database);

  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  /// To be called once. After an error nothing was changed.
  Result<void> commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace remuda::sqlite
