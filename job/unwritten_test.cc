#include "job/unwritten.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"

namespace remuda::job {
namespace {

TEST(Unwritten, SaysWhatIsNeededAndWhatIsFree) {
  EXPECT_EQ(text_of({"weights", "cannot write w: No space left on device", 8 << 20, 12 << 10}),
            "the weights: cannot write w: No space left on device (8.0 MiB are needed, 12.0 KiB are free)");
  EXPECT_EQ(text_of({"checkpoint", "cannot make k", 0, 0}), "the last checkpoint: cannot make k (0 B are free)");
  EXPECT_EQ(text_of({"trace", "cannot write t"}), "the trace: cannot write t") << "nothing else is known";
}

TEST(Unwritten, OfARunIsOneSentence) {
  EXPECT_EQ(unwritten_text({}), "");
  EXPECT_EQ(unwritten_text({{"step_times", "cannot write s"}, {"tensorboard", "cannot write b"}}),
            "not all that the run was to leave could be written: the step times: cannot write s; what TensorBoard "
            "shows: cannot write b");
}

TEST(Unwritten, IsInTheReport) {
  const Unwritten one{"weights", "cannot write w", 5, 7};
  const std::vector<Unwritten> read = unwritten_in({{"unwritten", {to_json(one), to_json({"trace", "cannot"})}}});
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(text_of(read[0]), text_of(one));
  EXPECT_EQ(text_of(read[1]), "the trace: cannot");
  for (const Json& odd : {Json(), Json(7), Json{{"unwritten", 3}}, Json{{"unwritten", nullptr}}})
    EXPECT_TRUE(unwritten_in(odd).empty());
  EXPECT_EQ(text_of(unwritten_in({{"unwritten", {3}}}).at(0)), ": ");
}

TEST(Unwritten, CountsWhatIsFreeWhereTheFileBelongs) {
  const ScratchFolder folder;
  EXPECT_TRUE(unwritten("weights", "", folder.path("w")).free_bytes);
  EXPECT_TRUE(unwritten("weights", "", folder.path("gone/w")).free_bytes) << "of the folder above";
}

}  // namespace
}  // namespace remuda::job
