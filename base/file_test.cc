#include "base/file.h"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <vector>

#include "base/env.h"
#include "base/testing/scratch_folder.h"

namespace remuda {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uid_t kNobody = 65534;

/// Root may write everywhere; what other users may not do is tried as the user "nobody".
class AsOrdinaryUser {
 public:
  AsOrdinaryUser() { ok_ = !was_root_ || ::seteuid(kNobody) == 0; }
  ~AsOrdinaryUser() {
    if (was_root_ && ::seteuid(0) != 0) std::abort();
  }
  bool ok() const { return ok_; }

 private:
  const bool was_root_ = ::geteuid() == 0;
  bool ok_ = false;
};

class FileTest : public ::testing::Test {
 protected:
  FileTest() { fs::permissions(folder_.path(), fs::perms(0755)); }

  std::string path(const std::string& name) const { return folder_.path(name); }
  std::vector<std::string> names() const { return folder_.names(); }

  static void put(const std::string& path, std::string_view content) {
    auto file = PendingFile::create(path);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(file->commit(content));
  }

  static mode_t mode(const std::string& path) {
    struct stat info{};
    return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
  }

  ScratchFolder folder_;
};

using PendingFileTest = FileTest;
using MappedFileTest = FileTest;
using ReadTest = FileTest;

std::string refusal(const std::string& path) {
  const auto file = PendingFile::create(path);
  if (file) return "not refused";
  EXPECT_EQ(file.error().kind, ErrorKind::usage);
  return file.error().message;
}

TEST_F(PendingFileTest, IsThereWholeAfterCommitAndNotBefore) {
  auto file = PendingFile::create(path("report.json"));
  ASSERT_TRUE(file);
  EXPECT_THAT(names(), ::testing::Not(::testing::Contains("report.json")));
  ASSERT_TRUE(file->commit("content"));
  EXPECT_EQ(read_text(path("report.json")).value(), "content");
  EXPECT_THAT(names(), ElementsAre("report.json"));
}

TEST_F(PendingFileTest, TakesItsContentInPieces) {
  auto file = PendingFile::create(path("report.json"));
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->append("con"));
  ASSERT_TRUE(file->append("tent"));
  EXPECT_THAT(names(), ::testing::Not(::testing::Contains("report.json")));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(read_text(path("report.json")).value(), "content");
}

TEST_F(PendingFileTest, LeavesNothingWithoutCommit) {
  {
    ASSERT_TRUE(PendingFile::create(path("report.json")));
  }
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(PendingFileTest, LeavesTheOldContentWithoutCommit) {
  put(path("report.json"), "old");
  {
    ASSERT_TRUE(PendingFile::create(path("report.json")));
  }
  EXPECT_EQ(read_text(path("report.json")).value(), "old");
}

TEST_F(PendingFileTest, LeavesNothingWhenItsProcessIsKilled) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto file = PendingFile::create(path("report.json"));
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const Fd unnamed(::open(folder_.path().c_str(), O_TMPFILE | O_WRONLY, 0600));
  if (!unnamed) GTEST_SKIP() << "this file system has no O_TMPFILE";
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(PendingFileTest, ReplacesTheContentAndKeepsThePermissions) {
  put(path("report.json"), "a longer old content");
  fs::permissions(path("report.json"), fs::perms(0640));
  put(path("report.json"), "new");
  EXPECT_EQ(read_text(path("report.json")).value(), "new");
  EXPECT_EQ(mode(path("report.json")), 0640u);
  EXPECT_THAT(names(), ElementsAre("report.json"));
}

TEST_F(PendingFileTest, ANewFileObeysTheUmask) {
  const mode_t before = ::umask(027);
  put(path("new"), "x");
  ::umask(before);
  EXPECT_EQ(mode(path("new")), 0640u);
}

TEST_F(PendingFileTest, WritesThroughASymbolicLink) {
  fs::create_directory(path("real"));
  fs::create_symlink("real/file", path("link"));
  put(path("link"), "first");
  put(path("link"), "second");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_text(path("real/file")).value(), "second");
}

