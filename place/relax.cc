#include "place/relax.h"

#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <utility>

namespace remuda::place {
namespace {

constexpr int64_t kMiB = 1 << 20, kGiB = 1 << 30;

class Relaxing {
 public:
  Relaxing(const Request& request, const std::function<bool(const Request&)>& is_met)
      : request_(request), is_met_(is_met) {}

  std::vector<Relaxation> run() {
    fewer();
    less_memory("--mem", &Request::memory_bytes);
    looser_link();
    if (request_.count > 1 && !request_.any_model && !request_.is_static())
      offer("with --any-model", [](Request& less) { less.any_model = true; });
    if (!request_.model.empty()) offer("without --model", [](Request& less) { less.model.clear(); });
    if (request_.capability) offer("without --cap", [](Request& less) { less.capability.reset(); });
    if (request_.where) offer("without --where", [](Request& less) { less.where.reset(); });
    if (!request_.devices.empty()) offer("without --device", [](Request& less) { less.devices.clear(); });
    smaller_part();
    fewer_cores();
    less_memory("--host-mem", &Request::host_memory_bytes);
    return std::move(found_);
  }

 private:
  template <typename Change>
  bool offer(std::string text, const Change& change) {
    Request less = request_;
    change(less);
    if (!is_met_(less)) return false;
    found_.push_back({std::move(text), std::move(less)});
    return true;
  }

  /// The most of `least` to `below` - 1 with which it is met, by halving; nothing where it is not even with the least.
  template <typename Change>
  std::optional<int64_t> most(int64_t least, int64_t below, const Change& change) {
    const auto met_with = [&](int64_t amount) {
      Request less = request_;
      change(less, amount);
      return is_met_(less);
    };
    if (below <= least || !met_with(least)) return std::nullopt;
    while (below - least > 1) {
      const int64_t middle = least + (below - least) / 2;
      (met_with(middle) ? least : below) = middle;
    }
    return least;
  }

  void add(std::string text, Request less) { found_.push_back({std::move(text), std::move(less)}); }

  void fewer() {
    if (request_.is_static()) return;  // each of them is named
    const auto count = most(1, request_.count, [](Request& less, int64_t n) { less.count = static_cast<int>(n); });
    if (!count) return;
    Request less = request_;
    less.count = static_cast<int>(*count);
    add(fmt::format("with -n {}", *count), std::move(less));
  }

  void less_memory(const char* flag, int64_t Request::* bytes) {
    const int64_t unit = request_.*bytes > kGiB ? kGiB : kMiB;
    const int64_t below = (request_.*bytes + unit - 1) / unit;
    const auto units = most(0, below, [&](Request& less, int64_t n) { less.*bytes = n * unit; });
    if (!units) return;
    Request less = request_;
    less.*bytes = *units * unit;
    add(*units == 0 ? fmt::format("without {}", flag)
                    : fmt::format("with {} {}{}", flag, *units, unit == kGiB ? "GiB" : "MiB"),
        std::move(less));
  }

  void looser_link() {
    const auto with = [&](LinkNeed need) {
      return offer(fmt::format("with --link {}", to_string(need)), [&](Request& less) { less.link = need; });
    };
    if (request_.link == LinkNeed::nvlink && with(LinkNeed::p2p)) return;
    if (request_.link != LinkNeed::any) with(LinkNeed::any);
  }

  void smaller_part() {
    if (request_.share >= 1) return;  // whoever wants the whole of a device has no use for others on it
    constexpr int kSteps = 20;
    const auto below = static_cast<int64_t>(std::ceil(request_.share * kSteps - 1e-9));
    const auto set = [](Request& less, int64_t n) { less.share = static_cast<double>(n) / kSteps; };
    const auto part = most(1, below, set);
    if (!part) return;
    Request less = request_;
    set(less, *part);
    add(fmt::format("with --share {}%", *part * 100 / kSteps), std::move(less));
  }

  void fewer_cores() {
    const auto cores = most(0, request_.cores, [](Request& less, int64_t n) { less.cores = static_cast<int>(n); });
    if (!cores) return;
    Request less = request_;
    less.cores = static_cast<int>(*cores);
    add(*cores == 0 ? "without --cpus" : fmt::format("with --cpus {}", *cores), std::move(less));
  }

  const Request& request_;
  const std::function<bool(const Request&)>& is_met_;
  std::vector<Relaxation> found_;
};

}  // namespace

std::vector<Relaxation> relaxations(const Request& request, const std::function<bool(const Request&)>& is_met) {
  return Relaxing(request, is_met).run();
}

}  // namespace remuda::place
