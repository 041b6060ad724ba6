#include "train/model/activation_spill.h"

#include <algorithm>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include "base/clock.h"

namespace remuda::train {
namespace {

constexpr size_t kMostLeaving = 2;  // copies to the host that the device may still be busy with
constexpr int kAhead = 2;           // copies to the device before they are needed
constexpr double kLongestCopy_s = 60;

thread_local ActivationSpill* spill_of_thread = nullptr;

/// Without memory of its own, it has that of `storage`.
torch::Tensor over(const c10::Storage& storage, const torch::TensorOptions& options, at::IntArrayRef sizes,
                   at::IntArrayRef strides, int64_t offset) {
  torch::Tensor tensor = torch::empty({0}, options);
  c10::TensorImpl& it = *tensor.unsafeGetTensorImpl();
  it.set_storage_keep_dtype(storage);
  it.set_sizes_and_strides(sizes, strides);
  it.set_storage_offset(offset);
  return tensor;
}

torch::Tensor bytes_over(const c10::Storage& storage, torch::Device device) {
  const std::array<int64_t, 1> size{int64_t(storage.nbytes())}, stride{1};
  return over(storage, torch::dtype(torch::kByte).device(device), size, stride, 0);
}

const c10::StorageImpl* storage_of(const torch::Tensor& tensor) { return tensor.storage().unsafeGetStorageImpl(); }

}  // namespace

/// A piece of memory that a pass keeps. Owned by what operators have saved of it.
struct ActivationSpill::Item {
  ActivationSpill& spill;
  const size_t index;  ///< in items_
  const c10::weak_intrusive_ptr<c10::StorageImpl> source;
  const uint32_t version;  ///< of the tensors that were saved
  std::unique_ptr<HostRoom> room;
  const size_t bytes;
  torch::Tensor on_device;  ///< while it is there
  Moment stored, fetched;   ///< that the device has not waited for

  torch::Tensor on_host() const { return room->tensor().narrow(0, 0, int64_t(bytes)); }
  ~Item() {
    const std::lock_guard lock(spill.mutex_);
    try {  // others may be given the memory of the device from now on
      spill.wait_for(stored);
      spill.wait_for(fetched);
    } catch (const std::exception&) {
      stored = fetched = {};  // the device is lost
    }
    spill.rooms_.push_back(std::move(room));
  }
};

/// What an operator has saved.
struct ActivationSpill::Saved {
  c10::VariableVersion counter;
  uint32_t version = 0;        ///< it said then
  std::shared_ptr<Item> item;  ///< null: it stays where it is
  torch::Tensor tensor;        ///< then
  torch::TensorOptions options;
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;
};

class ActivationSpill::Hooks : public torch::autograd::SavedVariableHooks {
 public:
  explicit Hooks(ActivationSpill& spill) : spill_(spill) {}
  void call_pack_hook(const at::Tensor& tensor) override { saved_ = spill_.save(tensor); }
  at::Tensor call_unpack_hook() override { return spill_.restore(saved_); }

 private:
  ActivationSpill& spill_;
  Saved saved_;
};

/// libtorch's, with one answer of its own.
class SpillEngine : public torch::autograd::Engine {
 public:
  static Engine& get() {
    static SpillEngine engine;
    return engine;
  }
  ~SpillEngine() override { stop(); }
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    if (!spill_of_thread) return nullptr;
    return std::make_unique<ActivationSpill::Hooks>(*spill_of_thread);
  }
};

ActivationSpill::ActivationSpill(const DeviceOps& ops, size_t least_bytes)
    : ops_(ops), least_bytes_(least_bytes), timer_(DeviceTimer::of(ops.device())) {
  if (!ops_.is_synchronous()) torch::autograd::set_default_engine_stub(&SpillEngine::get);
}

ActivationSpill::~ActivationSpill() = default;

ActivationSpill::Scope::Scope(ActivationSpill* spill, const std::vector<torch::Tensor>& kept) {
  if (!spill || spill->ops_.is_synchronous()) return;
  spill->begin(kept);
  spill_of_thread = spill;
}

ActivationSpill::Scope::~Scope() { spill_of_thread = nullptr; }

void ActivationSpill::begin(const std::vector<torch::Tensor>& kept) {
  const std::lock_guard lock(mutex_);
  rooms_.erase(rooms_.begin(), rooms_.begin() + ptrdiff_t(std::min(least_rooms_, rooms_.size())));
  least_rooms_ = rooms_.size();
  kept_.clear();
  for (const torch::Tensor& one : kept) kept_.insert(storage_of(one));
  items_.clear();
  by_storage_.clear();
  leaving_.clear();
  ++cost_.passes;
}

bool ActivationSpill::moves(const torch::Tensor& tensor) const {
  if (tensor.device() != ops_.device() || tensor.layout() != torch::kStrided || tensor.is_quantized()) return false;
  return !tensor.is_conj() && !tensor.is_neg() && tensor.storage().nbytes() >= least_bytes_ &&
         !kept_.contains(storage_of(tensor));
}

ActivationSpill::Saved ActivationSpill::save(const torch::Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  Saved saved{.counter = torch::autograd::impl::version_counter(tensor), .version = uint32_t(tensor._version())};
  if (!moves(tensor)) {
    // An output itself would keep the operator, which keeps what it saved: a circle.
    saved.tensor = tensor.is_leaf() ? tensor : tensor.detach();
    return saved;
  }
  saved.item = item_of(tensor);
  saved.options = tensor.options().requires_grad(false);
  saved.sizes = tensor.sizes().vec();
  saved.strides = tensor.strides().vec();
  saved.offset = tensor.storage_offset();
  return saved;
}

