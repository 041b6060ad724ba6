#include "route/pattern.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/check.h"

namespace remuda::route {
namespace {

/// All but the first may change places: going around from another rank is the same.
std::vector<size_t> around(size_t ranks) { return {1, ranks - 1}; }

/// One of the 2 (n-1) steps of a ring whose chunks begin at `first`: in the first n-1, chunk i+1 becomes the sum at
/// rank i; in the others that goes around.
void add_ring_step(size_t ranks, size_t number, size_t first, bool backwards, Step& step) {
  for (size_t i = 0; i < ranks; ++i) {
    const size_t next = (i + 1) % ranks, chunk = first + (i + 2 * ranks - number) % ranks;
    step.push_back({.from = backwards ? ranks - 1 - i : i,
                    .to = backwards ? ranks - 1 - next : next,
                    .begin = chunk,
                    .end = chunk + 1,
                    .adds = number < ranks - 1});
  }
}

/// Moves of the whole between the ranks beyond the power of two and the first ones.
Step fold(size_t ranks, size_t chunks, bool adds) {
  const size_t power = std::bit_floor(ranks);
  Step step;
  for (size_t extra = power; extra < ranks; ++extra) {
    const size_t partner = extra - power;
    step.push_back({adds ? extra : partner, adds ? partner : extra, 0, chunks, adds});
  }
  return step;
}

void add_unless_empty(Step step, std::vector<Step>& steps) {
  if (!step.empty()) steps.push_back(std::move(step));
}

/// Exclusive-or with any number maps the exchanges onto themselves, so the first may stay where it is.
std::vector<size_t> hypercube(size_t ranks) {
  return std::has_single_bit(ranks) ? around(ranks) : std::vector<size_t>{ranks};
}

/// What is done on all islands at once, each of them from its first position on.
class IslandSteps {
 public:
  explicit IslandSteps(const std::vector<size_t>& sizes)
      : sizes_(sizes), owners_(*std::ranges::min_element(sizes)), begins_(sizes.size(), 0) {
    std::partial_sum(sizes.begin(), sizes.end() - 1, begins_.begin() + 1);
  }

  size_t chunks() const { return owners_ * sizes_.size(); }

  /// Members give owner number j their part j; or get it from there.
  Step inside(bool adds) const {
    Step step;
    for (size_t island = 0; island < sizes_.size(); ++island)
      for (size_t shift = 1; shift < sizes_[island]; ++shift)
        for (size_t member = 0; member < sizes_[island]; ++member) {
          const size_t other = (member + shift) % sizes_[island], owner = adds ? other : member;
          if (owner < owners_) step.push_back(part_move(island, member, other, owner, adds));
        }
    return step;
  }

  /// A ring's step: member i ends with the sum of part i, and sends that around.
  Step inside_ring(size_t number, bool adds) const {
    Step step;
    for (size_t island = 0; island < sizes_.size(); ++island)
      for (size_t i = 0; i < owners_; ++i) {
        const size_t part = (i + 2 * owners_ - number - (adds ? 1 : 0)) % owners_;
        step.push_back(part_move(island, i, (i + 1) % owners_, part, adds));
      }
    return step;
  }

  /// The owners of a part divide it among the islands.
  Step between(bool adds) const {
    const size_t count = sizes_.size();
    Step step;
    for (size_t shift = 1; shift < count; ++shift)
      for (size_t island = 0; island < count; ++island)
        for (size_t owner = 0; owner < owners_; ++owner) {
          const size_t other = (island + shift) % count, chunk = owner * count + (adds ? other : island);
          step.push_back({begins_[island] + owner, begins_[other] + owner, chunk, chunk + 1, adds});
        }
    return step;
  }

 private:
  Move part_move(size_t island, size_t from, size_t to, size_t part, bool adds) const {
    const size_t count = sizes_.size();
    return {begins_[island] + from, begins_[island] + to, part * count, (part + 1) * count, adds};
  }

