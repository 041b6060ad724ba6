#include "checkpoint/pieces.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace remuda::checkpoint {

std::string text_of(const PieceName& name) { return fmt::format("{}/{}@{}", name.kind, name.tensor, name.first); }

std::optional<PieceName> parse_piece_name(std::string_view text) {
  const size_t slash = text.find('/'), at = text.rfind('@');
  if (slash == std::string_view::npos || at == std::string_view::npos || at < slash) return std::nullopt;
  PieceName name{std::string(text.substr(0, slash)), std::string(text.substr(slash + 1, at - slash - 1))};
  const std::string_view number = text.substr(at + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), name.first);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  return name;
}

Result<Pieces> Pieces::open(const std::string& folder, const Manifest& manifest) {
  Pieces pieces;
  for (const StoredFile& file : manifest.files) {
    REMUDA_ASSIGN(CheckedFile opened, CheckedFile::open(folder, file, manifest.version));
    const auto data = std::make_shared<const CheckedFile>(std::move(opened));
    const auto read = [data](uint64_t at, std::span<std::byte> to) { return data->read(at, to); };
    REMUDA_ASSIGN(weights::Reader reader, weights::Reader::open(data->path(), data->bytes(), read));
    const size_t rank = pieces.files_.size();
    for (const weights::TensorInfo& info : reader.header().tensors) {
      pieces.by_name_.emplace(std::pair(rank, info.name), info);
      const auto name = parse_piece_name(info.name);
      if (name && info.shape.size() == 1)
        pieces.places_[{name->kind, name->tensor}].emplace(name->first, Place{rank, info});
    }
    pieces.files_.push_back({data, std::move(reader)});
  }
  return pieces;
}

const weights::TensorInfo* Pieces::find(size_t file, const std::string& name) const {
  const auto found = by_name_.find({file, name});
  return found == by_name_.end() ? nullptr : &found->second;
}

bool Pieces::has(const std::string& kind) const {
  return std::ranges::any_of(places_, [&](const auto& entry) { return entry.first.first == kind; });
}

Result<void> Pieces::want(const std::string& kind, const std::string& tensor, weights::DType type, uint64_t first,
                          std::span<std::byte> to) {
  const size_t element = weights::size_of(type);
  const auto known = places_.find({kind, tensor});
  while (!to.empty()) {
    const auto missing = [&] {
      return usage_error(fmt::format("the checkpoint has no element {} of {} of {}", first, kind, printable(tensor)));
    };
    if (known == places_.end()) return missing();
    auto place = known->second.upper_bound(first);
    if (place == known->second.begin()) return missing();
    const auto& [begin, piece] = *--place;
    const uint64_t count = piece.info.shape[0];
    if (first - begin >= count) return missing();
    if (piece.info.type != type)
      return usage_error(fmt::format("{} of {} is {} in the checkpoint, but {} here", kind, printable(tensor),
                                     name_of(piece.info.type), name_of(type)));
    const uint64_t taken = std::min<uint64_t>(count - (first - begin), to.size() / element);
    const auto& [data, reader] = files_[piece.file];
    wanted_.push_back(
        {data.get(), reader.place_of(piece.info) + (first - begin) * element, taken * element, to.data()});
    to = to.subspan(taken * element);
    first += taken;
  }
  return {};
}

void Pieces::want(size_t file, const weights::TensorInfo& tensor, std::span<std::byte> to) {
  REMUDA_CHECK(to.size() == tensor.bytes(), "there is room for all of the tensor");
  wanted_.push_back({files_[file].data.get(), files_[file].reader.place_of(tensor), to.size(), to.data()});
}

void Pieces::want_compared(size_t file, const weights::TensorInfo& tensor) {
  wanted_.push_back({files_[file].data.get(), files_[file].reader.place_of(tensor), tensor.bytes(), nullptr});
}

Result<void> Pieces::fetch() {
  auto fetched = checkpoint::fetch(std::exchange(wanted_, {}));
  is_damaged_ = is_damaged_ || !fetched;
  return fetched;
}

}  // namespace remuda::checkpoint
