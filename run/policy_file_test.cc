#include "run/policy_file.h"

#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"
#include "pool/shared_pool.h"

namespace remuda::run {
namespace {

TEST(PolicyFile, OfThePoolForAllUsersIsOneFileHoweverThePoolIsNamed) {
  const ScratchFolder folder;
  const std::string file = folder.write("policy.toml", "");
  EXPECT_EQ(policy_path(pool::kSharedPool, file), file);
  EXPECT_EQ(policy_path(std::string(pool::kSharedPool) + "/", file), file);
  EXPECT_NE(policy_path("/somewhere", file), file);
}

TEST(PolicyFile, IsAbsentOnlyWhereThereIsNoSuchName) {
  const ScratchFolder folder;
  EXPECT_EQ(policy_path(pool::kSharedPool, folder.path("none")), "");
  EXPECT_EQ(policy_path(pool::kSharedPool, folder.path("none/policy.toml")), "");
  folder.link("gone", "/nowhere/policy.toml");
  EXPECT_EQ(policy_path(pool::kSharedPool, folder.path("gone")), folder.path("gone")) << "what it was cannot be read";
}

}  // namespace
}  // namespace remuda::run
