// Tests only: a worker that does what its arguments say, one after the other.
//
//   event TEXT    writes a line to REMUDA_EVENTS_FD        done          writes rank 0's done event
//   print TEXT    writes a line to stderr                  flood BYTES   writes one long line of events
//   stdin         writes its input to stderr               env NAME      writes NAME=VALUE to stderr
//   cores         writes the CPUs it may run on to stderr  pid           writes its process id to stderr
//   close         closes stdout and stderr                 raise N       sends itself the signal
//   deaf          ignores SIGTERM from now on              polite        ends well, and says done, on SIGTERM
//   members       waits for a line on REMUDA_MEMBERS_FD, and writes it to stderr
//   wait          waits until it is ended                  pause MS      waits for a while
//   exit N        exits with the status N (0 at the end of the arguments)
#include <chrono>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <sched.h>
#include <signal.h>
#include <string>
#include <thread>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"

namespace {

using remuda::write_all;

int events_fd() { return remuda::env::get_int(remuda::env::events_fd, 0, 1 << 20).value_or(-1); }

void say(int fd, const std::string& line) { (void)write_all(fd, line + "\n", "a line"); }

void say_done_and_exit(int) {
  say(events_fd(), R"({"event":"done","rank":0})");
  ::_exit(0);
}

std::string cores() {
  cpu_set_t set;
  ::sched_getaffinity(0, sizeof set, &set);
  std::string text;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) text += (text.empty() ? "" : ",") + std::to_string(core);
  return text;
}

std::string line_of_members() {
  const int fd = remuda::env::get_int(remuda::env::members_fd, 0, 1 << 20).value_or(-1);
  std::string line;
  for (char next = 0; ::read(fd, &next, 1) == 1 && next != '\n';) line += next;
  return line;
}

void wait_for(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

using Word = const std::string&;

const std::map<std::string, std::function<void()>> kPlain{
    {"done", [] { say(events_fd(), R"({"event":"done","rank":0})"); }},
    {"stdin", [] { say(STDERR_FILENO, std::string(std::istreambuf_iterator<char>(std::cin), {})); }},
    {"cores", [] { say(STDERR_FILENO, cores()); }},
    {"pid", [] { say(STDERR_FILENO, std::to_string(::getpid())); }},
    {"close", [] { ::close(STDOUT_FILENO), ::close(STDERR_FILENO); }},
    {"deaf", [] { ::signal(SIGTERM, SIG_IGN); }},
    {"polite", [] { ::signal(SIGTERM, say_done_and_exit); }},
    {"members", [] { say(STDERR_FILENO, line_of_members()); }},
    {"wait",
     [] {
       for (;;) ::pause();
     }},
};

const std::map<std::string, std::function<void(Word)>> kWithWord{
    {"event", [](Word text) { say(events_fd(), text); }},
    {"print", [](Word text) { say(STDERR_FILENO, text); }},
    {"flood", [](Word bytes) { say(events_fd(), std::string(std::stoul(bytes), 'x')); }},
    {"env", [](Word name) { say(STDERR_FILENO, name + "=" + remuda::env::get({name.c_str(), ""}).value_or("")); }},
    {"raise", [](Word number) { ::kill(::getpid(), std::stoi(number)); }},
    {"pause", [](Word milliseconds) { wait_for(std::stoi(milliseconds)); }},
    {"exit", [](Word status) { ::_exit(std::stoi(status)); }},
};

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (const auto plain = kPlain.find(argv[i]); plain != kPlain.end())
      plain->second();
    else
      kWithWord.at(argv[i])(argv[i + 1]), ++i;
  }
}
