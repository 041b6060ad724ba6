#include "tests/nvml/live_job.h"

#include <filesystem>
#include <fmt/format.h>

#include "base/env.h"
#include "base/file.h"
#include "base/testing/machine_file.h"
#include "pool/pool.h"
#include "tests/nvml/library.h"

namespace remuda::tests::nvml {

void LiveJobTest::SetUp() {
  const auto folder = pool::pool_folder("");
  if (folder && folder->starts_with("/var/")) GTEST_SKIP() << "this machine has a pool for all its users: " << *folder;
  const std::string file = machine_file("nv-hgxh100-8gpu-8nic");
  const auto text = read_text(file);
  ASSERT_TRUE(text);
  auto machine = parse_inventory(*text, file);
  ASSERT_TRUE(machine);
  machine_ = std::move(*machine);
  for (size_t gpu = 0; gpu < kGpus; ++gpu) {
    gpu_(gpu).status.processes = std::vector<Process>{};
    gpu_(gpu).uuid = fmt::format("GPU-{:08x}-0000-0000-0000-000000000000", 0x10 - gpu);  // not in PCI order
  }
  happens();
}

process::Environment LiveJobTest::environment() const {
  process::Environment environment = JobTest::environment();
  environment.insert(environment.end(), {{"LD_LIBRARY_PATH", library_folder("current")},
                                         {env::test_nvml.name, folder_.path("machine.json")},
                                         {env::test_nvml_faults.name, faults_},
                                         {env::probe_timeout.name, "5"}});
  return environment;
}

void LiveJobTest::happens() {
  folder_.write("next.json", to_pretty(to_json(machine_)));
  std::filesystem::rename(folder_.path("next.json"), folder_.path("machine.json"));
}

}  // namespace remuda::tests::nvml
