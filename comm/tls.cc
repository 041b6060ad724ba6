#include "comm/tls.h"

#include <algorithm>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>

#include "base/check.h"
#include "comm/wire.h"

namespace remuda::comm {

struct TlsFreed {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
  void operator()(BIO_METHOD* method) const { BIO_meth_free(method); }
};
template <typename T>
using TlsOwned = std::unique_ptr<T, TlsFreed>;

// The socket as OpenSSL sees it. Its own kind of BIO would raise SIGPIPE, and send each record by itself.
struct TlsSocket {
  int fd;
  bool more = false;   // another record follows at once
  bool ended = false;  // nothing more can be read
};

namespace {

constexpr size_t kRecordBytes = SSL3_RT_MAX_PLAIN_LENGTH;
constexpr size_t kReadBytes = 256 << 10;           // read from the socket at a time
constexpr unsigned char kCipher[] = {0x13, 0x01};  // TLS_AES_128_GCM_SHA256
constexpr char kIdentity[] = "remuda";             // the key is of this connection alone: nothing to choose between

int write_socket(BIO* bio, const char* data, size_t size, size_t* written) {
  const auto& socket = *static_cast<TlsSocket*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const ptrdiff_t sent = send_some(socket.fd, {reinterpret_cast<const std::byte*>(data), size}, socket.more);
  if (sent == 0) BIO_set_retry_write(bio);
  *written = sent > 0 ? static_cast<size_t>(sent) : 0;
  return sent > 0 ? 1 : -1;  // 0 would be success to newer versions
}

int read_socket(BIO* bio, char* data, size_t size, size_t* read) {
  auto& socket = *static_cast<TlsSocket*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const ptrdiff_t got = recv_some(socket.fd, {reinterpret_cast<std::byte*>(data), size});
  if (got == 0) BIO_set_retry_read(bio);
  socket.ended = got < 0;
  *read = got > 0 ? static_cast<size_t>(got) : 0;
  return got > 0 ? 1 : 0;
}

long control_socket(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return static_cast<const TlsSocket*>(BIO_get_data(bio))->ended ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO* make_bio(TlsSocket& socket) {
  static const TlsOwned<BIO_METHOD> method = [] {
    TlsOwned<BIO_METHOD> made(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "remuda"));
    BIO_meth_set_write_ex(made.get(), write_socket);
    BIO_meth_set_read_ex(made.get(), read_socket);
    BIO_meth_set_ctrl(made.get(), control_socket);
    return made;
  }();
  BIO* bio = BIO_new(method.get());
  REMUDA_CHECK(bio, "OpenSSL has memory");
  BIO_set_data(bio, &socket);
  BIO_set_init(bio, 1);
  return bio;
}

TlsOwned<SSL_SESSION> session_of(SSL* ssl) {
  const auto& key = *static_cast<const Tls::Key*>(SSL_get_app_data(ssl));
  TlsOwned<SSL_SESSION> session(SSL_SESSION_new());
  const auto* bytes = reinterpret_cast<const unsigned char*>(key.data());
  const bool made = session && SSL_SESSION_set1_master_key(session.get(), bytes, key.size()) == 1 &&
                    SSL_SESSION_set_cipher(session.get(), SSL_CIPHER_find(ssl, kCipher)) == 1 &&
                    SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) == 1;
  REMUDA_CHECK(made, "a key of 32 bytes is one of TLS 1.3");
  return session;
}

int use_key(SSL* ssl, const EVP_MD*, const unsigned char** identity, size_t* length, SSL_SESSION** session) {
  *identity = reinterpret_cast<const unsigned char*>(kIdentity);
  *length = sizeof kIdentity - 1;
  *session = session_of(ssl).release();
  return 1;
}

int find_key(SSL* ssl, const unsigned char*, size_t, SSL_SESSION** session) {
  *session = session_of(ssl).release();
  return 1;
}

// No certificate, no ticket, no other version, no other cipher.
SSL_CTX* context() {
  static const TlsOwned<SSL_CTX> shared = [] {
    TlsOwned<SSL_CTX> made(SSL_CTX_new(TLS_method()));
    const bool set = made && SSL_CTX_set_min_proto_version(made.get(), TLS1_3_VERSION) == 1 &&
                     SSL_CTX_set_ciphersuites(made.get(), "TLS_AES_128_GCM_SHA256") == 1 &&
                     SSL_CTX_set_num_tickets(made.get(), 0) == 1;
    REMUDA_CHECK(set, "OpenSSL has TLS 1.3");
    SSL_CTX_set_session_cache_mode(made.get(), SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(made.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(made.get(), 1);
    SSL_CTX_set_default_read_buffer_len(made.get(), kReadBytes);
    SSL_CTX_set_psk_use_session_callback(made.get(), use_key);
    SSL_CTX_set_psk_find_session_callback(made.get(), find_key);
    return made;
  }();
  return shared.get();
}

// What OpenSSL found wrong on this thread in the call that was just made, the first of it, as newer versions go on to
// say that their record layer has failed; empty where the connection has just ended.
std::string first_reason() {
  const unsigned long error = ERR_peek_error();
  if (error == 0 || ERR_SYSTEM_ERROR(error) || ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING) return "";
  const char* reason = ERR_reason_error_string(error);
  return reason ? reason : "an error without a name";
}

}  // namespace

struct Tls::State {
  State(int fd, const Key& shared_key, uint64_t renewed_bytes)
      : socket{fd}, key(shared_key), renew_bytes(renewed_bytes), ssl(SSL_new(context())) {
    REMUDA_CHECK(ssl, "OpenSSL has memory");
    BIO* bio = make_bio(socket);
    SSL_set_bio(ssl.get(), bio, bio);
    SSL_set_app_data(ssl.get(), &key);
  }
  TlsSocket socket;
  Key key;
  uint64_t renew_bytes;
  TlsOwned<SSL> ssl;
  uint64_t sent_bytes = 0;  // with the current key
  int renewals = 0;
};

Tls::Tls(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tls::~Tls() = default;

Result<std::unique_ptr<Tls>> Tls::connect(int fd, End end, const Key& key, double deadline_s, const std::string& peer,
                                          uint64_t renew_bytes) {
  std::unique_ptr<Tls> tls(new Tls(std::make_unique<State>(fd, key, renew_bytes)));
  REMUDA_TRY(tls->shake(end, deadline_s, peer));
  return tls;
}

Result<void> Tls::shake(End end, double deadline_s, const std::string& peer) {
  SSL* const ssl = state_->ssl.get();
  if (end == End::connector) {
    SSL_set_verify(ssl, SSL_VERIFY_PEER, nullptr);  // a certificate instead of the key: nobody vouches for any
    SSL_set_connect_state(ssl);
  } else {
    SSL_set_accept_state(ssl);
  }
  const auto lost = [&](const char* what) {
    return tl::unexpected(
        Error{ErrorKind::lost_peer, fmt::format("{} {} while the connection was being encrypted", peer, what)});
  };
  for (;;) {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl);
    if (result == 1) break;
    const int reason = SSL_get_error(ssl, result);
    const bool waits = reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE;
    if (!waits && first_reason().empty()) return lost("closed the connection");
    if (!waits) return failed(fmt::format("{} did not agree on encryption: {}", peer, first_reason()));
    if (!wait_ready(state_->socket.fd, reason == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, deadline_s))
      return lost("did not answer in time");
  }
  if (SSL_session_reused(ssl) != 1) return failed(fmt::format("{} does not use the shared key", peer));
  return {};
}

// 0 or -1, by why the last step moved nothing.
ptrdiff_t Tls::gave_nothing(int result) {
  const int reason = SSL_get_error(state_->ssl.get(), result);
  if (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE) return 0;
  if (trouble_.empty()) trouble_ = first_reason();
  return -1;
}

void Tls::begin_message() {
  if (state_->sent_bytes < state_->renew_bytes) return;
  if (SSL_key_update(state_->ssl.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) return;  // not now: at the next message
  state_->sent_bytes = 0;
  ++state_->renewals;
}

int Tls::renewals() const { return state_->renewals; }

ptrdiff_t Tls::send_some(std::span<const std::byte> bytes) {
  State& state = *state_;
  size_t sent = 0;
  while (sent < bytes.size()) {
    const auto record = bytes.subspan(sent, std::min(kRecordBytes, bytes.size() - sent));
    state.socket.more = sent + record.size() < bytes.size();
    size_t written = 0;
    ERR_clear_error();
    const int result = SSL_write_ex(state.ssl.get(), record.data(), record.size(), &written);
    if (result != 1) {
      const ptrdiff_t nothing = gave_nothing(result);
      return sent > 0 ? static_cast<ptrdiff_t>(sent) : nothing;
    }
    sent += written;
    state.sent_bytes += written;
  }
  return static_cast<ptrdiff_t>(sent);
}

ptrdiff_t Tls::recv_some(std::span<std::byte> bytes) {
  size_t got = 0;
  while (got < bytes.size()) {
    size_t read = 0;
    ERR_clear_error();
    const int result = SSL_read_ex(state_->ssl.get(), bytes.data() + got, bytes.size() - got, &read);
    if (result != 1) {
      const ptrdiff_t nothing = gave_nothing(result);
      return got > 0 ? static_cast<ptrdiff_t>(got) : nothing;
    }
    got += read;
  }
  return static_cast<ptrdiff_t>(got);
}

}  // namespace remuda::comm
