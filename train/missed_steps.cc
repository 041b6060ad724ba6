#include "train/missed_steps.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace remuda::train {
namespace {

/// Of each parameter, in their order in memory: its place among Model::parameters().
std::vector<size_t> places_in(Model& model, const FlatParameters& flat) {
  std::unordered_map<const at::TensorImpl*, size_t> places;
  for (const torch::Tensor& one : model.parameters()) places.emplace(one.unsafeGetTensorImpl(), places.size());
  std::vector<size_t> all;
  for (const torch::Tensor& one : flat.parameters()) all.push_back(places.at(one.unsafeGetTensorImpl()));
  return all;
}

}  // namespace

std::vector<int64_t> missed_steps(const OwnedState& state, const FlatParameters& flat, Model& model) {
  const std::vector<int64_t>& missed = state.counts().missed();
  if (std::ranges::all_of(missed, [](int64_t steps) { return steps == 0; })) return {};
  std::vector<int64_t> by_place(missed.size());
  const std::vector<size_t> places = places_in(model, flat);
  for (size_t i = 0; i < missed.size(); ++i) by_place[places[i]] = missed[i];
  return by_place;
}

void set_missed(OwnedState& state, const FlatParameters& flat, Model& model, const std::vector<int64_t>& missed) {
  std::vector<int64_t> in_memory(flat.parameters().size());
  const std::vector<size_t> places = places_in(model, flat);
  for (size_t i = 0; i < in_memory.size() && !missed.empty(); ++i) in_memory[i] = missed.at(places[i]);
  state.set_missed(std::move(in_memory));
}

}  // namespace remuda::train
