// What remuda takes for granted of libtorch on an accelerator, as questions that can be put to one.
#pragma once

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <string>
#include <torch/torch.h>
#include <vector>

namespace remuda::train::facts {

struct Answer {
  enum class Kind { holds, does_not_hold, cannot_be_asked };
  Kind kind = Kind::holds;
  std::string seen;  ///< what was seen, or why it could not be asked
};

inline Answer holds(std::string seen) { return {Answer::Kind::holds, std::move(seen)}; }
inline Answer does_not_hold(std::string seen) { return {Answer::Kind::does_not_hold, std::move(seen)}; }
inline Answer cannot_be_asked(std::string why) { return {Answer::Kind::cannot_be_asked, std::move(why)}; }

struct Fact {
  const char* name;
  const char* claim;
  Answer (*ask)(at::Device device);  ///< what it throws is seen as a fact that does not hold
};

/// Hooks, their threads and streams, and autocast.
std::vector<Fact> backward_facts();
/// Streams, events and the blocks of memory that pass between streams.
std::vector<Fact> stream_facts();
/// Memory of the device and of the host, and the generator.
std::vector<Fact> memory_facts();
/// The handles of streams, and the library of collectives.
std::vector<Fact> collectives_facts();

/// A device's streams through the interface that all vendors share.
class Streams {
 public:
  explicit Streams(at::Device device) : device_(device), guard_(device.type()) {}

  c10::Stream current() const { return guard_.getStream(device_); }
  c10::Stream another() const { return guard_.getStreamFromGlobalPool(device_); }
  void wait(const c10::Stream& stream) const { guard_.synchronizeStream(stream); }
  void wait() const { wait(current()); }
  bool idle(const c10::Stream& stream) const { return guard_.queryStream(stream); }
  void used_on(const torch::Tensor& tensor, const c10::Stream& stream) const {
    guard_.recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
  }

 private:
  at::Device device_;
  c10::impl::VirtualGuardImpl guard_;
};

/// Work for the current stream that takes tens of milliseconds on a fast device, and returns long before it is done.
class Work {
 public:
  explicit Work(at::Device device);
  /// Gives its last result, so that what is added to it comes after the work.
  torch::Tensor queue() const;

 private:
  torch::Tensor matrix_;
};

}  // namespace remuda::train::facts