TEST_F(PendingFileTest, AStrangersLinkWhereEverybodyMayPutFilesIsRefused) {
  fs::create_directory(path("open"));
  fs::permissions(path("open"), fs::perms::all | fs::perms::sticky_bit);
  fs::create_symlink(path("victim"), path("open/link"));
  EXPECT_TRUE(PendingFile::create(path("open/link"))) << "it is this user's own";
  if (::lchown(path("open/link").c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root makes others' links";
  EXPECT_THAT(PendingFile::create(path("open/link")).error().message, HasSubstr("it is another user's link"));
  fs::permissions(path("open"), fs::perms::owner_all);
  EXPECT_TRUE(PendingFile::create(path("open/link"))) << "who owns the folder has let it in";
}

TEST_F(PendingFileTest, ALoopOfLinksIsRefused) {
  fs::create_symlink("b", path("a"));
  fs::create_symlink("a", path("b"));
  EXPECT_THAT(refusal(path("a")), HasSubstr("Too many levels of symbolic links"));
}

TEST_F(PendingFileTest, TwoOfOneNameDoNotDisturbEachOther) {
  auto first = PendingFile::create(path("same"));
  auto second = PendingFile::create(path("same"));
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(second->commit("second"));
  ASSERT_TRUE(first->commit("first"));
  EXPECT_EQ(read_text(path("same")).value(), "first");
  EXPECT_THAT(names(), ElementsAre("same"));
}

TEST_F(PendingFileTest, MayHaveTheLongestName) {
  put(path(std::string(255, 'n')), "x");
  EXPECT_THAT(refusal(path(std::string(256, 'n'))), HasSubstr("File name too long"));
}

TEST_F(PendingFileTest, MayBeInTheWorkingFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  put("bare", "x");
  fs::current_path(before);
  EXPECT_EQ(read_text(path("bare")).value(), "x");
}

TEST_F(PendingFileTest, CanBeMoved) {
  auto file = PendingFile::create(path("moved"));
  ASSERT_TRUE(file);
  PendingFile other = std::move(*file);
  ASSERT_TRUE(other.commit("x"));
  EXPECT_THAT(names(), ElementsAre("moved"));
}

TEST_F(PendingFileTest, AMissingFolderIsRefusedByName) {
  EXPECT_EQ(refusal(path("no/such/file")),
            fmt::format("cannot write {}: there is no folder {}", path("no/such/file"), path("no/such")));
}

TEST_F(PendingFileTest, AFileInPlaceOfTheFolderIsRefused) {
  put(path("file"), "x");
  EXPECT_THAT(refusal(path("file/below")), HasSubstr("Not a directory"));
}

TEST_F(PendingFileTest, AFolderIsRefused) {
  fs::create_directory(path("folder"));
  for (const char* name : {"folder", "folder/"}) EXPECT_THAT(refusal(path(name)), HasSubstr("Is a directory"));
  EXPECT_THAT(refusal(""), HasSubstr("cannot write"));
}

TEST_F(PendingFileTest, WhatIsNoRegularFileIsRefused) {
  EXPECT_EQ(refusal("/dev/null"), "cannot write /dev/null: it is not a regular file");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal(path("pipe")), HasSubstr("not a regular file"));
}

TEST_F(PendingFileTest, AReadOnlyFileIsRefusedForRootToo) {
  put(path("kept"), "old");
  fs::permissions(path("kept"), fs::perms(0444));
  EXPECT_THAT(refusal(path("kept")), HasSubstr("read-only"));
  EXPECT_EQ(read_text(path("kept")).value(), "old");
  EXPECT_THAT(names(), ElementsAre("kept"));
}

TEST_F(PendingFileTest, AFolderThatCannotBeWrittenIsRefused) {
  fs::permissions(folder_.path(), fs::perms(0555));
  const AsOrdinaryUser user;
  ASSERT_TRUE(user.ok());
  EXPECT_THAT(refusal(path("new")), HasSubstr("Permission denied"));
}

TEST_F(PendingFileTest, AFileOfSomebodyElseIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a file of somebody else";
  put(path("theirs"), "old");
  fs::permissions(folder_.path(), fs::perms(0777));
  const AsOrdinaryUser user;
  ASSERT_TRUE(user.ok());
  EXPECT_THAT(refusal(path("theirs")), HasSubstr("Permission denied"));
}

TEST_F(PendingFileTest, AFolderThatVanishesFailsTheCommit) {
  fs::create_directory(path("gone"));
  auto file = PendingFile::create(path("gone/file"));
  ASSERT_TRUE(file);
  fs::remove_all(path("gone"));
  const auto done = file->commit("x");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::failed);
}

TEST_F(PendingFileTest, AFolderThatMovedFailsTheCommit) {
  for (const bool is_made_anew : {false, true}) {
    fs::create_directory(path("out"));
    auto file = PendingFile::create(path("out/file"));
    ASSERT_TRUE(file);
    fs::rename(path("out"), path("moved"));
    if (is_made_anew) fs::create_directory(path("out"));
    const auto done = file->commit("x");
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::failed);
    EXPECT_EQ(done.error().message,
              fmt::format("cannot write {}: its folder was moved or removed meanwhile", path("out/file")));
    EXPECT_FALSE(fs::exists(path("moved/file")) || fs::exists(path("out/file")));
    fs::remove_all(path("out")), fs::remove_all(path("moved"));
  }
}

TEST_F(PendingFileTest, AFailedCommitLeavesTheFolderAsItWas) {
  auto file = PendingFile::create(path("taken"));
  ASSERT_TRUE(file);
  fs::create_directory(path("taken"));
  EXPECT_FALSE(file->commit("x"));
  {
    const PendingFile ended = std::move(*file);
  }
  EXPECT_THAT(names(), ElementsAre("taken"));
}

