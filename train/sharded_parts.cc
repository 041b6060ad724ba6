#include "train/sharded_parts.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/clock.h"
#include "profile/recorder.h"
#include "train/labels.h"
#include "train/sum_of_squares.h"

namespace remuda::train {
namespace {

profile::Details block_details(size_t block, size_t bytes) {
  return {{{"block", int64_t(block)}, {"bytes", int64_t(bytes)}}};
}

size_t largest_block(const FlatLayout& layout) {
  size_t largest = 0;
  for (size_t block = 0; block < layout.blocks(); ++block)
    largest = std::max(largest, layout.bucket(layout.bucket_of_block(block)).size());
  return largest;
}

size_t owned_of_blocks(const FlatLayout& layout, int rank) {
  size_t sum = 0;
  for (size_t block = 0; block < layout.blocks(); ++block)
    sum += layout.own(layout.bucket_of_block(block), rank).size();
  return sum;
}

}  // namespace

Result<std::unique_ptr<ShardedParts>> ShardedParts::create(comm::Communicator& communicator, const DeviceOps& ops,
                                                           const FlatLayout& layout,
                                                           const std::vector<std::vector<torch::Tensor>>& blocks,
                                                           UpdatesOn updates_on) {
  const torch::ScalarType type = blocks.at(0).at(0).scalar_type();
  const size_t largest = largest_block(layout);
  std::vector<HostRoom> rooms;
  rooms.reserve(2 * kRooms);
  for (size_t i = 0; i < 2 * kRooms; ++i) {
    REMUDA_ASSIGN(HostRoom room, HostRoom::create(communicator, ops, largest, type));
    rooms.push_back(std::move(room));
  }
  std::unique_ptr<ShardedParts> parts(new ShardedParts(communicator, ops, layout, std::move(rooms), type));
  REMUDA_TRY(parts->take_over(blocks));
  for (size_t block = 0; block < blocks.size(); ++block) REMUDA_TRY(parts->fill(block, 0, {}, {}, false));
  parts->trial_cost_ = std::exchange(parts->cost_, {});
  if (ops.is_synchronous() || updates_on == UpdatesOn::host) return parts;
  parts->values_ = parts->image_.tensor().to(ops.device());
  parts->sums_ = torch::zeros_like(parts->values_);
  return parts;
}

ShardedParts::ShardedParts(comm::Communicator& communicator, const DeviceOps& ops, const FlatLayout& layout,
                           std::vector<HostRoom> rooms, torch::ScalarType type)
    : communicator_(communicator),
      ops_(ops),
      layout_(layout),
      rank_(communicator.rank()),
      rooms_(std::move(rooms)),
      image_(HostRoom::of_its_own(ops, owned_of_blocks(layout, rank_), type)),
      sums_on_host_(HostRoom::of_its_own(ops, owned_of_blocks(layout, rank_), type)) {
  values_ = image_.tensor();
  sums_ = sums_on_host_.tensor();
  for (size_t block = 0; block < layout.blocks(); ++block) {
    const size_t begin = own_.empty() ? 0 : own_.back().end;
    own_.push_back({begin, begin + part(block).size()});
  }
}

/// Collective.
Result<void> ShardedParts::take_over(const std::vector<std::vector<torch::Tensor>>& blocks) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor& room = room_for_values(0);
  for (size_t block = 0; block < blocks.size(); ++block) {
    const size_t count = layout_.bucket(layout_.bucket_of_block(block)).size();
    const std::vector<size_t> offsets = layout_.offsets_in_block(block);
    if (rank_ == 0) {
      torch::Tensor(room).zero_();
      for (size_t i = 0; i < offsets.size(); ++i) {
        const torch::Tensor& parameter = blocks[block][i];
        const comm::Chunk range{offsets[i], offsets[i] + size_t(parameter.numel())};
        narrow(room, range).view(parameter.sizes()).copy_(parameter);
      }
    }
    const std::span<std::byte> bytes = rooms_[0].bytes().first(count * room.element_size());
    REMUDA_TRY(communicator_.broadcast(bytes, 0, label::kValues));
    narrow(image_.tensor(), own_[block]).copy_(narrow(room, part(block)));
    blocks_.emplace_back(blocks[block], offsets, count, ops_.device());
  }
  return {};
}

void ShardedParts::take_sums() {
  if (!is_on_host()) ops_.after(ops_.copy(sums_, sums_on_host_.tensor(), {}));
}

void ShardedParts::give_values() {
  if (!is_on_host()) given_ = ops_.copy(image_.tensor(), values_, ops_.here());
}