  const std::vector<size_t>& sizes_;
  size_t owners_;
  std::vector<size_t> begins_;
};

}  // namespace

Pattern ring(size_t ranks) {
  Pattern pattern{Algorithm::ring, ranks, ranks, {}, around(ranks)};
  for (size_t number = 0; number < 2 * (ranks - 1); ++number)
    add_ring_step(ranks, number, 0, false, pattern.steps.emplace_back());
  return pattern;
}

Pattern two_rings(size_t ranks) {
  Pattern pattern{Algorithm::two_rings, ranks, 2 * ranks, {}, around(ranks)};
  for (size_t number = 0; number < 2 * (ranks - 1); ++number) {
    Step& step = pattern.steps.emplace_back();
    add_ring_step(ranks, number, 0, false, step);
    add_ring_step(ranks, number, ranks, true, step);
  }
  return pattern;
}

Pattern tree(size_t ranks) {
  Pattern pattern{Algorithm::tree, ranks, 1, {}, {ranks}};
  for (size_t distance = 1; distance < ranks; distance *= 2) {
    Step& up = pattern.steps.emplace_back();
    for (size_t parent = 0; parent + distance < ranks; parent += 2 * distance)
      up.push_back({parent + distance, parent, 0, 1, true});
  }
  for (size_t left = pattern.steps.size(); left > 0; --left) {
    Step down = pattern.steps[left - 1];
    for (Move& move : down) move = {move.to, move.from, 0, 1, false};
    pattern.steps.push_back(std::move(down));
  }
  return pattern;
}

Pattern doubling(size_t ranks) {
  Pattern pattern{Algorithm::doubling, ranks, 1, {}, hypercube(ranks)};
  const size_t power = std::bit_floor(ranks);
  add_unless_empty(fold(ranks, 1, true), pattern.steps);
  for (size_t distance = 1; distance < power; distance *= 2) {
    Step& step = pattern.steps.emplace_back();
    for (size_t i = 0; i < power; ++i) step.push_back({i, i ^ distance, 0, 1, true});
  }
  add_unless_empty(fold(ranks, 1, false), pattern.steps);
  return pattern;
}

Pattern halving(size_t ranks) {
  const size_t power = std::bit_floor(ranks);
  Pattern pattern{Algorithm::halving, ranks, power, {}, hypercube(ranks)};
  add_unless_empty(fold(ranks, power, true), pattern.steps);
  for (size_t distance = power / 2; distance > 0; distance /= 2) {
    Step& step = pattern.steps.emplace_back();
    for (size_t i = 0; i < power; ++i) {
      const size_t begin = (i ^ distance) & ~(distance - 1);  // the other's half of the range that both have
      step.push_back({i, i ^ distance, begin, begin + distance, true});
    }
  }
  for (size_t distance = 1; distance < power; distance *= 2) {
    Step& step = pattern.steps.emplace_back();
    for (size_t i = 0; i < power; ++i) {
      const size_t begin = i & ~(distance - 1);
      step.push_back({i, i ^ distance, begin, begin + distance, false});
    }
  }
  add_unless_empty(fold(ranks, power, false), pattern.steps);
  return pattern;
}

Pattern direct(size_t ranks) {
  Pattern pattern{Algorithm::direct, ranks, ranks, {}, std::vector<size_t>(ranks, 1)};
  for (const bool adds : {true, false}) {
    Step& step = pattern.steps.emplace_back();
    for (size_t shift = 1; shift < ranks; ++shift)
      for (size_t from = 0; from < ranks; ++from) {
        const size_t to = (from + shift) % ranks, chunk = adds ? to : from;
        step.push_back({from, to, chunk, chunk + 1, adds});
      }
  }
  return pattern;
}

Pattern islands(const std::vector<size_t>& sizes) {
  REMUDA_CHECK(sizes.size() > 1, "there are several islands");
  const IslandSteps steps(sizes);
  Pattern pattern{Algorithm::islands, std::reduce(sizes.begin(), sizes.end()), steps.chunks(), {}, sizes};
  add_unless_empty(steps.inside(true), pattern.steps);
  pattern.steps.push_back(steps.between(true));
  pattern.steps.push_back(steps.between(false));
  add_unless_empty(steps.inside(false), pattern.steps);
  return pattern;
}

Pattern island_rings(const std::vector<size_t>& sizes) {
  REMUDA_CHECK(sizes.size() > 1 && sizes.front() > 2 && std::ranges::count(sizes, sizes.front()) == std::ssize(sizes),
               "rings go around several islands of one size");
  const IslandSteps steps(sizes);
  Pattern pattern{Algorithm::island_rings, std::reduce(sizes.begin(), sizes.end()), steps.chunks(), {}, sizes};
  for (size_t number = 0; number + 1 < sizes.front(); ++number)
    pattern.steps.push_back(steps.inside_ring(number, true));
  pattern.steps.push_back(steps.between(true));
  pattern.steps.push_back(steps.between(false));
  for (size_t number = 0; number + 1 < sizes.front(); ++number)
    pattern.steps.push_back(steps.inside_ring(number, false));
  return pattern;
}

}  // namespace remuda::route
