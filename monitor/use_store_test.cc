#include "monitor/use_store.h"

#include <gmock/gmock.h>

#include "base/testing/scratch_folder.h"

namespace remuda::monitor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

LeaseUse use(int64_t job, double last_s, double busy_s = 1) {
  return {.job = job, .device = "card", .user = "ana", .since_s = 100, .last_s = last_s, .held_s = 2, .busy_s = busy_s};
}

TEST(UseStore, KeepsLeasesAndReplacesThem) {
  const ScratchFolder folder;
  {
    auto store = UseStore::open(folder.path());
    ASSERT_TRUE(store);
    ASSERT_TRUE(store->write({use(1, 110), use(2, 120)}));
    ASSERT_TRUE(store->write({use(1, 130, 5)}));
  }
  auto store = UseStore::open(folder.path());
  ASSERT_TRUE(store);
  EXPECT_THAT(store->read(0).value(), ElementsAre(use(1, 130, 5), use(2, 120)));
  EXPECT_THAT(store->read(125).value(), ElementsAre(use(1, 130, 5)));
}

TEST(UseStore, ForgetsTheOldest) {
  const ScratchFolder folder;
  auto store = UseStore::open(folder.path());
  std::vector<LeaseUse> many;
  for (int64_t i = 1; i <= UseStore::kMostKept + 1; ++i) many.push_back(use(i, 100 + static_cast<double>(i)));
  ASSERT_TRUE(store->write(many));
  const auto kept = store->read(0).value();
  EXPECT_EQ(kept.size(), static_cast<size_t>(UseStore::kMostKept));
  EXPECT_EQ(kept.back().job, 2);
}

TEST(UseStore, LeavesOutARecordThatIsWrongAndNamesIt) {
  const ScratchFolder folder;
  auto store = UseStore::open(folder.path());
  ASSERT_TRUE(store->write({use(1, 110), use(2, 120), use(3, 130)}));
  auto database = sqlite::Database::open(folder.path("history.db"));
  ASSERT_TRUE((*database)->execute("UPDATE use SET record = '{\"job\": \"x\"}' WHERE job = 2"));
  EXPECT_THAT(store->read(0).value(), ElementsAre(use(3, 130), use(1, 110)));
  EXPECT_THAT(store->left_out(), HasSubstr("1 records of leases are left out: the use of card by job 2.job must be a "
                                           "whole number"));
  ASSERT_TRUE((*database)->execute("UPDATE use SET record = 'no JSON' WHERE job = 2"));
  EXPECT_THAT(store->read(0).value(), ElementsAre(use(3, 130), use(1, 110)));
  EXPECT_THAT(store->left_out(), HasSubstr("by job 2"));
  EXPECT_THAT(store->read(125).value(), ElementsAre(use(3, 130)));
  EXPECT_EQ(store->left_out(), "");
}

}  // namespace
}  // namespace remuda::monitor
