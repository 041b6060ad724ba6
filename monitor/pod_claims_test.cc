#include "monitor/pod_claims.h"

#include <gmock/gmock.h>

#include "monitor/job_processes.h"
#include "monitor/use.h"

namespace remuda::monitor {
namespace {

using testing::SizeIs;

constexpr double kFirstSeen_s = 1'800'000'000;
constexpr const char* kUid = "5f6a1c2e-0001-4444-8888-abcdefabcdef";

pool::Allocation allocation(std::vector<pool::Pod> pods) { return {"card", "Kubernetes", "", "", std::move(pods)}; }
pool::Pod train(std::string container = "main") { return {"ml", "train-0", kUid, std::move(container)}; }
pool::Pod serve() { return {"web", "serve-1", "77777777-0001-4444-8888-abcdefabcdef", "main"}; }

pool::PoolState pool_with(std::vector<pool::Allocation> allocations) {
  pool::PoolState pool;
  pool.allocations = std::move(allocations);
  return pool;
}

Inventory machine(double joules, std::vector<Process> processes = {}) {
  Inventory inventory;
  Device& card = inventory.devices.emplace_back();
  card.id = "card";
  card.kind = DeviceKind::gpu;
  card.model = "H100";
  card.status.busy = 0.5;
  card.status.energy_joules = joules;
  card.status.memory_used_bytes = 7;
  card.status.processes = std::move(processes);
  return inventory;
}

TEST(PodClaims, AreNoneWhereNoPodHasADevice) {
  PodClaims claims;
  EXPECT_EQ(claims.beside({}, kFirstSeen_s), std::nullopt);
  EXPECT_EQ(claims.beside(pool_with({allocation({})}), kFirstSeen_s), std::nullopt) << "the kubelet has it to give";
}

TEST(PodClaims, AreOnePodOfSeveralContainers) {
  PodClaims claims;
  const auto all = claims.beside(pool_with({allocation({train("a"), train("b")})}), kFirstSeen_s);
  ASSERT_TRUE(all);
  ASSERT_THAT(all->leases, SizeIs(1));
  EXPECT_EQ(all->leases[0].share, 1);
  EXPECT_EQ(all->find(pod_number(kUid))->name, "ml/train-0");
}

TEST(PodClaims, BeginAgainWithAPodThatHasTheDeviceAgain) {
  PodClaims claims;
  const auto since_s = [&](const pool::PoolState& pool, double at_s) {
    const auto all = claims.beside(pool, kFirstSeen_s + at_s);
    return all ? all->leases[0].since_s - kFirstSeen_s : -1;
  };
  const auto held = pool_with({allocation({train()})});
  EXPECT_EQ(since_s(held, 0), 0);
  EXPECT_EQ(since_s(held, 9), 0);
  EXPECT_EQ(since_s({}, 10), -1);
  EXPECT_EQ(since_s(held, 20), 20);
}

TEST(PodClaims, AreCountedAsLeasesAre) {
  PodClaims claims;
  Meter meter;
  const auto held = pool_with({allocation({train()})});
  for (int s = 0; s <= 10; ++s)
    meter.add(s, kFirstSeen_s + s, machine(200.0 * s), *claims.beside(held, kFirstSeen_s + s), [](int) { return 0; });
  meter.add(11, kFirstSeen_s + 11, machine(2200), {}, [](int) { return 0; });
  const auto ended = meter.take_ended();
  ASSERT_THAT(ended, SizeIs(1));
  const LeaseUse& use = ended[0];
  EXPECT_EQ(use.pod, "ml/train-0");
  EXPECT_EQ(use.user, "");
  EXPECT_EQ(use.model, "H100");
  EXPECT_EQ(use.held_s, 10);
  EXPECT_EQ(use.busy_s, 5);
  EXPECT_EQ(use.energy_joules, 2000);
}

TEST(PodClaims, OfADeviceThatPodsShareAreCountedByTheirProcesses) {
  PodClaims claims;
  Meter meter;
  const auto held = pool_with({allocation({train(), serve()})});
  const std::vector<Process> processes{{.pid = 1, .memory_bytes = 30, .busy = 0.6},
                                       {.pid = 2, .memory_bytes = 10, .busy = 0.2}};
  const auto pod_of = [](int pid) { return pod_number(pid == 1 ? kUid : serve().uid); };
  for (int s = 0; s <= 10; ++s)
    meter.add(s, kFirstSeen_s + s, machine(200.0 * s, processes), *claims.beside(held, kFirstSeen_s + s), pod_of);
  const LeaseUse& use = meter.alive().at({pod_number(kUid), "card"});
  EXPECT_EQ(use.share, 0.5);
  EXPECT_DOUBLE_EQ(use.busy_s, 6);
  EXPECT_DOUBLE_EQ(use.energy_joules, 1500);
  EXPECT_EQ(use.memory_peak_bytes, 30);
}

TEST(PodClaims, AProcessIsOfThePodWhoseCgroupItIsIn) {
  PodClaims claims;
  const auto all = *claims.beside(pool_with({allocation({train(), serve()})}), kFirstSeen_s);
  const int64_t pod = pod_number(kUid);
  const std::string uid = kUid, unit = "pod5f6a1c2e_0001_4444_8888_abcdefabcdef.slice";
  EXPECT_EQ(job_in("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-" + unit + "/cri-1.scope\n", all),
            pod);
  EXPECT_EQ(job_in("0::/kubepods.slice/kubepods-" + unit + "\n", all), pod);
  EXPECT_EQ(job_in("12:devices:/x\n4:cpu,cpuacct:/kubepods/besteffort/pod" + uid + "/0123\n", all), pod);
  EXPECT_EQ(job_in("0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-" + unit + "/x\n", all), pod);
  EXPECT_EQ(job_in("0::/user.slice/kubepods/pod" + uid + "/x\n", all), 0) << "a user's own";
  EXPECT_EQ(job_in("0::/kubepods/pod" + uid + "0/x\n", all), 0);
  EXPECT_EQ(job_in("0::/kubepods.slice\n", all), 0);
}

}  // namespace
}  // namespace remuda::monitor
