#include "pool/refused.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "place/place.h"
#include "pool/testing/pool.h"

namespace remuda::pool {
namespace {

TEST(RefusedRequests, CoverTheSameAndMoreOfIt) {
  const place::Request asked{.count = 2, .memory_bytes = 100};
  RefusedRequests refused;
  EXPECT_FALSE(refused.covers(asked));
  refused.add(asked);
  EXPECT_TRUE(refused.covers(asked));
  EXPECT_TRUE(refused.covers({.count = 3, .memory_bytes = 100}));
  EXPECT_TRUE(refused.covers({.count = 2, .memory_bytes = 101}));
  EXPECT_FALSE(refused.covers({.count = 1, .memory_bytes = 500}));
  EXPECT_FALSE(refused.covers({.count = 2, .memory_bytes = 99}));
  EXPECT_FALSE(refused.covers({.count = 2, .memory_bytes = 100, .any_model = true}));
  EXPECT_FALSE(refused.covers({.count = 2, .memory_bytes = 100, .share = 0.5}));
  EXPECT_FALSE(refused.covers({.count = 2, .memory_bytes = 100, .cpu = true}));
}

TEST(RefusedRequests, OfARingOrOfNamedDevicesCoverTheSameNumberOnly) {
  RefusedRequests refused;
  const place::Request ring{.count = 3, .link = place::LinkNeed::nvlink};
  const place::Request named{.count = 1, .devices = {"gpu:0", "gpu:1"}};
  refused.add(ring);
  refused.add(named);
  EXPECT_TRUE(refused.covers(ring));
  EXPECT_FALSE(refused.covers({.count = 4, .link = place::LinkNeed::nvlink})) << "four in a ring, none of three";
  EXPECT_TRUE(refused.covers(named));
  EXPECT_FALSE(refused.covers({.count = 2, .devices = {"gpu:0", "gpu:1"}})) << "both, which may be unlike";
}

/// Compares what the scheduler relies on with place() itself.
RC_GTEST_PROP(RefusedRequests, WhatTheyCoverIsRefusedByPlace, ()) {
  const auto number = [](int below) { return *rc::gen::inRange(0, below); };
  Inventory box = test_box(6);
  for (Device& device : box.devices) {
    device.model = number(3) == 0 ? "Test 2000" : "Test 1000";
    device.memory_bytes = int64_t{8 + 8 * number(3)} << 30;
  }
  for (Link& link : box.links)
    if (number(2) == 0) link.fabric = Fabric::nvlink;
  std::vector<place::Held> held;
  for (const Device& device : box.devices)
    if (number(2) == 0) held.push_back({device.id, number(2) == 0 ? 1 : 0.5, "eve", {}, {}});
  const auto request = [&] {
    place::Request made{.count = 1 + number(5), .memory_bytes = int64_t{8 * number(4)} << 30};
    made.link = number(3) == 0 ? place::LinkNeed::nvlink : place::LinkNeed::any;
    made.any_model = number(2) == 0;
    made.share = number(2) == 0 ? 1 : 0.5;
    if (number(4) == 0) made.devices = {"gpu:0", "gpu:1", "gpu:2", "gpu:3", "gpu:4"};
    return made;
  };
  const place::Layout layout(box);
  const place::Request small = request();
  place::Request large = request();
  if (number(2) == 0) {
    large = small;
    large.count = 1 + number(5);
    large.memory_bytes += int64_t{8 * number(2)} << 30;
  }
  RC_PRE(asks_for_as_much(large, small));
  const auto is_placed = [&](const place::Request& asked) {
    const auto answer = place::place(layout, asked, held);
    return answer && std::holds_alternative<place::Placement>(*answer);
  };
  RC_ASSERT(is_placed(small) || !is_placed(large));
}

}  // namespace
}  // namespace remuda::pool
