#include "policy/file.h"

#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tuple>

#include "base/testing/scratch_folder.h"

namespace remuda::policy {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& text) {
  const auto policy = parse_policy(text, "policy.toml");
  return policy ? "" : policy.error().message;
}

TEST(PolicyFile, MayBeEmpty) { EXPECT_EQ(*parse_policy("# nothing yet\n", "policy.toml"), Policy{}); }

TEST(PolicyFile, MayNotBeNestedWithoutEnd) {
  const auto many = [](std::string_view one, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += one;
    return text;
  };
  constexpr int kMany = 100000;
  for (const std::string& deep :
       {many("a.", kMany) + "a = 1\n", "[" + many("a.", kMany) + "a]\n", "x = " + many("{a.b.c = ", kMany),
        "x = " + many("[", kMany), many("'a' . ", kMany) + "a = 1\n"})
    EXPECT_EQ(error_of("# one\n" + deep), "policy.toml:2: values are nested more than 64 deep");
  for (const char* quotes : {"\"\"\"", "\'\'\'"}) {
    const std::string text = quotes + std::string("a") + quotes[0] + quotes;
    EXPECT_EQ(error_of("x = [" + text + ", {" + many("a.", kMany) + "a = 1}]\n"),
              "policy.toml:1: values are nested more than 64 deep");
    EXPECT_THAT(
        error_of(many("[[limit]]\ndevices = 1\n", 1) + "x = {a = " + text + ", b = \"y\"}\n" + many("[queue.a]\n", 1)),
        testing::Not(HasSubstr("deep")));
  }
  EXPECT_EQ(error_of("# " + many(".[{", 100) + "\n[queue]\nhalf_life = \"2d\" # " + many("a.", 100) + "\n"), "");
  EXPECT_THAT(error_of("x = [" + many("1.5,\n", 1000) + "]\ny = '" + many("a.", 100) + "'\nz = \"\"\"" +
                       many("[\n\\\"", 100) + "\"\"\"\n"),
              HasSubstr("policy.toml:1"));
}

TEST(PolicyFile, HasTheQueue) {
  const auto policy =
      parse_policy("[queue]\nhalf_life = \"2d\"\npatience = \"90s\"\nbackfill = false\n", "policy.toml");
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_EQ(policy->half_life_s, 2 * 86400);
  EXPECT_EQ(policy->patience_s, 90);
  EXPECT_FALSE(policy->backfill);
}

TEST(PolicyFile, NamesTheLineOfWhatIsWrong) {
  EXPECT_EQ(error_of("[queue]\npatience = 90\n"),
            "policy.toml:2: queue.patience is 90; it must be a time such as \"15m\", \"12h\" or \"7d\"");
  EXPECT_EQ(error_of("\n[[limit]]\ndevices = \"two\"\n"),
            "policy.toml:3: limit.devices is 'two'; it must be an integer from 0 to 256");
  EXPECT_EQ(error_of("[[limit]]\ndevices = 257\n"),
            "policy.toml:2: limit.devices is 257; it must be an integer from 0 to 256");
  EXPECT_EQ(error_of("[[limit]]\npriority = 1.5\n"),
            "policy.toml:2: limit.priority is 1.5; it must be an integer from -1000 to 1000");
  EXPECT_EQ(error_of("[[limit]]\ndevice_hours = -1\n"),
            "policy.toml:2: limit.device_hours is -1; it must be a number of at least 0");
  EXPECT_EQ(error_of("[[limit]]\nusers = \"alice\"\n"),
            "policy.toml:2: limit.users is 'alice'; it must be a list of names such as [\"alice\"]");
  EXPECT_EQ(error_of("[[limit]]\nusers = []\n"),
            "policy.toml:2: limit.users is []; it must be a list of names such as [\"alice\"]");
  EXPECT_EQ(error_of("[[limit]]\nshare = 1\n"), "policy.toml:2: limit.share is 1; it must be true or false");
  EXPECT_EQ(error_of("[[limit]]\ncpus = -1\n"),
            "policy.toml:2: limit.cpus is -1; it must be an integer from 0 to 65536");
  EXPECT_EQ(error_of("[[limit]]\nhost_mem = \"64\"\n"),
            "policy.toml:2: limit.host_mem is '64'; it must be an amount such as \"64GiB\"");
  EXPECT_EQ(error_of("[[limit]]\ncpus = 2\ndefault_cpus = 3\n"),
            "policy.toml:3: limit.default_cpus is more than limit.cpus");
  EXPECT_EQ(error_of("[[limit]]\nhost_mem = \"1GiB\"\ndefault_host_mem = \"2GiB\"\n"),
            "policy.toml:3: limit.default_host_mem is more than limit.host_mem");
  EXPECT_EQ(error_of("[[limit]]\ndefault = \"2h\"\nlongest = \"1h\"\n"),
            "policy.toml:2: limit.default is longer than limit.longest");
}

