// Connection: one client's socket, plain or with TLS, as cpp-httplib reads and writes it. The library has the syntax of
// HTTP; what a client may take, in bytes and in time, is decided here.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <httplib.h>
#include <memory>
#include <openssl/ssl.h>
#include <string>

#include "base/file.h"

namespace remuda::web {

inline constexpr size_t kMostRequestBytes = 8192;  ///< of a request, its head and whatever follows it
inline constexpr double kRequest_s = 10;           ///< in which all of a request must have come
inline constexpr double kAnswer_s = 10;            ///< in which each piece of an answer must have been taken
inline constexpr double kIdle_s = 15;              ///< between two requests

/// One thread.
class Connection : public httplib::Stream {
 public:
  /// `socket` does not block. `tls`, which outlives this, is null for plain text.
  Connection(Fd socket, SSL_CTX* tls);
  ~Connection() override;

  /// To be called first: agrees on the keys, where there are any. False when that failed.
  bool open();
  /// To be called before each request: waits for its first byte, for kIdle_s. False when none comes.
  bool next_request();

  bool is_readable() const override;
  /// Waits for kAnswer_s: the library drops a client that is not, and a slow one has its time.
  bool is_writable() const override;
  ssize_t read(char* to, size_t size) override;
  /// All of the bytes, or an error.
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_.get(); }

 private:
  /// Calls `move` until it has moved bytes; what it returned then, 0 at the end of the stream, -1 for an error or at
  /// the deadline. `move` returns bytes, or minus the events of poll to wait for, or kClosed.
  ssize_t transfer(const std::function<ssize_t()>& move, double deadline_s);
  ssize_t receive(char* to, size_t size);
  ssize_t send(const char* from, size_t size);
  ssize_t tls_events(int result) const;
  bool fill(double deadline_s);

  const Fd socket_;
  std::unique_ptr<SSL, decltype(&SSL_free)> tls_;
  std::array<char, 2048> buffer_;
  size_t begin_ = 0, end_ = 0;  ///< what of the buffer was not read yet
  size_t left_ = 0;             ///< bytes that this request may still have
  double deadline_s_ = 0;       ///< of this request
};

}  // namespace remuda::web
