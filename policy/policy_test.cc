#include "policy/policy.h"

#include <gmock/gmock.h>

#include "policy/file.h"

namespace remuda::policy {
namespace {

const Policy kPolicy = *parse_policy(R"(
[[limit]]
users = ["alice"]
devices = 4
[[limit]]
groups = ["students"]
devices = 2
longest = "12h"
[[limit]]
longest = "7d"
)",
                                     "policy.toml");

TEST(Policy, HasTheFirstTableThatIsForTheUserAndHasTheKey) {
  const User alice{"alice", {"students"}}, bob{"bob", {"users", "students"}}, eve{"eve", {}};
  EXPECT_EQ(kPolicy.find(&Limit::devices, alice)->value, 4);
  EXPECT_EQ(kPolicy.find(&Limit::longest_s, alice)->value, 12 * 3600) << "of a later table, as the first has none";
  EXPECT_EQ(kPolicy.find(&Limit::devices, bob)->value, 2);
  EXPECT_EQ(kPolicy.find(&Limit::devices, bob)->where, "policy.toml:7");
  EXPECT_EQ(kPolicy.find(&Limit::devices, eve), nullptr);
  EXPECT_EQ(kPolicy.find(&Limit::longest_s, eve)->value, 7 * 86400);
}

TEST(Policy, IsShownRuleByRule) {
  const Policy policy = *parse_policy(R"(
[queue]
backfill = false
[devices]
enforce = "everyone"
exempt = ["gdm.service"]
[idle]
warn_after = "30m"
release_after = "1h"
exempt_groups = ["staff"]
[[limit]]
users = ["alice"]
groups = ["gpu"]
waiting = 10
priority = 0
device_hours = 1.5
default = "1h"
share = false
cpus = 8
default_cpus = 1
host_mem = "64GiB"
default_host_mem = "512MiB"
[[reservation]]
devices = ["gpu:0", "gpu:1"]
groups = ["course"]
days = "Mon-Fri"
from = "08:00"
to = "18:00"
)",
                                      "p.toml");
  EXPECT_EQ(policy_text(policy),
            "usage is halved every 7 days; a job that has waited for 15 min gets devices kept for it; nobody has them "
            "meanwhile\n"
            "nobody but root opens device files that they were not granted; exempt: gdm.service\n"
            "a job whose devices are busy for less than 5 % of 30 min is warned, ended after 1 h; exempt: group "
            "staff\n"
            "p.toml:14: alice and group gpu may have 10 waiting jobs\n"
            "p.toml:15: alice and group gpu may give priority 0 at the most\n"
            "p.toml:16: alice and group gpu may have 1.5 device hours in 7 days\n"
            "p.toml:17: alice and group gpu get a time limit of 1 h where they ask for none\n"
            "p.toml:18: alice and group gpu may not take parts of devices\n"
            "p.toml:19: alice and group gpu may have 8 cores of the host at once\n"
            "p.toml:20: alice and group gpu get 1 core of the host where they ask for none\n"
            "p.toml:21: alice and group gpu may have 64 GiB of the host at once\n"
            "p.toml:22: alice and group gpu get 512 MiB of the host where they ask for none\n"
            "p.toml:23: gpu:0, gpu:1 reserved for group course, Mon-Fri 08:00-18:00\n");
}

}  // namespace
}  // namespace remuda::policy