TEST(PolicyFile, SaysWhatBecomesOfIdleJobs) {
  EXPECT_FALSE(parse_policy("", "p")->idle.is_on()) << "nothing happens unless the administrator says so";
  const auto policy = parse_policy(
      "[idle]\nwarn_after = \"30m\"\nsignal_after = \"45m\"\nrelease_after = \"1h\"\nfloor = 0.1\nsignal = \"USR2\"\n"
      "exempt_users = [\"ada\"]\n",
      "p");
  ASSERT_TRUE(policy) << policy.error().message;
  const Idle& idle = policy->idle;
  EXPECT_EQ((std::tuple{idle.warn_after_s, idle.signal_after_s, idle.release_after_s, idle.floor, idle.signal}),
            (std::tuple{1800.0, 2700.0, 3600.0, 0.1, SIGUSR2}));
  EXPECT_TRUE(idle.exempts({"ada", {}}));
  EXPECT_FALSE(idle.exempts({"bob", {}}));
  EXPECT_EQ(parse_policy("[idle]\nwarn_after = \"30m\"", "p")->idle.exempts({"bob", {}}), false);
  EXPECT_EQ(error_of("[idle]\nrelease_after = \"1h\"\n"),
            "policy.toml:1: idle.warn_after is missing: nobody is signalled or ended without a warning");
  EXPECT_EQ(error_of("[idle]\nwarn_after = \"1h\"\nrelease_after = \"30m\"\n"),
            "policy.toml:1: idle.release_after must be longer than idle.warn_after and idle.signal_after");
  EXPECT_EQ(error_of("[idle]\nwarn_after = \"1h\"\nsignal_after = \"1h\"\n"),
            "policy.toml:1: idle.signal_after must be longer than idle.warn_after");
  EXPECT_EQ(error_of("[idle]\nwarn_after = \"30m\"\nsignal_after = \"1h\"\nrelease_after = \"45m\"\n"),
            "policy.toml:1: idle.release_after must be longer than idle.warn_after and idle.signal_after");
  for (const char* wrong : {"0", "0.6", "-0.1", "nan", "\"5%\""})
    EXPECT_NE(error_of(std::string("[idle]\nwarn_after = \"1h\"\nfloor = ") + wrong + "\n"), "") << wrong;
  EXPECT_EQ(error_of("[idle]\nwarn_after = \"1s\"\n"),
            "policy.toml:2: idle.warn_after is '1s'; it must be a time of at least 10 s such as \"30m\"");
  EXPECT_EQ(error_of("[idle]\nwarn_after = \"1h\"\nsignal = \"KILL\"\n"),
            "policy.toml:3: idle.signal is 'KILL'; it must be \"USR1\" or \"USR2\"");
}

