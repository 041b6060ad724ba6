#include "train/parameter_steps.h"

#include <algorithm>

#include "base/check.h"

namespace remuda::train {

ParameterSteps::ParameterSteps(const FlatLayout& layout)
    : layout_(&layout), missed_(layout.parameters()), used_(missed_.size(), 1) {}

void ParameterSteps::begin(const std::vector<char>& used) {
  REMUDA_CHECK(used.empty() || used.size() == missed_.size(), "each parameter was used, or not");
  ++steps_;
  used_ = used;
  if (used_.empty()) used_.assign(missed_.size(), 1);
  for (size_t i = 0; i < missed_.size(); ++i)
    if (!used_[i]) ++missed_[i];
}

std::vector<ParameterSteps::Run> ParameterSteps::runs(size_t bucket, int rank) const {
  std::vector<Run> runs;
  for (const Piece& piece : layout_->pieces(bucket, rank)) {
    const size_t pieces_begin = runs.size();
    for (size_t i = layout_->parameter_at(piece.range.begin);
         i < missed_.size() && layout_->offset(i) < piece.range.end; ++i) {
      const size_t end = layout_->offset(i) + layout_->size(i);
      const comm::Chunk range{std::max(piece.range.begin, layout_->offset(i)), std::min(piece.range.end, end)};
      const int64_t step = used_[i] ? of(i) : 0;
      if (range.begin >= range.end) continue;
      if (runs.size() > pieces_begin && runs.back().step == step)
        runs.back().range.end = range.end;
      else
        runs.push_back({{range, piece.group}, step});
    }
  }
  return runs;
}

std::vector<comm::Chunk> ParameterSteps::idle() const {
  std::vector<comm::Chunk> ranges;
  for (size_t i = 0; i < used_.size(); ++i)
    if (!used_[i]) ranges.push_back({layout_->offset(i), layout_->offset(i) + layout_->size(i)});
  return ranges;
}

}  // namespace remuda::train
