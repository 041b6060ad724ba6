#include "agent/record_size.h"

#include "device/field_size.h"

namespace remuda::agent {

size_t record_size(const pool::Job& job) {
  constexpr size_t kRequest = 12;  // ,"request":
  return fields::json_size(job) + kRequest + pool::size_of(job.request);
}

}  // namespace remuda::agent
