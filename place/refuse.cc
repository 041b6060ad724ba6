#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "base/text.h"
#include "place/explain.h"
#include "place/health.h"
#include "place/quantity.h"

namespace remuda::place {
namespace {

using State = Fit::State;

bool is_anything(const Device&, const Fit&) { return true; }

class Refuser {
 public:
  Refuser(const Layout& layout, const Request& request, const std::vector<Fit>& fits, const Chooser& chooser,
          std::span<const Held> held)
      : inventory_(layout.inventory()), request_(request), fits_(fits), chooser_(chooser), held_(held) {
    for (size_t i = 0; i < fits.size(); ++i) {
      const Device& device = inventory_.devices[i];
      if (fits[i].state == State::not_asked) continue;
      asked_.push_back(&device);
      only_gpus_ = only_gpus_ && device.kind == DeviceKind::gpu;
      if (fits[i].can_come()) come_.push_back(&device);
      free_ += fits[i].state == State::free;
      knows_all_ = knows_all_ && !(fits[i].state == State::unwell && is_unknown(device));
    }
  }

  Refusal refuse() const {
    const bool can_be = !knows_all_ && come_.size() >= count();
    Refusal refusal{.never = !can_be && chooser_.choose(request_.count, is_anything).options.empty()};
    if (refusal.never) {
      refusal.sentence = never();
    } else {
      refusal.sentence = not_now();
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

  std::string never() const {
    if (asked_.empty()) return fmt::format("there is no GPU on {}; {}{}", host(), wanted(), cpu_hint());
    if (come_.size() < count()) return too_few();
    if (const size_t most = most_of_one_model(); most < count())
      return fmt::format("the {} {} that suit are of unlike models, at most {} of one; {} (--any-model allows a mix)",
                         come_.size(), noun(come_.size()), most, wanted());
    return fmt::format("no {} of the {} {} that suit are joined by {} in a ring; {}", request_.count, come_.size(),
                       noun(come_.size()), link_words(), most_linked());
  }

  std::string host() const { return inventory_.host.empty() ? "this machine" : printable(inventory_.host); }

  std::string cpu_hint() const {
    const bool has_cpu =
        std::ranges::any_of(inventory_.devices, [](const Device& d) { return d.kind == DeviceKind::cpu; });
    return has_cpu && !request_.cpu ? " (--cpu allows CPU devices)" : "";
  }

  std::string too_few() const {
    if (asked_.size() == 1 && come_.empty())
      return fmt::format("the only {}, {}, {}; {}", noun(1), asked_[0]->label(), fit_of(*asked_[0]).reason, wanted());
    if (come_.size() == asked_.size())
      return fmt::format("there {} {} {} on {}; {}{}", asked_.size() == 1 ? "is" : "are", asked_.size(),
                         noun(asked_.size()), host(), wanted(), cpu_hint());
    const std::string how_many = come_.empty() ? "none" : std::to_string(come_.size());
    return fmt::format("{} of the {} {} {}{}; {}", how_many, asked_.size(), noun(asked_.size()),
                       conditions_text(request_, come_.size() > 1), nearest_miss(), wanted());
  }

  /// What the machine has in place of what is asked for.
  std::string nearest_miss() const {
    int64_t largest = 0;
    std::set<std::string> models;
    for (const Device* device : asked_) {
      largest = std::max(largest, device->memory_bytes.value_or(0));
      if (!device->model.empty()) models.insert(printable(device->model));
    }
    if (!request_.model.empty() && come_.empty() && !models.empty())
      return fmt::format(" (there: {})", fmt::join(models, ", "));
    if (request_.memory_bytes > largest && largest > 0)
      return fmt::format(" (the largest has {})", amount_text(largest));
    return "";
  }

  size_t most_of_one_model() const {
    if (request_.any_model || request_.is_static()) return come_.size();
    std::map<std::pair<std::string, std::string>, size_t> counts;
    size_t most = 0;
    for (const Device* device : come_)
      most = std::max(most, ++counts[{device->vendor + '\n' + device->model,
                                      std::string(to_string(device->kind)) + device->profile.value_or("")}]);
    return most;
  }

  std::string link_words() const {
    return request_.link == LinkNeed::p2p ? "direct access to each other's memory" : "NVLink or its like";
  }

  std::string most_linked() const {
    for (int count = request_.count - 1; count > 1; --count)
      if (!chooser_.choose(count, is_anything).options.empty()) return fmt::format("at most {} are", count);
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
    for (const Device* device : come_) {
      const Fit& fit = fit_of(*device);
      if (fit.state == State::free || ++named > kNamed) continue;
      why += fmt::format("{} {} {}", why.empty() ? ":" : ",", device->label(), fit.reason);
    }
    if (named > kNamed) why += fmt::format(", and {} more", named - kNamed);
    return fmt::format("{}, and {} of the {} {} that suit {} free{}", wanted(), free_, come_.size(), noun(come_.size()),
                       free_ == 1 ? "is" : "are", why);
  }

  const Fit& fit_of(const Device& device) const {
    return fits_[static_cast<size_t>(&device - inventory_.devices.data())];
  }

  static bool concerns(const Held& held, const Device& device) {
    return held.device == device.id || (!device.parent.empty() && held.device == device.parent);
  }

  std::vector<Blocker> blockers() const {
    std::vector<Blocker> blockers;
    for (const Device* device : come_) {
      const Fit& fit = fit_of(*device);
      if (fit.state == State::full || fit.state == State::unwell) blockers.push_back({device->label(), fit.reason});
      if (fit.state != State::taken) continue;
      for (const Held& held : held_)
        if (concerns(held, *device))
          blockers.push_back({device->label(), printable(held.holder), held.share, held.since_s, held.until_s});
    }
    return blockers;
  }

  /// Whether the device can be taken once all that ends by then has ended.
  bool comes_by(double time_s, const Device& device, const Fit& fit) const {
    if (fit.state == State::free) return true;
    if (fit.state != State::taken) return false;
    double share = 0;
    for (const Held& held : held_)
      if (concerns(held, device) && !(held.until_s && *held.until_s <= time_s)) share += held.share;
    constexpr double kRounding = 1e-9;
    return device.kind == DeviceKind::partition ? share <= 0 : 1 - share >= request_.share - kRounding;
  }

  std::optional<double> earliest() const {
    std::vector<double> ends;
    for (const Held& held : held_)
      if (held.until_s) ends.push_back(*held.until_s);
    std::ranges::sort(ends);
    const auto enough = [this](double time_s) {
      const auto comes = [&](const Device& device, const Fit& fit) { return comes_by(time_s, device, fit); };
      return !chooser_.choose(request_.count, comes).options.empty();
    };
    const auto first = std::ranges::partition_point(ends, [&](double time_s) { return !enough(time_s); });
    return first == ends.end() ? std::nullopt : std::optional(*first);
  }

  const Inventory& inventory_;
  const Request& request_;
  const std::vector<Fit>& fits_;
  const Chooser& chooser_;
  const std::span<const Held> held_;
  std::vector<const Device*> asked_, come_;
  size_t free_ = 0;
  bool only_gpus_ = true;
  bool knows_all_ = true;  ///< what each device is
};

}  // namespace

Refusal refuse(const Layout& layout, const Request& request, const std::vector<Fit>& fits, const Chooser& chooser,
               std::span<const Held> held) {
  Refusal refusal = Refuser(layout, request, fits, chooser, held).refuse();
  refusal.rejected = rejected(layout, fits);
  return refusal;
}

}  // namespace remuda::place
