// IdleMemory: what each device's memory holds while nobody has it, as this boot has shown; in a file, so that the next
// agent knows it, too.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace remuda::agent {

/// One thread.
class IdleMemory {
 public:
  /// Reads the file; what it says of another boot counts for nothing. Without a name, none is kept.
  explicit IdleMemory(std::string file = "");

  /// The least that the device was seen to hold, in bytes.
  std::optional<int64_t> of(const std::string& device) const;
  /// Nobody has the device, and it holds so much. A file that cannot be written costs the next agent its knowledge.
  void note(const std::string& device, int64_t bytes);

 private:
  void read();
  void write() const;

  const std::string file_;
  std::map<std::string, int64_t> least_;
};

}  // namespace remuda::agent
