// Choice: what whoever looks has chosen to see. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "device/words.h"

namespace remuda::top {

/// By what devices are sorted: the first by their numbers, the others with the largest first.
enum class Order { device, busy, memory, power, temperature, user };

/// How far back histories go; those of the page.
enum class Range { quarter, hour, six_hours, day, week };

}  // namespace remuda::top

template <>
struct remuda::Words<remuda::top::Order> {
  using O = top::Order;
  static constexpr std::array table{std::pair{O::device, "device"},           std::pair{O::busy, "busy"},
                                    std::pair{O::memory, "memory"},           std::pair{O::power, "power"},
                                    std::pair{O::temperature, "temperature"}, std::pair{O::user, "user"}};
};

template <>
struct remuda::Words<remuda::top::Range> {
  using R = top::Range;
  static constexpr std::array table{std::pair{R::quarter, "15m"}, std::pair{R::hour, "1h"},
                                    std::pair{R::six_hours, "6h"}, std::pair{R::day, "24h"}, std::pair{R::week, "7d"}};
};

namespace remuda::top {

enum class Mode {
  list,
  details,  ///< of the item that is chosen
  help,
  filter,   ///< a text is being typed
  confirm,  ///< whether a job is to be cancelled
};

struct Choice {
  Order order = Order::device;
  bool is_reversed = false;
  Range range = Range::hour;
  std::string filter;     ///< only what has this text somewhere
  std::string item;       ///< key of what is chosen (top/items.h); empty: nothing
  size_t first_line = 0;  ///< of the list that is in sight, as the last frame had it
  Mode mode = Mode::list;
  int64_t job = 0;       ///< that is to be cancelled
  std::string job_text;  ///< what people call it
  std::string message;   ///< the answer to the last key
};

}  // namespace remuda::top
