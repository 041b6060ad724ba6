#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <typeinfo>
#include <unistd.h>

#include "train/device/device_ops.h"
#include "train/device/memory_watch.h"
#include "train/device/vendor_runtime.h"
#include "train/error_text.h"
#include "train/facts/fact.h"
#include "train/torch_compat.h"

namespace remuda::train::facts {
namespace {

at::TensorOptions bytes_on(at::Device device) { return at::TensorOptions().dtype(at::kByte).device(device); }

std::string type_of(const std::exception& error) {
  return dynamic_cast<const c10::OutOfMemoryError*>(&error) ? "c10::OutOfMemoryError" : typeid(error).name();
}

Answer out_of_memory(at::Device device) {
  std::string type, text;
  bool known = false;
  try {
    (void)torch::empty({int64_t{1} << 50}, bytes_on(device));
    return does_not_hold("a pebibyte was allocated");
  } catch (const std::exception& error) {
    type = type_of(error);
    text = sentence_of(error);
    known = is_out_of_memory(error);
  }
  if (torch::ones({1 << 20}, bytes_on(device)).sum().item<int64_t>() != 1 << 20)
    return does_not_hold("a later sum is wrong");
  const std::string seen = fmt::format("{}: \"{}\"; the next allocation works", type, text);
  return known && type == "c10::OutOfMemoryError" ? holds(seen) : does_not_hold(seen);
}

Answer generator(at::Device device) {
  at::Generator shared = at::globalContext().defaultGenerator(device);
  const auto draw = [&] {
    return torch::empty({1000}, at::TensorOptions().device(device)).uniform_(0, 1, shared).cpu();
  };
  shared.set_current_seed(7);
  const auto state = shared.get_state();
  const auto first = draw(), second = draw();
  shared.set_state(state);
  if (!draw().equal(first)) return does_not_hold("the state that was set does not give the same numbers");
  at::Generator own = shared.clone();
  own.set_current_seed(7);
  const auto apart = torch::empty({1000}, at::TensorOptions().device(device)).uniform_(0, 1, own).cpu();
  if (!apart.equal(first)) return does_not_hold("a clone with the same seed gives other numbers");
  if (!draw().equal(second)) return does_not_hold("a clone's draws disturb the default generator");
  return holds(fmt::format("a state of {} bytes brings the numbers back; a clone is independent", state.numel()));
}

/// A shared mapping such as ranks have in common, given back at the end.
class SharedMemory {
 public:
  explicit SharedMemory(size_t bytes) : bytes_(bytes), fd_(::memfd_create("facts", MFD_CLOEXEC)) {
    if (fd_ < 0 || ::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) return;
    void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (mapped != MAP_FAILED) address_ = mapped;
  }
  ~SharedMemory() {
    if (address_) ::munmap(address_, bytes_);
    if (fd_ >= 0) ::close(fd_);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  void* address() const { return address_; }

 private:
  size_t bytes_;
  int fd_;
  void* address_ = nullptr;
};

/// The copy from `host` to the device: is it right, and did the call return before it was done?
Answer copies_asynchronously(const torch::Tensor& host, at::Device device, const std::string& what) {
  const Streams streams(device);
  if (!host.is_pinned()) return does_not_hold(what + " is_pinned() is false");
  host.fill_(7);
  const auto there = torch::zeros({host.numel()}, bytes_on(device));
  streams.wait();
  there.copy_(host, true);
  const bool returned_early = !streams.idle(streams.current());
  streams.wait();
  if ((there != 7).any().item<bool>()) return does_not_hold("the copy is wrong");
  host.zero_();
  host.copy_(there, true);
  streams.wait();
  if ((host != 7).any().item<bool>()) return does_not_hold("the copy back is wrong");
  if (!returned_early) return does_not_hold("the copy had ended when the call returned");
  return holds(what + " is_pinned(), and a copy of it returns before it is done");
}

constexpr size_t kSharedBytes = size_t{512} << 20;

Answer pinned_copy(at::Device device) {
  const auto host =
      torch::empty({static_cast<int64_t>(kSharedBytes)}, at::TensorOptions().dtype(at::kByte).pinned_memory(true));
  return copies_asynchronously(host, device, "pinned memory");
}

Answer register_shared_memory(at::Device device) {
  using Register = int (*)(void*, size_t, unsigned);
  using Unregister = int (*)(void*);
  for (const char* vendor : {"cuda", "hip"}) {
    const std::string name = vendor + std::string("HostRegister"), undo = vendor + std::string("HostUnregister");
    const auto add = reinterpret_cast<Register>(::dlsym(RTLD_DEFAULT, name.c_str()));
    const auto remove = reinterpret_cast<Unregister>(::dlsym(RTLD_DEFAULT, undo.c_str()));
    if (!add || !remove) continue;
    const SharedMemory memory(kSharedBytes);
    if (!memory.address())
      return cannot_be_asked(fmt::format("no shared memory of {} MiB: {}", kSharedBytes >> 20, std::strerror(errno)));
    if (const int error = add(memory.address(), kSharedBytes, 0); error != 0)
      return does_not_hold(fmt::format("{} returns {}", name, error));
    const auto host =
        torch::from_blob(memory.address(), {static_cast<int64_t>(kSharedBytes)}, at::TensorOptions().dtype(at::kByte));
    const Answer answer = copies_asynchronously(host, device, name + ": a shared mapping");
    const int error = remove(memory.address());
    return error == 0 ? answer : does_not_hold(fmt::format("{} returns {}", undo, error));
  }
  return does_not_hold("dlsym finds neither cudaHostRegister nor hipHostRegister in this process");
}

Answer refused_registration(at::Device device) {
  constexpr size_t kBytes = 1 << 20;
  const SharedMemory memory(kBytes);
  if (!memory.address()) return cannot_be_asked(fmt::format("no shared memory: {}", std::strerror(errno)));
  const std::span<std::byte> bytes(static_cast<std::byte*>(memory.address()), kBytes);
  if (!pin_host(bytes)) return does_not_hold("the first registration is refused");
  const bool twice = pin_host(bytes).has_value();
  const double sum = torch::ones({8}, device).sum().item<double>();  // a kernel, which throws the error it finds
  unpin_host(bytes);
  if (twice) return does_not_hold("the same memory is registered twice");
  return sum == 8 ? holds("the second registration of the same memory is refused, and a kernel runs after it")
                  : does_not_hold("the kernel after it is wrong");
}

/// The first product is made in forward; its gradient, as large, in backward, on whatever thread that runs.
Answer counted_memory(at::Device device) {
  constexpr int64_t kCount = 1 << 20;
  constexpr double kBytes = 4.0 * kCount;
  const auto x = torch::ones({kCount}, at::TensorOptions().device(device)).requires_grad_();
  const MemoryWatch watch(device);
  const auto y = (x * x).sum();
  const auto forward = watch.use();
  if (!forward) return does_not_hold("no block was reported");
  y.backward();
  const auto backward = watch.use();
  const std::string seen =
      fmt::format("{:.1f} MiB more in forward, {:.1f} MiB in backward; {:.1f} MiB held for it",
                  (forward->peak - forward->before) / (1 << 20), (backward->peak - backward->before) / (1 << 20),
                  backward->reserved_peak / (1 << 20));
  const bool all = forward->peak - forward->before >= kBytes && backward->peak - backward->before >= 2 * kBytes &&
                   backward->reserved_peak >= backward->peak;
  return all ? holds(seen) : does_not_hold(seen);
}

Answer emptied_cache(at::Device device) {
  const auto ops = DeviceOps::open(device);
  if (!ops) return cannot_be_asked(ops.error().message);
  if (!ops->has_cache()) return does_not_hold("this libtorch offers no way to empty it");
  constexpr int64_t kBytes = int64_t{256} << 20;
  (void)torch::ones({kBytes}, bytes_on(device)).sum().item<int64_t>();
  const double before = ops->free_bytes();
  ops->empty_cache();
  const double freed = ops->free_bytes() - before;
  const std::string seen = fmt::format("{:.0f} MiB are free again", freed / (1 << 20));
  return freed >= double(kBytes) ? holds(seen) : does_not_hold(seen);
}

}  // namespace

std::vector<Fact> memory_facts() {
  return {
      {"out of memory", "an allocation that fails throws c10::OutOfMemoryError, and later ones work", out_of_memory},
      {"counted memory", "the allocator reports its blocks to who watches the thread, those of the backward pass, too",
       counted_memory},
      {"emptied cache", "memory that the allocator keeps can be given back to the device", emptied_cache},
      {"generator", "the device's generator can be seeded, kept, set back and cloned", generator},
      {"pinned copy", "a copy between pinned memory and the device returns before it is done", pinned_copy},
      {"registered mapping", "a shared mapping can be registered with the driver and is pinned then",
       register_shared_memory},
      {"refused registration", "a registration that the driver refuses leaves no error to a later kernel",
       refused_registration},
  };
}

}  // namespace remuda::train::facts
