#include "snapshot/hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "snapshot/sentences.h"

namespace remuda::snapshot {
namespace {

using testing::HasSubstr;

Json snapshot_with(Json jobs, Json more = Json::object()) {
  Json snapshot{{"version", 1}, {"time_s", 1000}, {"seen_s", 1000}, {"host", "a"}, {"source", "recording"}};
  snapshot["inventory"] = {{"version", 1},
                           {"host", "a"},
                           {"devices", {{{"id", "G"}, {"kind", "gpu"}, {"index", 0}, {"status", {{"busy", 0.5}}}}}}};
  snapshot["jobs"] = std::move(jobs);
  snapshot.update(more);
  return snapshot;
}

TEST(SnapshotHosts, LeasesWithWhatTheyWereUsedFor) {
  const Json use{{"busy_s", 30}, {"busy_known_s", 60}, {"effective_s", 0}, {"effective_known_s", 0}};
  const Json lease{{"job", 5}, {"device", "G"}, {"user", "ana"}, {"since_s", 900}, {"until_s", 1600}, {"use", use}};
  const Seen seen = seen_in(snapshot_with({{"leases", {lease}}})).value();
  ASSERT_EQ(seen.hosts[0].devices[0].leases.size(), 1u);
  const Lease& read = seen.hosts[0].devices[0].leases[0];
  EXPECT_EQ(read.job, 5);
  EXPECT_EQ(read.until_s, 1600);
  EXPECT_EQ(read.use.busy, 0.5);
  EXPECT_EQ(read.use.effective, std::nullopt) << "what is not known is not 0";
  EXPECT_TRUE(seen.is_recording);
}

TEST(SnapshotHosts, ErrorsOfASilentHostAreOfThePast) {
  Json snapshot = snapshot_with(Json::object(), {{"seen_s", 900}});
  snapshot["inventory"]["devices"][0]["status"] = {
      {"xid", 79},   {"ecc_uncorrected", 3}, {"remap_failed", true}, {"pcie_width", 16},
      {"busy", 0.5}, {"energy_joules", 7.5}, {"remapped_rows", 1},   {"recovery_action", "reset"}};
  const Seen seen = seen_in(snapshot).value();
  const Status& status = seen.hosts[0].devices[0].device.status;
  EXPECT_EQ(status.xid.missing().reason, MissingReason::stale);
  EXPECT_THAT(status.ecc_uncorrected.missing().detail, HasSubstr("a has been silent for "));
  EXPECT_FALSE(status.remap_failed.has_value() || status.pcie_width.has_value() || status.energy_joules.has_value() ||
               status.remapped_rows.has_value() || status.recovery_action.has_value() || status.busy.has_value());
}

TEST(SnapshotHosts, AnythingElseInTheListsIsLeftOut) {
  const Json jobs{{"leases", {1, "x", Json(), {{"job", "5"}, {"since_s", "y"}}}}, {"waiting", 7}};
  const Seen seen = seen_in(snapshot_with(jobs, {{"alerts", {{{"rule", 3}}}}, {"drains", "all"}})).value();
  ASSERT_EQ(seen.hosts[0].leases.size(), 1u);
  EXPECT_EQ(seen.hosts[0].leases[0].job, 0);
  EXPECT_TRUE(seen.hosts[0].waiting.empty());
  EXPECT_EQ(seen.hosts[0].alerts[0].rule, "3");
}

TEST(SnapshotHosts, WhatIsNoSnapshotIsAnError) {
  EXPECT_EQ(seen_in(Json{{"version", 1}, {"error", "the agent does not answer"}}).error().message,
            "the agent does not answer");
  EXPECT_THAT(seen_in(Json{{"version", 1}}).error().message, HasSubstr("no machine"));
  EXPECT_FALSE(seen_in(Json()));
  EXPECT_FALSE(seen_in(Json{{"inventory", 3}}));
}

TEST(SnapshotHosts, AlertsThatSomebodyLooksAfterAreListedAndNotCounted) {
  const Json alerts{{{"rule", "a"}, {"device", "G"}, {"acknowledged_by", "ana"}},
                    {{"rule", "b"}, {"device", "G"}, {"silenced_until_s", 2000}}};
  const Seen seen = seen_in(snapshot_with(Json::object(), {{"alerts", alerts}})).value();
  EXPECT_EQ(seen.hosts[0].alerts.size(), 2u);
  EXPECT_THAT(top_sentence(seen, {}), testing::EndsWith("; no alerts."));
}

TEST(SnapshotHosts, DrainedWithTheReason) {
  const Json drains{{"drains", {{{"device", "G"}, {"reason", "dusty"}}}}};
  const Seen seen = seen_in(snapshot_with(Json::object(), drains)).value();
  EXPECT_EQ(seen.hosts[0].devices[0].state, State::drained);
  EXPECT_EQ(seen.hosts[0].devices[0].drained, "dusty");
}

}  // namespace
}  // namespace remuda::snapshot
