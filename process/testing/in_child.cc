#include "process/testing/in_child.h"

#include <cerrno>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/file.h"

namespace remuda::process {

ChildEnd in_child(const std::function<std::string(const Say& say)>& work) {
  int ends[2];
  REMUDA_CHECK(::pipe(ends) == 0, "a pipe can be made");
  Fd reading(ends[0]), writing(ends[1]);
  const pid_t child = ::fork();
  REMUDA_CHECK(child >= 0, "a process can be forked");
  if (child == 0) {
    const Say say = [&](const std::string& words) { (void)write_all(writing.get(), words, "a pipe"); };
    say(work(say));
    ::_exit(0);
  }
  writing.reset();
  ChildEnd end;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(reading.get(), buffer, sizeof buffer)) > 0;) end.said.append(buffer, got);
  REMUDA_CHECK(::waitpid(child, &end.status, 0) == child, "a child can be waited for");
  return end;
}

ChildEnd with_own_mounts(const std::function<std::string()>& work) {
  return in_child([&](const Say&) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return "skip: no mounts of its own (" + errno_text(errno) + ")";
    return work();
  });
}

}  // namespace remuda::process
