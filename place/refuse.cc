#include "place/refuse.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>

#include "base/quantity.h"
#include "base/text.h"
#include "place/explain.h"
#include "place/glob.h"
#include "place/health.h"

namespace remuda::place {
namespace {

using State = Candidate::State;

bool is_anything(const Candidate&) { return true; }

class Refuser {
 public:
  Refuser(const Inventory& inventory, const Request& request, const std::vector<Candidate>& candidates,
          const Search& search, std::span<const Held> held)
      : inventory_(inventory), request_(request), search_(search), held_(held) {
    for (const Candidate& one : candidates) {
      if (one.state == State::not_asked) continue;
      asked_.push_back(&one);
      only_gpus_ = only_gpus_ && one.device->kind == DeviceKind::gpu;
      if (one.can_come()) come_.push_back(&one);
      if (!one.unknown.empty()) ++unknown_;
      free_ += one.state == State::free;
      knows_all_ = knows_all_ && !(one.state == State::unwell && is_unknown(*one.device));
    }
  }

  Refusal refuse() const {
    const bool can_be = !unseen_.empty() || (!knows_all_ && come_.size() >= count());
    Refusal refusal{.never = !can_be && !search_.has_set(request_.count, is_anything)};
    if (refusal.never) {
      refusal.sentence = never();
    } else {
      refusal.sentence = may_be_unseen() ? unseen() : not_now();
      refusal.blockers = blockers();
      refusal.earliest_s = earliest();
    }
    return refusal;
  }

 private:
  std::string noun(size_t count) const {
    return fmt::format("{}{}", only_gpus_ ? "GPU" : "device", count == 1 ? "" : "s");
  }
  std::string wanted() const { return fmt::format("{} {} wanted", request_.count, request_.count == 1 ? "is" : "are"); }
  size_t count() const { return static_cast<size_t>(request_.count); }

  /// Whether only devices that cannot be seen could be what is wanted.
  bool may_be_unseen() const { return !unseen_.empty() && !search_.has_set(request_.count, is_anything); }

  std::string unseen() const {
    if (asked_.empty())
      return fmt::format("no GPU of {} can be seen ({}); {}{}", host(), unseen_, wanted(), cpu_hint());
    return fmt::format("{}; others may be there that cannot be seen ({})", never(), unseen_);
  }

  std::string never() const {
    if (asked_.empty()) return fmt::format("there is no GPU on {}; {}{}", host(), wanted(), cpu_hint());
    if (come_.size() < count()) return too_few();
    if (const size_t most = most_of_one_model(); most < count())
      return fmt::format("the {} {} that suit are of unlike models, at most {} of one; {} (--any-model allows a mix)",
                         come_.size(), noun(come_.size()), most, wanted());
    return not_linked();
  }

  std::string host() const { return inventory_.host.empty() ? "this machine" : printable(inventory_.host); }

  std::string cpu_hint() const {
    size_t devices = 0, cores = 0;
    for (const Device& device : inventory_.devices) {
      if (device.kind != DeviceKind::cpu) continue;
      ++devices;
      cores += device.cores.value_or({}).size();
    }
    if (devices > 0 && !request_.cpu) return " (--cpu allows CPU devices)";
    const size_t needed = devices + count() - come_.size();
    const bool can_split = request_.cpu && inventory_.source == Inventory::kLive && needed <= cores;
    return can_split ? fmt::format(" (--cpu-devices {} splits the CPU into so many)", needed) : "";
  }

  std::string too_few() const {
    if (asked_.size() == 1 && come_.empty())
      return fmt::format("the only {}, {}, {}; {}", noun(1), asked_[0]->device->label(), asked_[0]->reason, wanted());
    if (come_.size() == asked_.size())
      return fmt::format("there {} {} {} on {}; {}{}", asked_.size() == 1 ? "is" : "are", asked_.size(),
                         noun(asked_.size()), host(), wanted(), cpu_hint());
    const std::string conditions = conditions_text(request_, come_.size() > 1);
    const std::string how_many = come_.empty() ? "none" : std::to_string(come_.size());
    if (unknown_ == 0)
      return fmt::format("{} of the {} {} {}{}; {}", how_many, asked_.size(), noun(asked_.size()), conditions,
                         nearest_miss(), wanted());
    const auto things = unknown_things();
    const std::string list = fmt::format("{}", fmt::join(things, " and "));
    const char* are = things.size() > 1 ? "are" : "is";
    if (unknown_ == asked_.size())
      return fmt::format("the {} of the {} {} {} not recorded, so it is not known whether any {}; {}", list, unknown_,
                         noun(unknown_), are, conditions, wanted());
    return fmt::format("{} of the {} {} {}{}, and the {} of {} {} not recorded; {}", how_many, asked_.size() - unknown_,
                       noun(asked_.size() - unknown_) + " whose " + list + " " + are + " recorded", conditions,
                       nearest_miss(), list, unknown_, are, wanted());
  }

  /// The readings that are missing to decide: "memory", "numaNode".
  std::set<std::string> unknown_things() const {
    std::set<std::string> things;
    for (const Candidate* one : asked_) things.insert(one->unknown.begin(), one->unknown.end());
    return things;
  }

  /// "; '*a6000*' is one of them", where the text is a part of a model's name.
  std::string wider_pattern(const std::set<std::string>& models) const {
    const std::string wider = "*" + request_.model + "*";
    const bool matches = std::ranges::any_of(models, [&](const std::string& m) { return glob_matches(wider, m); });
    return matches ? fmt::format("; '{}' would be one of them", printable(wider)) : "";
  }

