// For tests: a file system in user space with one file, which tells whether it was asked for anything.
#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <functional>
#include <linux/fuse.h>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "base/file.h"

namespace remuda::confine {

/// Its only file is "file". It gives the kernel nothing to remember: stat(2) asks it each time, and waits.
class SilentMount {
 public:
  explicit SilentMount(std::string folder)
      : folder_(std::move(folder)), fuse_(::open("/dev/fuse", O_RDWR | O_CLOEXEC)) {
    const std::string options = fmt::format("fd={},rootmode=40000,user_id=0,group_id=0", fuse_.get());
    if (::mount("silent", folder_.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) == 0)
      server_ = std::thread([this] { serve(); });
    else
      obstacle_ = fmt::format("cannot mount a file system in user space here: {}", std::strerror(errno));
  }
  SilentMount(const SilentMount&) = delete;
  ~SilentMount() {
    if (!server_.joinable()) return;
    const uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof one);
    server_.join();
    ::umount2(folder_.c_str(), MNT_DETACH);
  }

  /// Why there is none; empty where there is.
  const std::string& obstacle() const { return obstacle_; }
  std::string file() const { return folder_ + "/file"; }
  /// Whether `work` asks it for anything. It answers nothing meanwhile; so that the test ends, it is gone once it was
  /// asked.
  bool is_asked_by(const std::function<void()>& work) {
    is_silent_ = true;
    work();
    is_silent_ = false;
    return was_asked_;
  }

 private:
  static constexpr uint64_t kFile = 2;

  void serve() {
    std::array<char, 1 << 17> bytes{};
    for (;;) {
      std::array<pollfd, 2> polled{{{fuse_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
      ::poll(polled.data(), polled.size(), -1);
      if (polled[1].revents != 0) break;
      if (::read(fuse_.get(), bytes.data(), bytes.size()) < static_cast<ssize_t>(sizeof(fuse_in_header))) break;
      was_asked_ = was_asked_ || is_silent_;
      if (is_silent_) break;
      fuse_in_header asked{};
      std::memcpy(&asked, bytes.data(), sizeof asked);
      answer(asked);
    }
    fuse_.reset();  // who waits for it gets an error
  }

  static fuse_attr attributes(uint64_t node) {
    fuse_attr found{};
    found.ino = node;
    found.mode = node == kFile ? S_IFREG | 0644 : S_IFDIR | 0755;
    found.nlink = 1;
    return found;
  }

  void answer(const fuse_in_header& asked) const {
    switch (asked.opcode) {
      case FUSE_INIT: {
        fuse_init_out out{};
        out.major = FUSE_KERNEL_VERSION;
        out.minor = FUSE_KERNEL_MINOR_VERSION;
        out.max_write = 4096;
        return reply(asked, out);
      }
      case FUSE_LOOKUP: {
        fuse_entry_out out{};
        out.nodeid = kFile;
        out.attr = attributes(kFile);
        return reply(asked, out);
      }
      case FUSE_GETATTR: {
        fuse_attr_out out{};
        out.attr = attributes(asked.nodeid);
        return reply(asked, out);
      }
      case FUSE_OPEN:
        return reply(asked, fuse_open_out{});
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT:
        return;
      default:
        return send(asked, -ENOSYS, nullptr, 0);
    }
  }

  template <typename Out>
  void reply(const fuse_in_header& asked, const Out& out) const {
    send(asked, 0, &out, sizeof out);
  }
  void send(const fuse_in_header& asked, int error, const void* out, size_t size) const {
    std::string bytes(sizeof(fuse_out_header) + size, '\0');
    const fuse_out_header header{static_cast<uint32_t>(bytes.size()), error, asked.unique};
    std::memcpy(bytes.data(), &header, sizeof header);
    if (size > 0) std::memcpy(bytes.data() + sizeof header, out, size);
    (void)!::write(fuse_.get(), bytes.data(), bytes.size());
  }

  const std::string folder_;
  std::string obstacle_;
  Fd fuse_;
  const Fd stop_{::eventfd(0, EFD_CLOEXEC)};
  std::atomic<bool> is_silent_ = false, was_asked_ = false;
  std::thread server_;
};

}  // namespace remuda::confine
