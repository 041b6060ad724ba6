#include "checkpoint/pieces.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>

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
    const std::string path = (std::filesystem::path(folder) / file.name).string();
    REMUDA_ASSIGN(weights::Reader reader, weights::Reader::open(path));
    const size_t rank = pieces.readers_.size();
    for (const weights::TensorInfo& info : reader.header().tensors) {
      pieces.by_name_.emplace(std::pair(rank, info.name), info);
      const auto name = parse_piece_name(info.name);
      if (name && info.shape.size() == 1)
        pieces.places_[{name->kind, name->tensor}].emplace(name->first, Place{rank, info});
    }
    pieces.readers_.push_back(std::move(reader));
  }
  return pieces;
}

const weights::TensorInfo* Pieces::find(size_t rank, const std::string& name) const {
  const auto found = by_name_.find({rank, name});
  return found == by_name_.end() ? nullptr : &found->second;
}

bool Pieces::has(const std::string& kind) const {
  return std::ranges::any_of(places_, [&](const auto& entry) { return entry.first.first == kind; });
}

Result<void> Pieces::read(const std::string& kind, const std::string& tensor, weights::DType type, uint64_t first,
                          std::span<std::byte> to) const {
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
    REMUDA_TRY(readers_[piece.file].read(piece.info, (first - begin) * element, to.first(taken * element)));
    to = to.subspan(taken * element);
    first += taken;
  }
  return {};
}

}  // namespace remuda::checkpoint