  /// The nearest that the machine has to the request.
  std::string nearest_miss() const {
    int64_t largest = 0;
    std::set<std::string> models;
    for (const Candidate* one : asked_) {
      largest = std::max(largest, one->device->memory_bytes.value_or(0));
      if (!one->device->model.empty()) models.insert(printable(one->device->model));
    }
    if (!request_.model.empty() && come_.empty() && !models.empty())
      return fmt::format(" (there: {}{})", fmt::join(models, ", "), wider_pattern(models));
    if (request_.memory_bytes > largest && largest > 0)
      return fmt::format(" (the largest has {})", amount_text(largest));
    return "";
  }

  size_t most_of_one_model() const {
    if (request_.any_model || request_.is_static()) return come_.size();
    std::map<std::pair<std::string, std::string>, size_t> counts;
    size_t most = 0;
    for (const Candidate* one : come_)
      most = std::max(most, ++counts[{one->device->vendor + '\n' + one->device->model,
                                      std::string(to_string(one->device->kind)) + one->device->profile.value_or("")}]);
    return most;
  }

  std::string not_linked() const {
    std::vector<const Device*> devices;
    for (const Candidate* one : come_) devices.push_back(one->device);
    const size_t unknown = unknown_pairs(inventory_, devices, request_.link),
                 pairs = come_.size() * (come_.size() - 1) / 2;
    const std::string of = fmt::format("of the {} {} that suit", come_.size(), noun(come_.size()));
    if (unknown == pairs)
      return fmt::format("it is not recorded whether any {} are joined by {}; {}", of, link_text(), wanted());
    const std::string also =
        unknown == 0 ? "" : fmt::format(", as far as is recorded: of {} of the {} pairs it is not", unknown, pairs);
    return fmt::format("no {} {} are joined by {} in a ring{}; {}", request_.count, of, link_text(), also,
                       most_linked());
  }

  std::string link_text() const {
    return request_.link == LinkNeed::p2p ? "direct access to each other's memory" : "NVLink or its like";
  }

  std::string most_linked() const {
    for (int count = request_.count - 1; count > 1; --count)
      if (search_.has_set(count, is_anything)) return fmt::format("at most {} are", count);
    return "not even 2 are";
  }

  std::string not_now() const {
    constexpr size_t kNamed = 3;
    if (free_ >= count())
      return fmt::format("{} of the {} {} that suit are free, but no {} of them {}; {}", free_, come_.size(),
                         noun(come_.size()), request_.count,
                         request_.link == LinkNeed::any ? "are alike" : "are joined as asked", wanted());
    std::string why;
    size_t named = 0;
    for (const Candidate* one : come_) {
      if (one->state == State::free || ++named > kNamed) continue;
      why += fmt::format("{} {} {}", why.empty() ? ":" : ",", one->device->label(), one->reason);
    }
    if (named > kNamed) why += fmt::format(", and {} more", named - kNamed);
    if (come_.size() == 1) return fmt::format("{}, and the only {} that suits is not free{}", wanted(), noun(1), why);
    const std::string how_many = free_ == 0 ? "none" : std::to_string(free_);
    return fmt::format("{}, and {} of the {} {} that suit {} free{}", wanted(), how_many, come_.size(),
                       noun(come_.size()), free_ <= 1 ? "is" : "are", why);
  }

  static bool concerns(const Held& held, const Device& device) {
    return held.device == device.id || (!device.parent.empty() && held.device == device.parent);
  }

  std::vector<Blocker> blockers() const {
    std::vector<Blocker> blockers;
    for (const Candidate* one : come_) {
      const std::string label = one->device->label();
      if (one->state == State::full || one->state == State::unwell) blockers.push_back({label, one->reason});
      if (one->state != State::held) continue;
      for (const Held& held : held_)
        if (concerns(held, *one->device))
          blockers.push_back({label, printable(held.barred.empty() ? held.holder : held.barred), held.share,
                              held.since_s, held.until_s});
    }
    return blockers;
  }

  /// Whether the device can be taken at that time, when all leases with an end before it have ended.
  bool comes_by(double time_s, const Candidate& one) const {
    if (one.state == State::free) return true;
    if (one.state != State::held) return false;
    double share = 0;
    for (const Held& held : held_)
      if (concerns(held, *one.device) && !(held.until_s && *held.until_s <= time_s)) share += held.share;
    constexpr double kRounding = 1e-9;
    return one.device->kind == DeviceKind::partition ? share <= 0 : 1 - share >= request_.share - kRounding;
  }

  std::optional<double> earliest() const {
    std::vector<double> ends;
    for (const Held& held : held_)
      if (held.until_s) ends.push_back(*held.until_s);
    std::ranges::sort(ends);
    const auto enough = [this](double time_s) {
      const auto comes = [&](const Candidate& one) { return comes_by(time_s, one); };
      return search_.has_set(request_.count, comes);
    };
    const auto first = std::ranges::partition_point(ends, [&](double time_s) { return !enough(time_s); });
    return first == ends.end() ? std::nullopt : std::optional(*first);
  }

  const Inventory& inventory_;
  const Request& request_;
  const Search& search_;
  const std::span<const Held> held_;
  const std::string unseen_ = printable(inventory_.unseen());
  std::vector<const Candidate*> asked_, come_;
  size_t free_ = 0, unknown_ = 0;
  bool only_gpus_ = true;
  bool knows_all_ = true;  ///< what each device is
};

}  // namespace

Refusal refuse(const Inventory& inventory, const Request& request, const std::vector<Candidate>& candidates,
               const Search& search, std::span<const Held> held) {
  Refusal refusal = Refuser(inventory, request, candidates, search, held).refuse();
  refusal.rejected = rejected(candidates);
  return refusal;
}

}  // namespace remuda::place