/// Whole pages from a page's beginning, and all that is not.
TEST_F(PendingFileTest, HasTheSameBytesPastTheCache) {
  constexpr size_t kPage = 4096;
  std::string source(8 * kPage, ' ');
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i * 31 / 7);
  const size_t page = kPage - reinterpret_cast<uintptr_t>(source.data()) % kPage;
  for (const auto& [begin, size] : std::vector<std::pair<size_t, size_t>>{
           {page, 0}, {page, 1}, {page, 2 * kPage}, {page, 2 * kPage + 5}, {page + 8, 2 * kPage}}) {
    auto file = PendingFile::create(path("direct"));
    file->bypass_cache();
    const auto piece = std::string_view(source).substr(begin, size);
    ASSERT_TRUE(file->append(piece));
    ASSERT_TRUE(file->append(source));
    ASSERT_TRUE(file->commit());
    EXPECT_EQ(read_text(path("direct")).value(), std::string(piece) + source);
  }
}

TEST_F(PendingFileTest, ASecondCommitIsABug) {
  auto file = PendingFile::create(path("once"));
  ASSERT_TRUE(file->commit("x"));
  EXPECT_DEATH(std::ignore = file->commit("y"), "called once");
}

TEST_F(MappedFileTest, ShowsTheBytesAfterTheDescriptorIsClosed) {
  put(path("data"), "abc");
  auto fd = open_for_reading(path("data"));
  ASSERT_TRUE(fd);
  auto file = MappedFile::map(fd->get(), "data");
  fd->reset();
  ASSERT_TRUE(file);
  EXPECT_THAT(file->bytes(), ElementsAre(std::byte('a'), std::byte('b'), std::byte('c')));
}

TEST_F(MappedFileTest, AnEmptyFileIsAnEmptyMapping) {
  put(path("empty"), "");
  auto file = MappedFile::map(open_for_reading(path("empty"))->get(), "empty");
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->bytes().empty());
}

TEST_F(MappedFileTest, CanBeMoved) {
  put(path("data"), "abc");
  auto file = MappedFile::map(open_for_reading(path("data"))->get(), "data");
  MappedFile other = std::move(*file);
  MappedFile third;
  third = std::move(other);
  EXPECT_EQ(third.bytes().size(), 3u);
  EXPECT_TRUE(file->bytes().empty());
}

TEST_F(MappedFileTest, RefusesWhatCannotBeMapped) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Fd in(ends[0]), out(ends[1]);
  EXPECT_EQ(MappedFile::map(in.get(), "a pipe").error().message, "cannot read a pipe: it is not a regular file");
  EXPECT_EQ(MappedFile::map(-1, "nothing").error().message, "cannot read nothing: Bad file descriptor");
}

TEST_F(ReadTest, RefusesWhatIsNotThereOrIsAFolder) {
  EXPECT_EQ(read_text(path("none")).error().message,
            fmt::format("cannot read {}: No such file or directory", path("none")));
  EXPECT_EQ(read_text(folder_.path()).error().message,
            fmt::format("cannot read {}: it is a directory, not a file", folder_.path()));
}

TEST_F(ReadTest, RefusesAFileThatMayNotBeRead) {
  put(path("secret"), "x");
  fs::permissions(path("secret"), fs::perms(0000));
  const AsOrdinaryUser user;
  ASSERT_TRUE(user.ok());
  EXPECT_THAT(read_text(path("secret")).error().message, HasSubstr("Permission denied"));
}

TEST_F(ReadTest, TakesTheLimitAndNotAByteMore) {
  put(path("text"), "12345");
  EXPECT_EQ(read_text(path("text"), 5).value(), "12345");
  EXPECT_THAT(read_text(path("text"), 4).error().message, HasSubstr("it is larger than 4 B"));
}

TEST_F(ReadTest, OpensOnlyRegularFilesAndNeverWaits) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(open_for_reading(path("pipe")).error().message,
            fmt::format("cannot read {}: it is not a regular file", path("pipe")));
  EXPECT_THAT(open_for_reading("/dev/null").error().message, HasSubstr("it is not a regular file"));
}

TEST_F(ReadTest, TakesAPipeForAText) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(path("pipe")) << "from a pipe"; });
  EXPECT_EQ(read_text(path("pipe")).value(), "from a pipe");
  writer.join();
}

TEST_F(ReadTest, ReadsMoreThanOneBufferful) {
  const std::string large(300'000, 'x');
  put(path("large"), large);
  EXPECT_EQ(read_text(path("large")).value(), large);
}

TEST_F(FileTest, AScratchFileHasNoName) {
  ::setenv(env::tmpdir.name, folder_.path().c_str(), 1);
  const auto file = scratch_file();
  ASSERT_TRUE(file);
  ASSERT_TRUE(write_all(file->get(), "abc", "scratch"));
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_EQ(MappedFile::map(file->get(), "scratch")->bytes().size(), 3u);
  ::setenv(env::tmpdir.name, path("none").c_str(), 1);
  EXPECT_THAT(scratch_file().error().message, HasSubstr(path("none")));
  ::setenv(env::tmpdir.name, "", 1);
  EXPECT_TRUE(scratch_file());
  ::unsetenv(env::tmpdir.name);
}

}  // namespace
}  // namespace remuda
