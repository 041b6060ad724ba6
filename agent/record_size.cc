#include "agent/record_size.h"

#include <string>
#include <vector>

namespace remuda::agent {
namespace {

constexpr size_t kPlain = 768;  // names of fields, numbers, and words of remuda's own
constexpr size_t kNumber = 12, kProcess = 160, kAround = 4;

size_t size_of(const std::vector<std::string>& texts) {
  size_t size = 0;
  for (const std::string& text : texts) size += text.size() + kAround;
  return size;
}

size_t size_of(const place::Request& request) {
  return request.model.size() + size_of(request.devices) + (request.where ? request.where->text().size() : 0) +
         (request.capability ? request.capability->text().size() : 0);
}

}  // namespace

size_t record_size(const pool::Job& job) {
  size_t size = kPlain + size_of(job.request) + size_of(job.groups) + size_of(job.command) + size_of(job.devices) +
                size_of(job.daemons);
  for (const std::string* text :
       {&job.user, &job.name, &job.folder, &job.log, &job.at_end, &job.mail, &job.cgroup, &job.why})
    size += text->size();
  for (const pool::Turn& turn : job.earlier) size += kProcess + size_of(turn.devices);
  return size + kNumber * (job.after.size() + job.after_any.size() + 2 * job.speeds.size() + job.cores.size()) +
         kProcess * job.processes.size();
}

}  // namespace remuda::agent
