#include "comm/nccl/lib.h"

#include <dlfcn.h>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"
#include "comm/testing/standin_library.h"

namespace remuda::comm::nccl {
namespace {

using ::testing::HasSubstr;

TEST(LoadNccl, SaysInOneSentenceThatThereIsNone) {
  const auto lib = load_lib("libno-such-thing.so.1", {"/no/such/folder"});
  ASSERT_FALSE(lib);
  EXPECT_EQ(lib.error().message, "libno-such-thing.so.1 is not installed");
}

TEST(LoadNccl, RefusesALibraryWithoutItsCalls) {
  const auto lib = load_lib("libm.so.6", {});
  ASSERT_FALSE(lib);
  EXPECT_EQ(lib.error().message, "libm.so.6 lacks ncclGetVersion");
}

TEST(LoadNccl, TellsWhyAFileIsNoLibrary) {
  const ScratchFolder folder;
  folder.write("libbroken.so.2", "not a library");
  const auto lib = load_lib("libbroken.so.2", {folder.path()});
  ASSERT_FALSE(lib);
  EXPECT_THAT(lib.error().message, HasSubstr("libbroken.so.2 cannot be loaded: "));
}

TEST(LoadNccl, LooksInFoldersThatTheSystemDoesNotKnow) {
  Dl_info library{};
  ASSERT_NE(::dladdr(reinterpret_cast<const void*>(&standin_library_calls), &library), 0);
  const ScratchFolder folder;
  folder.link("libelsewhere.so.1", std::filesystem::canonical(library.dli_fname).string());
  EXPECT_FALSE(load_lib("libelsewhere.so.1", {}));
  EXPECT_TRUE(load_lib("libelsewhere.so.1", {"/no/such/folder", folder.path()}));
}

TEST(LoadNccl, TakesTheOneThatIsLoadedAlready) {
  const auto lib = load_lib("libnccl.so.2", {});
  ASSERT_TRUE(lib);
  int version = 0;
  set_standin_version(29901);
  EXPECT_EQ(lib->get_version(&version), kSuccess);
  EXPECT_EQ(version, 29901) << "the stand-in answers";
}

TEST(LoadNccl, ReadsVersionsOldAndNew) {
  EXPECT_EQ(version_text(2804), "2.8.4");
  EXPECT_EQ(version_text(21403), "2.14.3");
  EXPECT_EQ(version_code(2, 14, 0), kLeastVersion);
  EXPECT_EQ(file_of("cuda"), "libnccl.so.2");
  EXPECT_EQ(file_of("hip"), "librccl.so.1");
}

}  // namespace
}  // namespace remuda::comm::nccl