TEST(PolicyFile, SaysWhatDevicesCost) {
  const auto policy = parse_policy(
      "[[tariff]]\nmodel = \"*A100*\"\nhour = 1.6\nkwh = 0.31\ncurrency = \"EUR\"\n[[tariff]]\nhour = 1\n", "p");
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_EQ(policy->tariffs, (std::vector<Tariff>{{"*A100*", 1.6, 0.31}, {"", 1, 0}}));
  EXPECT_EQ(policy->currency, "EUR");
  EXPECT_NE(policy_text(*policy).find("a device like *A100* costs 1.6 EUR an hour and 0.31 EUR a kWh\n"
                                      "a device costs 1 EUR an hour\n"),
            std::string::npos);
  EXPECT_EQ(error_of("[[tariff]]\nhour = 1\n"), "policy.toml:1: tariff.currency is missing; write one such as \"EUR\"");
  EXPECT_EQ(error_of("[[tariff]]\ncurrency = \"EUR\"\n"),
            "policy.toml:1: the tariff takes nothing; it needs tariff.hour or tariff.kwh");
  for (const char* wrong : {"1e10", "inf", "nan", "-1"})
    EXPECT_NE(error_of(std::string("[[tariff]]\ncurrency = \"EUR\"\nkwh = ") + wrong + "\n"), "") << wrong;
  EXPECT_EQ(error_of("[[tariff]]\nhour = 0\n"), "policy.toml:2: tariff.hour is 0; it must be a number above 0");
  EXPECT_EQ(error_of("[[tariff]]\nhour = 1\ncurrency = \"EUR\"\n[[tariff]]\nhour = 1\ncurrency = \"USD\"\n"),
            "policy.toml:4: tariff.currency is USD, and that of a tariff before it EUR");
}

TEST(PolicyFile, SaysWhoIsKeptFromDeviceFiles) {
  EXPECT_EQ(parse_policy("", "policy.toml")->enforce, Enforce::jobs);
  const auto policy = parse_policy(
      "[devices]\nenforce = \"everyone\"\nexempt = [\"a.service\", \"user-1000.slice\", \"/x/y\"]\n", "policy.toml");
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_EQ(policy->enforce, Enforce::everyone);
  EXPECT_EQ(policy->exempt, (std::vector<std::string>{"a.service", "user-1000.slice", "/x/y"}));
  EXPECT_EQ(error_of("[devices]\nenforce = true\n"),
            "policy.toml:2: devices.enforce is true; it must be \"off\", \"jobs\", \"audit\" or \"everyone\"");
  EXPECT_EQ(error_of("[devices]\nenforce = \"all\"\n"),
            "policy.toml:2: devices.enforce is 'all'; it must be \"off\", \"jobs\", \"audit\" or \"everyone\"");
  for (const char* wrong : {"\"a.service\"", "[\"\"]", "[\"alice\"]", "[\"/\"]", "[\"-.slice\"]", "[\"/a/../b\"]",
                            "[\"a/b.service\"]", "[1]"})
    EXPECT_NE(error_of(std::string("[devices]\nexempt = ") + wrong + "\n"), "") << wrong;
}

TEST(PolicyFile, NamesTheHealthProbe) {
  EXPECT_EQ(parse_policy("", "policy.toml")->health.probe, "");
  const auto policy = parse_policy("[health]\nprobe = \"check-gpu --quick\"\ntimeout = \"5s\"\n", "policy.toml");
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_EQ(policy->health.probe, "check-gpu --quick");
  EXPECT_EQ(policy->health.probe_timeout_s, 5);
  EXPECT_THAT(error_of("[health]\nprobe = \"check-gpu\\u0000--quick\"\n"), HasSubstr("it must be a command"))
      << "a shell would see the first part of it";
  EXPECT_EQ(error_of("[health]\nprobe = \"\"\n"),
            "policy.toml:2: health.probe is ''; it must be a command such as \"/usr/local/sbin/check-gpu\"");
  EXPECT_EQ(error_of("[health]\ntimeout = \"11m\"\n"),
            "policy.toml:2: health.timeout is '11m'; it must be a time of 10m at the most such as \"30s\"");
}

