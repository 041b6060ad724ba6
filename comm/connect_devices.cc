#include "comm/connect_devices.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <span>
#include <vector>

#include "comm/hosts.h"
#include "comm/nccl/factory.h"

namespace remuda::comm {
namespace {

/// Labels that no bucket and no other call has.
enum : uint32_t { kRankDevices = 1u << 30, kId, kMade, kJoined };

/// Text that all ranks send in one size; what does not fit is cut.
template <size_t kSize>
using Text = std::array<char, kSize>;

template <size_t kSize>
void set(Text<kSize>& text, const std::string& value) {
  value.copy(text.data(), kSize - 1);
}

template <size_t kSize>
std::string get(const Text<kSize>& text) {
  return {text.data(), ::strnlen(text.data(), kSize)};
}

/// What a rank says of itself before the ranks' devices are joined.
struct RankDevice {
  Text<32> kind{}, maker{}, library{};
  Text<64> address{};
  Text<96> host{};
  Text<256> missing{};  ///< why it has no library
};

template <typename T>
Result<std::vector<T>> exchange(Communicator& communicator, const T& mine, uint32_t label) {
  std::vector<T> all(size_t(communicator.size()));
  REMUDA_TRY(
      communicator.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), label));
  return all;
}

std::string on_device(const std::vector<RankDevice>& all, size_t rank) {
  const std::string maker = get(all[rank].maker);
  return fmt::format("rank {} is on a {} device", rank, maker.empty() ? get(all[rank].kind) : maker);
}

/// The first rank whose value is not that of rank 0; 0: there is none.
template <typename Field>
size_t first_other(const std::vector<RankDevice>& all, Field field) {
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank].*field != all[0].*field) return rank;
  return 0;
}

/// Two ranks on one device, as a sentence; empty: there are none.
std::string shared_device(const std::vector<RankDevice>& all) {
  std::map<std::pair<std::string, std::string>, size_t> seen;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const auto [other, is_new] = seen.emplace(std::pair(get(all[rank].host), get(all[rank].address)), rank);
    if (!is_new) return fmt::format("ranks {} and {} share the device {}", other->second, rank, get(all[rank].address));
  }
  return "";
}

/// Why these ranks cannot be joined; empty: they can. The same on all ranks.
std::string obstacle(const std::vector<RankDevice>& all) {
  if (all.size() == 1) return "there is only one rank";
  if (const size_t other = first_other(all, &RankDevice::maker))
    return fmt::format("{}, {}", on_device(all, 0), on_device(all, other));
  if (get(all[0].maker).empty())
    return fmt::format("{}, for which there is no library of collectives", on_device(all, 0));
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (const std::string missing = get(all[rank].missing); !missing.empty())
      return fmt::format("rank {}: {}", rank, missing);
  if (const size_t other = first_other(all, &RankDevice::library))
    return fmt::format("rank 0 has {}, rank {} has {}; they must be the same", get(all[0].library), other,
                       get(all[other].library));
  return shared_device(all);
}

RankDevice describe_rank(const DevicePlace& place, const Result<std::unique_ptr<nccl::Library>>& library) {
  RankDevice mine;
  set(mine.kind, place.kind);
  set(mine.maker, place.maker);
  set(mine.address, place.address);
  set(mine.host, place.host.empty() ? this_host() : place.host);
  if (library)
    set(mine.library, (*library)->name());
  else
    set(mine.missing, library.error().message);
  return mine;
}

Result<std::unique_ptr<nccl::Library>> find_library(const DeviceCollectivesOptions& options) {
  if (options.place.maker.empty()) return failed("there is no library of collectives for its device");
  return nccl::find(options.place.maker, options.folders);
}

OpenedCollectives without(std::string why_not) { return {nullptr, std::move(why_not)}; }

}  // namespace

Result<std::string> first_error(Communicator& communicator, const Result<void>& mine, uint32_t label) {
  Text<512> message{};
  if (!mine) set(message, mine.error().message);
  REMUDA_ASSIGN(const auto all, exchange(communicator, message, label));
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (const std::string text = get(all[rank]); !text.empty()) return fmt::format("rank {}: {}", rank, text);
  return std::string();
}

Result<OpenedCollectives> open_device_collectives(Communicator& communicator, const DeviceCollectivesOptions& options) {
  const auto library = find_library(options);
  REMUDA_ASSIGN(const auto all, exchange(communicator, describe_rank(options.place, library), kRankDevices));
  if (std::string why = obstacle(all); !why.empty()) return without(std::move(why));

  const bool first = communicator.rank() == 0;
  const Result<nccl::Id> made = first ? (*library)->make_id() : nccl::Id{};
  REMUDA_ASSIGN(std::string refusal, first_error(communicator, made.map([](const nccl::Id&) {}), kMade));
  if (!refusal.empty()) return without(std::move(refusal));
  nccl::Id id = *made;
  REMUDA_TRY(communicator.broadcast(std::as_writable_bytes(std::span(id)), 0, kId));

  auto joined = (*library)->join(id, communicator.rank(), communicator.size(), options.connect_timeout_s);
  const Result<void> outcome = joined ? Result<void>() : tl::unexpected(joined.error());
  REMUDA_ASSIGN(refusal, first_error(communicator, outcome, kJoined));
  if (!refusal.empty()) return without(std::move(refusal));
  return OpenedCollectives{std::move(*joined), ""};
}

}  // namespace remuda::comm
