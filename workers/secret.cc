#include "workers/secret.h"

#include <array>
#include <fmt/format.h>
#include <sys/random.h>

namespace remuda::workers {

Result<std::string> make_secret() {
  std::array<unsigned char, 32> bytes;
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return failed(fmt::format("cannot read random bytes: {}", errno_text(errno)));
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace remuda::workers