TEST(PolicyFile, SaysWhetherTheAgentKeepsMpsDaemons) {
  EXPECT_FALSE(parse_policy("", "policy.toml")->mps);
  EXPECT_TRUE(parse_policy("[sharing]\nmps = true\n", "policy.toml")->mps);
  EXPECT_FALSE(parse_policy("", "policy.toml")->mig);
  const auto cut = parse_policy("[sharing]\nmig = [\"gpu:3\"]\n", "policy.toml")->mig;
  EXPECT_EQ(cut, (Rule<std::vector<std::string>>{{"gpu:3"}, "policy.toml:2"}));
  EXPECT_EQ(error_of("[sharing]\nmig = true\n"),
            "policy.toml:2: sharing.mig is true; it must be a list of GPUs such as [\"gpu:0\"]");
  EXPECT_EQ(error_of("[sharing]\nmps = 1\n"), "policy.toml:2: sharing.mps is 1; it must be true or false");
}

/// Found by policy_fuzz: the parser quotes what it reads, line ends too.
TEST(PolicyFile, AnErrorIsOneLine) {
  EXPECT_EQ(error_of("m=[n\n0"), "policy.toml:1: in the floating-point: expected 'nan', saw 'n?'");
}

TEST(PolicyFile, KnowsItsKeysAndTables) {
  EXPECT_EQ(error_of("[[limit]]\ndevice = 1\n"), "policy.toml:2: there is no key limit.device; did you mean devices?");
  EXPECT_EQ(error_of("[[limits]]\n"),
            "policy.toml:1: there is no table limits; the tables are [queue], [devices], [health], [idle], [sharing], "
            "[[limit]], [[reservation]] and [[tariff]]; did you mean limit?");
  EXPECT_EQ(error_of("[limit]\ndevices = 1\n"),
            "policy.toml:1: limit must be tables, each below a line [[limit]], 1000 at the most");
}

TEST(PolicyFile, AReservationIsOfDevicesForSomebody) {
  EXPECT_EQ(error_of("[[reservation]]\ngroups = [\"a\"]\n"),
            "policy.toml:1: reservation.devices is missing; it must be a list such as [\"gpu:0\"]");
  EXPECT_EQ(error_of("[[reservation]]\ndevices = [\"gpu:0\"]\n"),
            "policy.toml:1: the reservation is for nobody; it needs users or groups");
  EXPECT_EQ(error_of("[[reservation]]\ndays = \"Monday\"\n"),
            "policy.toml:2: reservation.days is 'Monday'; it must be days such as \"Mon-Fri\" or \"Sat,Sun\"");
  EXPECT_EQ(error_of("[[reservation]]\nfrom = \"8\"\n"),
            "policy.toml:2: reservation.from is '8'; it must be a time of day such as \"08:00\"");
}

TEST(PolicyFile, IsNotReadWhereOthersCouldWriteIt) {
  const ScratchFolder folder;
  folder.write("policy.toml", "[queue]\nbackfill = false\n");
  const std::string path = folder.path("policy.toml");
  std::filesystem::permissions(path, std::filesystem::perms(0644));
  ASSERT_TRUE(read_policy(path));
  EXPECT_FALSE(read_policy(path)->backfill);
  std::filesystem::permissions(path, std::filesystem::perms(0664));
  EXPECT_EQ(read_policy(path).error().message,
            path + " can be written by others; make it root's: chown root " + path + " && chmod 644 " + path);
  std::filesystem::permissions(path, std::filesystem::perms(0646));
  EXPECT_FALSE(read_policy(path)) << "not by its group, but by all others";
  EXPECT_FALSE(read_policy(folder.path("none.toml")));
}

}  // namespace
}  // namespace remuda::policy