torch::Tensor ShardedParts::value_memory(size_t block, size_t room) const {
  const auto count = int64_t(blocks_[block].extent());
  if (ops_.is_synchronous()) return room_for_values(room).narrow(0, 0, count);
  return torch::empty({count}, room_for_values(room).options().device(ops_.device()));
}

torch::Tensor ShardedParts::gradient_memory(size_t block, size_t room) const {
  const auto count = int64_t(blocks_[block].extent());
  if (ops_.is_synchronous()) return room_for_gradients(room).narrow(0, 0, count).zero_();
  return torch::zeros({count}, room_for_gradients(room).options().device(ops_.device()));
}

Moment ShardedParts::give_gradients(size_t block, size_t room, const torch::Tensor& memory, double loss_scale) const {
  const torch::NoGradGuard no_grad;
  if (loss_scale != 1) torch::Tensor(memory).mul_(1 / loss_scale);
  if (ops_.is_synchronous()) return {};
  const comm::Chunk all{0, blocks_[block].extent()};
  return ops_.copy(narrow(room_for_gradients(room), all), memory, ops_.here());
}

Result<Moment> ShardedParts::fill(size_t block, size_t room, const torch::Tensor& memory, const Moment& since,
                                  bool alone) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor host = in_room(block, room);
  const profile::Span span("gather", block_details(block, host.nbytes()));
  REMUDA_TRY(ops_.wait(copied_[room], fmt::format("the copy of a block before block {}", block), timeout_s_));
  REMUDA_TRY(ops_.wait(std::exchange(given_, {}), "the copy of its own values", timeout_s_));
  const comm::Chunk own = part(block);
  narrow(host, own).copy_(narrow(image_.tensor(), own_[block]));
  if (!alone) {
    const double start = monotonic_s();
    const size_t bucket = layout_.bucket_of_block(block), element = size_t(host.element_size());
    REMUDA_TRY(communicator_.gather_parts(rooms_[room].bytes().first(host.nbytes()),
                                          layout_.parts(bucket).in_bytes(element), uint32_t(bucket)));
    cost_.seconds += monotonic_s() - start;
    cost_.bytes += double((size_t(host.numel()) - own.size()) * element);
  }
  if (!memory.defined() || ops_.is_synchronous()) return Moment();
  copied_[room] = ops_.copy(memory, host, since);
  return copied_[room];
}

Result<void> ShardedParts::add_up(size_t block, size_t room, const Moment& given, bool is_empty, bool is_first) {
  const torch::NoGradGuard no_grad;
  const comm::Chunk all{0, blocks_[block].extent()}, own = part(block);
  const torch::Tensor& gradients = room_for_gradients(room);
  const profile::Span span("reduce_scatter", block_details(block, all.size() * size_t(gradients.element_size())));
  REMUDA_TRY(ops_.wait(given, fmt::format("the copy of gradients (block {})", block), timeout_s_));
  if (is_empty) narrow(gradients, all).zero_();
  const size_t bucket = layout_.bucket_of_block(block);
  const comm::Values sum = is_first ? values_of(sums_on_host_.tensor(), own_[block]) : values_of(gradients, own);
  REMUDA_TRY(communicator_.reduce_scatter(values_of(gradients, all), layout_.parts(bucket), sum, uint32_t(bucket)));
  if (!is_first) narrow(sums_on_host_.tensor(), own_[block]).add_(narrow(gradients, own));
  return {};
}

double ShardedParts::square_norm() const {
  double sum = 0;
  const torch::Tensor& sums = sums_on_host_.tensor();
  AT_DISPATCH_FLOATING_TYPES(sums.scalar_type(), "square_norm", [&] {
    sum = sum_of_squares(std::span<const scalar_t>(sums.data_ptr<scalar_t>(), size_t(sums.numel())));
  });
  return sum;
}

torch::Tensor ShardedParts::in_room(size_t block, size_t room) const {
  return room_for_values(room).narrow(0, 0, int64_t(blocks_[block].extent()));
}

double ShardedParts::bytes_per_pass() const {
  double bytes = 0;
  for (size_t block = 0; block < blocks(); ++block) {
    const size_t others = blocks_[block].extent() - part(block).size();
    const int times = block + 1 == blocks() ? 1 : 2;  // the last one stays for the backward pass
    bytes += double(times) * double(others * size_t(values_.element_size()));
  }
  return bytes;
}

size_t ShardedParts::largest_block_bytes() const { return largest_block(layout_) * size_t(values_.element_size()); }

size_t ShardedParts::room_bytes() const {
  size_t bytes = 0;
  for (const HostRoom& room : rooms_) bytes += room.bytes().size();
  return bytes;
}

}  // namespace remuda::train
