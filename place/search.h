// Search: the best sets of devices for a request, whatever the number of devices. Internal to place.
#pragma once

#include <optional>
#include <vector>

#include "place/candidate.h"
#include "place/exact_search.h"
#include "place/kind.h"
#include "place/layout.h"
#include "place/request.h"
#include "place/score.h"

namespace remuda::place {

/// Works on the devices of one request. All arguments must outlive it.
class Search {
 public:
  using Positions = std::vector<size_t>;  ///< in matrix().devices, ascending

  Search(const Layout& layout, const Request& request, const std::vector<Candidate>& candidates);

  /// The best sets of `count` among the devices for which `is_available` is true. Exact where at most 16 devices may
  /// make a set together. With more, the 16 nearest to each device are searched, exactly; for sets of more than 16,
  /// those nearest to each device make one, and the best tree is used in place of the best ring.
  template <typename IsAvailable>
  BestSets best_sets(int count, IsAvailable is_available) const {
    return best_sets_of(count, available(is_available));
  }
  /// Whether there is any set; much cheaper where no link is asked for.
  template <typename IsAvailable>
  bool has_set(int count, IsAvailable is_available) const {
    return has_set_of(count, available(is_available));
  }

  /// Every device that could be used now or later; and, where they are at most 16 together, also those that stay free.
  const topology::Matrix& matrix() const { return *matrix_; }
  const Device& device(size_t position) const { return *matrix_->devices[position]; }
  /// The best ring of a set by links that the request allows; nothing for fewer than two devices, for more than 16 and
  /// where there is none.
  std::optional<topology::Ring> ring(const Positions& members) const;
  /// Devices that are not held and are not members.
  Positions left(const Positions& members) const;
  /// Best pair and four among them; nothing for more than 16 and where links are not known.
  struct Group {
    Positions members;
    double gbps = 0;
  };
  std::optional<Group> best_pair(const Positions& devices) const;
  std::optional<Group> best_four(const Positions& devices) const;

 private:
  using Mask = ExactSearch::Mask;

  template <typename IsAvailable>
  Positions available(IsAvailable is_available) const {
    Positions positions;
    for (size_t i = 0; i < candidates_.size(); ++i)
      if (candidate(i).can_come() && is_available(candidate(i))) positions.push_back(i);
    return positions;
  }
  const Candidate& candidate(size_t position) const { return *candidates_[position]; }
  bool mixes_models() const { return request_.any_model || request_.is_static(); }
  using BestGroup = std::optional<Remainder::Group> (Remainder::*)(Mask) const;
  std::optional<Group> best_group(const Positions& devices, BestGroup best) const;
  BestSets best_sets_of(int count, const Positions& available) const;
  bool has_set_of(int count, const Positions& available) const;
  std::vector<Positions> families(const Positions& available) const;

  /// Over all devices of the matrix; null where they are too many.
  const ExactSearch* exact() const;
  /// Likewise, and null for requests of fewer than two.
  const topology::RingTable* rings() const;
  ExactSearch exact_search_of(const Positions& members) const;
  topology::Speeds speeds_among(const Positions& members) const;
  topology::Speeds free_speeds_among(const Positions& members) const;
  ExactSearch::Wanted wanted(int count, Mask among) const;

  void search_few(const Positions& family, int count, BestSets& best) const;
  void search_pools(const Positions& family, int count, BestSets& best) const;
  void search_grown(const Positions& family, int count, BestSets& best) const;
  Positions nearest(size_t seed, const Positions& family, size_t count) const;
  Score score_by_tree(const Positions& members, const std::optional<topology::Bottleneck>& tree) const;

  const Layout& layout_;
  const Request& request_;
  std::vector<const Candidate*> candidates_;  ///< by position
  topology::Matrix own_matrix_;               ///< where the layout's cannot be used
  const topology::Matrix* matrix_;
  topology::Speeds speeds_;   ///< of links that the request allows
  std::vector<Kind> kinds_;   ///< by position
  bool all_are_gpus_ = true;  ///< that can come, and the matrix is the layout's
  // Made when first asked for: most requests in a full queue are refused by counting.
  mutable std::optional<ExactSearch> exact_;
  mutable std::optional<topology::RingTable> own_rings_;
};

}  // namespace remuda::place
