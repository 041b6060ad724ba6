// Descriptors of files: owned, written, and told apart from those that are gone.
#include <fcntl.h>
#include <filesystem>
#include <gmock/gmock.h>
#include <unistd.h>

#include "base/file.h"
#include "base/testing/scratch_folder.h"

namespace remuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CheckKept, FailsOnceTheLastNameIsRemoved) {
  const ScratchFolder folder;
  const Fd file(::open(folder.path("log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_TRUE(check_kept(file.get(), "log"));
  std::filesystem::rename(folder.path("log"), folder.path("other"));
  EXPECT_TRUE(check_kept(file.get(), "log"));
  std::filesystem::remove(folder.path("other"));
  EXPECT_EQ(check_kept(file.get(), "log").error().message, "cannot write log: it was removed meanwhile");
}

TEST(WriteAll, SaysWhereItFailed) {
  const Fd full(::open("/dev/full", O_WRONLY));
  ASSERT_TRUE(full);
  const auto done = write_all(full.get(), "x", "/dev/full");
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, AllOf(HasSubstr("/dev/full"), HasSubstr("No space left")));
}

TEST(FdTest, ClosesWhatItOwnsOnce) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Fd in(ends[0]);
  const Fd out(ends[1]);
  Fd other = std::move(in);
  EXPECT_FALSE(in);  // NOLINT(bugprone-use-after-move): what is left in it is what is tested
  EXPECT_EQ(::fcntl(other.get(), F_GETFD), 0);
  other.reset();
  EXPECT_EQ(::fcntl(ends[0], F_GETFD), -1);
}

}  // namespace
}  // namespace remuda
