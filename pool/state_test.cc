#include "pool/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <utility>

namespace remuda::pool {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Jobs, NoteWhatIsHandedOutToBeChanged) {
  Jobs jobs{Job{.id = 2}, Job{.id = 4}, Job{.id = 6}};
  EXPECT_TRUE(std::as_const(jobs).find(2) && jobs.begin()->id == 2);
  EXPECT_THAT(jobs.touched(), IsEmpty()) << "who only reads";
  jobs.insert(Job{.id = 5});
  jobs.push_back(Job{.id = 7});
  jobs.find(4)->name = "one";
  jobs.edit(*std::as_const(jobs).find(4)).name = "two";
  jobs.back().name = "last";
  jobs[0].name = "first";
  EXPECT_EQ(jobs.find(3), nullptr);
  EXPECT_THAT(jobs.touched(), ElementsAre(2, 4, 5, 7));
  EXPECT_EQ(std::as_const(jobs)[2].id, 5) << "at its place";
  jobs.forget_touched();
  EXPECT_THAT(jobs.touched(), IsEmpty());
}

}  // namespace
}  // namespace remuda::pool
