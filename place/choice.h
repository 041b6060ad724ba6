// Choice: the best sets for a request, whatever the number of devices. Internal to place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "place/board.h"
#include "place/fit.h"
#include "place/layout.h"
#include "place/request.h"

namespace remuda::place {

/// A set of devices and its standing.
struct Option {
  std::vector<size_t> members;  ///< positions in Chooser::matrix().devices, ascending
  Standing standing;
};

struct Choice {
  std::vector<Option> options;  ///< the best first
  int64_t considered = 0;
  bool exhaustive = true;  ///< every set that satisfies the request was considered
};

/// Works on the devices of one request. All arguments must outlive it.
class Chooser {
 public:
  Chooser(const Layout& layout, const Request& request, const std::vector<Fit>& fits);

  /// The best sets of `count` among the devices that `is_available` says yes to. Exact where at most 16 devices may
  /// make a set together. Of more, the 16 that stand nearest to each device are searched, exactly; for sets of more
  /// than 16, those nearest to each device make one, and the best tree stands for the best ring.
  template <typename IsAvailable>
  Choice choose(int count, IsAvailable is_available) const {
    std::vector<size_t> available;
    for (size_t i = 0; i < fits_.size(); ++i)
      if (fits_[i]->can_come() && is_available(*matrix().devices[i], *fits_[i])) available.push_back(i);
    return choose(count, available);
  }

  /// Every device that could come into question now or later, and at least those that stay free beside them where they
  /// fit on one board.
  const topology::Matrix& matrix() const { return *matrix_; }
  const Fit& fit(size_t position) const { return *fits_[position]; }
  /// The best ring of a set by links that the request allows; nothing for fewer than two devices, for more than 16 and
  /// where there is none.
  std::optional<topology::Ring> ring(const std::vector<size_t>& members) const;
  /// Devices that nobody holds and that are not members.
  std::vector<size_t> left(const std::vector<size_t>& members) const;
  /// Best pair and four among them, as positions; nothing for more than 16 and where links are not known.
  struct Best {
    std::vector<size_t> members;
    double gbps = 0;
  };
  std::optional<Best> best_pair(const std::vector<size_t>& devices) const;
  std::optional<Best> best_four(const std::vector<size_t>& devices) const;

 private:
  using Positions = std::vector<size_t>;

  Choice choose(int count, const Positions& available) const;
  std::vector<Positions> families(const Positions& available) const;
  Board board(const Positions& members) const;
  topology::Speeds speeds_among(const Positions& members, const topology::Speeds& speeds) const;
  void search_board(const Positions& members, const Positions& family, int count, Choice& choice) const;
  void search_pools(const Positions& family, int count, Choice& choice) const;
  void search_grown(const Positions& family, int count, Choice& choice) const;
  Positions nearest(size_t seed, const Positions& family, size_t count) const;
  bool mixes_models() const { return request_.any_model || request_.is_static(); }

  const Layout& layout_;
  const Request& request_;
  std::vector<const Fit*> fits_;  ///< by position
  topology::Matrix own_matrix_;   ///< unless the layout's serves
  const topology::Matrix* matrix_;
  topology::Speeds speeds_;  ///< of links that the request allows
  struct Keys {
    std::string model, numa, root;  ///< equal where devices are alike, or stand together
  };
  std::vector<Keys> keys_;  ///< by position
  std::optional<topology::RingTable> own_rings_;
  const topology::RingTable* rings_ =
      nullptr;  ///< over all devices of the matrix; null where they are too many or count is 1
};

}  // namespace remuda::place
