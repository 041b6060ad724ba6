#include "train/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::train {
namespace {

TEST(Labels, AllHaveNamesInErrors) {
  EXPECT_EQ(label::text_of(3), "bucket 3");
  EXPECT_EQ(label::text_of(label::kUserBarrier), "Group::barrier");
  EXPECT_EQ(label::text_of(label::kFirstNorm + 5), "a batch norm");
  for (uint32_t label = label::kStructure; label <= label::kFirstNorm; ++label)
    EXPECT_THAT(label::text_of(label),
                testing::Not(testing::AnyOf(testing::HasSubstr("bucket"), testing::HasSubstr("("))))
        << label - label::kFirst << " is neither named nor a bucket: " << label::text_of(label);
}

}  // namespace
}  // namespace remuda::train
