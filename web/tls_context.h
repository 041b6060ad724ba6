// TlsContext: a server's certificate and key, as OpenSSL uses them.
#pragma once

#include <memory>
#include <openssl/ssl.h>
#include <string>

#include "base/result.h"

namespace remuda::web {

using TlsContext = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

/// Of files in PEM, the certificate first in a chain. TLS 1.2 or newer. A usage error that names the file that is
/// wrong.
Result<TlsContext> make_tls_context(const std::string& certificate, const std::string& key);

}  // namespace remuda::web
