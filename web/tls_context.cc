#include "web/tls_context.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <sys/stat.h>
#include <unistd.h>

namespace remuda::web {
namespace {

tl::unexpected<Error> wrong(const std::string& file, const char* what) {
  const char* reason = ::ERR_reason_error_string(::ERR_peek_last_error());
  ::ERR_clear_error();
  return usage_error(fmt::format("{}: cannot be used as {}: {}", file, what, reason ? reason : "unknown error"));
}

/// Whoever can read the key can be this server; whoever can write it can have it be another.
Result<void> check_private(const std::string& key) {
  struct stat info{};
  if (::stat(key.c_str(), &info) != 0) return {};  // what is wrong with it is said when it is read
  const bool is_own = info.st_uid == ::geteuid() || info.st_uid == 0;
  if (is_own && (info.st_mode & (S_IWGRP | S_IRWXO)) == 0) return {};
  return usage_error(
      fmt::format("{}: other users can read or change this key, and so be this server: chmod 600 {}, as a "
                  "file of who starts it",
                  key, key));
}

}  // namespace

Result<TlsContext> make_tls_context(const std::string& certificate, const std::string& key) {
  REMUDA_TRY(check_private(key));
  TlsContext context(::SSL_CTX_new(::TLS_server_method()), &::SSL_CTX_free);
  if (!context) return failed("OpenSSL cannot make a context for TLS");
  ::SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // What was not written is passed again from another address: Connection::write() does not copy it.
  ::SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  ::SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  if (::SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) != 1)
    return wrong(certificate, "a certificate");
  if (::SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) != 1)
    return wrong(key, "the key of the certificate");
  return context;
}

}  // namespace remuda::web
