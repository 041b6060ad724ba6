// A certificate of its own for a test's server, as files.
#pragma once

#include <string>

namespace remuda::web {

/// Writes folder/cert.pem and folder/key.pem, for 127.0.0.1, valid for an hour.
void write_certificate(const std::string& folder);

}  // namespace remuda::web
