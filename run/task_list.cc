#include "run/task_list.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

namespace remuda::run {
namespace {

constexpr size_t kMostBytes = 16 << 20;
constexpr std::string_view kPlace = "{}";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

std::string with(std::string argument, const std::string& text) {
  for (size_t at = argument.find(kPlace); at != std::string::npos; at = argument.find(kPlace, at + text.size()))
    argument.replace(at, kPlace.size(), text);
  return argument;
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t") == std::string_view::npos; }

Result<std::string> read_all(int fd, const std::string& name) {
  std::string text;
  std::vector<char> buffer(1 << 16);
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return usage_error(fmt::format("cannot read {}: {}", name, errno_text(errno)));
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(got));
    if (text.size() > kMostBytes)
      return usage_error(fmt::format("{} is larger than {}, too much for a list of tasks", name,
                                     human_bytes(static_cast<double>(kMostBytes))));
  }
}

}  // namespace

std::vector<std::string> TaskList::argv(size_t task) const {
  const std::string& text = tasks.at(task).text;
  if (command.empty()) return {"/bin/sh", "-c", text};
  std::vector<std::string> arguments = command;
  const auto has_place = [](const std::string& one) { return one.find(kPlace) != std::string::npos; };
  if (std::ranges::none_of(command, has_place))
    arguments.push_back(text);
  else
    for (std::string& argument : arguments) argument = with(std::move(argument), text);
  return arguments;
}

Result<std::vector<Task>> parse_tasks(std::string_view text, const std::string& file) {
  std::vector<Task> tasks;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (is_blank(line) || line.starts_with('#')) continue;
    if (printable(line) != line)
      return usage_error(fmt::format("line {} of {} has bytes that are no text in UTF-8", number, file));
    tasks.push_back({number, std::string(line)});
  }
  if (tasks.empty()) return usage_error(fmt::format("there is no task in {}; write one command a line", file));
  return tasks;
}

Result<std::string> read_task_file(const std::string& path) {
  if (path == "-") return read_all(STDIN_FILENO, "stdin");
  const Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));  // a FIFO would wait for its writer
  const std::string name = printable(path);
  if (!fd) return usage_error(fmt::format("cannot read {}: {}", name, errno_text(errno)));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return usage_error(fmt::format("cannot read {}: it is not a regular file; a pipe goes to stdin, with -", name));
  return read_all(fd.get(), name);
}

}  // namespace remuda::run