std::shared_ptr<ActivationSpill::Item> ActivationSpill::item_of(const torch::Tensor& tensor) {
  std::weak_ptr<Item>& known = by_storage_[storage_of(tensor)];
  auto item = known.lock();
  const bool is_it = item && item->version == tensor._version() && item->source.lock().get() == storage_of(tensor);
  if (!is_it) known = item = move_to_host(tensor);
  return item;
}

std::shared_ptr<ActivationSpill::Item> ActivationSpill::move_to_host(const torch::Tensor& tensor) {
  const size_t bytes = tensor.storage().nbytes();
  std::shared_ptr<Item> item(new Item{.spill = *this,
                                      .index = items_.size(),
                                      .source = tensor.storage().getWeakStorageImpl(),
                                      .version = uint32_t(tensor._version()),
                                      .room = take_room(bytes),
                                      .bytes = bytes,
                                      .on_device = bytes_over(tensor.storage(), ops_.device())});
  item->stored = ops_.copy(item->on_host(), item->on_device, ops_.here());
  items_.push_back(item);
  leaving_.push_back(item);
  if (leaving_.size() > kMostLeaving) free_oldest();
  cost_.bytes += double(bytes);
  return item;
}

/// The smallest that fits. A larger one will do, since the devices' shares change all the time.
std::unique_ptr<HostRoom> ActivationSpill::take_room(size_t bytes) {
  const auto bytes_of = [](const auto& room) { return room->tensor().nbytes(); };
  const auto fits = [&](const auto& room) { return bytes_of(room) >= bytes && bytes_of(room) <= 2 * bytes; };
  auto best = std::ranges::find_if(rooms_, fits);
  for (auto room = best; room != rooms_.end(); ++room)
    if (fits(*room) && bytes_of(*room) < bytes_of(*best)) best = room;
  if (best == rooms_.end())
    return std::make_unique<HostRoom>(HostRoom::of_its_own(ops_, bytes + bytes / 8, torch::kByte));
  std::unique_ptr<HostRoom> room = std::move(*best);
  rooms_.erase(best);
  least_rooms_ = std::min(least_rooms_, rooms_.size());
  return room;
}

/// Memory of the device is given to others in the order of its work: so that waits, not this thread.
void ActivationSpill::free_oldest() {
  const auto item = leaving_.front().lock();
  leaving_.pop_front();
  if (!item) return;
  wait_for(item->stored);
  item->on_device = torch::Tensor();
}

torch::Tensor ActivationSpill::restore(const Saved& saved) {
  if (saved.counter.current_version() != saved.version)
    throw std::runtime_error("a tensor that backward() needs was changed in place after an operator had saved it");
  if (!saved.item) return saved.tensor;
  const std::lock_guard lock(mutex_);
  Item& item = *saved.item;
  if (!item.on_device.defined()) fetch(item);
  wait_for(item.fetched);
  fetch_those_before(item.index);
  return over(item.on_device.storage(), saved.options, saved.sizes, saved.strides, saved.offset);
}

void ActivationSpill::fetch(Item& item) const {
  item.on_device = torch::empty({int64_t(item.bytes)}, torch::dtype(torch::kByte).device(ops_.device()));
  item.fetched = ops_.copy(item.on_device, item.on_host(), ops_.here());
}

/// Where there is no room for them yet, they come when they are needed.
void ActivationSpill::fetch_those_before(size_t index) {
  int ahead = 0;
  while (index-- > 0 && ahead < kAhead) {
    const auto item = items_[index].lock();
    if (!item) continue;
    ++ahead;
    if (item->on_device.defined()) continue;
    try {
      fetch(*item);
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) throw;
      return;
    }
  }
}

/// The device does, before what this thread gives it from now on; once.
void ActivationSpill::wait_for(Moment& moment) {
  if (!moment) return;
  const auto from = timer_ ? timer_->mark() : nullptr;
  ops_.after(std::exchange(moment, {}));
  if (timer_) waits_.emplace_back(from, timer_->mark());
}

void ActivationSpill::settle() {
  const std::lock_guard lock(mutex_);
  if (!timer_) return;
  double seconds = cost_.wait_s.value_or(0);
  for (const auto& [from, to] : waits_) seconds += timer_->seconds(from, to);
  waits_.clear();
  cost_.wait_s = seconds;
}

double ActivationSpill::seconds_per_byte() const {
  if (ops_.is_synchronous()) return 0;
  constexpr int64_t kBytes = 16 << 20;
  const HostRoom room = HostRoom::of_its_own(ops_, kBytes, torch::kByte);
  const torch::Tensor on_device = torch::empty({kBytes}, torch::dtype(torch::kByte).device(ops_.device()));
  double best_s = kLongestCopy_s;
  for (int i = 0; i < 3; ++i) {
    const double start = monotonic_s();
    const Moment stored = ops_.copy(room.tensor(), on_device, ops_.here());
    const auto done = ops_.wait(ops_.copy(on_device, room.tensor(), stored), "a copy", kLongestCopy_s);
    if (done) best_s = std::min(best_s, monotonic_s() - start);
  }
  return best_s / double(kBytes);
}

}  // namespace remuda::train
