#include "checkpoint/store.h"

#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/testing/scratch_folder.h"
#include "checkpoint/export.h"
#include "checkpoint/testing/files.h"
#include "weights/reader.h"

namespace remuda::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Store : public ::testing::Test {
 protected:
  /// A checkpoint of two ranks, who own the halves of a weight.
  Stored write(int64_t step) {
    const Stored stored = begin(folder_.path(), step).value();
    const auto value = float(step);
    write_pieces(path(stored, file_of_rank(0)), {{"parameter/w@0", {value, value}}, {"buffer/mean@0", {value}}});
    write_pieces(path(stored, file_of_rank(1)), {{"parameter/w@2", {-value, -value}}, {"buffer/mean@0", {0}}});
    Manifest manifest{.step = step,
                      .tensors = {{"w", weights::DType::f32, {2, 2}, false}, {"mean", weights::DType::f32, {}, true}}};
    for (const int rank : {0, 1}) manifest.files.push_back(describe(stored.folder, file_of_rank(rank)));
    EXPECT_TRUE(publish(stored, manifest));
    return stored;
  }
  static std::string path(const Stored& stored, const std::string& file) {
    return (fs::path(stored.folder) / file).string();
  }
  std::vector<int64_t> steps() {
    std::vector<int64_t> steps;
    const auto all = stored_in(folder_.path());
    for (const Stored& one : all.value()) steps.push_back(one.step);
    return steps;
  }
  const ScratchFolder folder_;
};

TEST_F(Store, HasWhatWasPublishedInTheOrderOfTheirSteps) {
  write(1000);
  write(20);
  ASSERT_TRUE(begin(folder_.path(), 30)) << "which is not published";
  folder_.write("step-abc", "");
  fs::create_directory(folder_.path("step-"));
  EXPECT_THAT(steps(), ElementsAre(20, 1000));
  EXPECT_THAT(stored_in(folder_.path("none")).value(), IsEmpty());
}

TEST_F(Store, TheNewestThatIsWholeIsFoundAndDamageIsNamed) {
  write(10);
  const Stored cut = write(20), flipped = write(30), torn = write(40);
  fs::resize_file(path(cut, file_of_rank(1)), 16);
  flip_bit(path(flipped, file_of_rank(0)), -1);
  flip_bit(path(torn, "manifest.json"), 0);
  const Newest newest = newest_whole(folder_.path()).value();
  ASSERT_TRUE(newest.found);
  EXPECT_EQ(newest.found->at.step, 10);
  ASSERT_EQ(newest.passed_over.size(), 3U);
  EXPECT_THAT(newest.passed_over[0], HasSubstr("step-000000040"));
  EXPECT_THAT(newest.passed_over[1], HasSubstr("step-000000030/rank-0.safetensors is damaged: its sum is"));
  EXPECT_THAT(newest.passed_over[2], HasSubstr("step-000000020/rank-1.safetensors is damaged: it has 16 bytes"));
}

TEST_F(Store, BeforeItIsLoadedReadersPartTheLengthsAmongThem) {
  const Stored stored = write(10);
  flip_bit(path(stored, file_of_rank(0)), -1);  // which shows while it is loaded
  fs::resize_file(path(stored, file_of_rank(1)), 1 + fs::file_size(path(stored, file_of_rank(1))));
  EXPECT_TRUE(look_at(stored, {.number = 0, .all = 2}));
  EXPECT_FALSE(look_at(stored, {.number = 1, .all = 2}));
  EXPECT_TRUE(look_at(stored, {.number = 2, .all = 3})) << "nothing is left for it";
  EXPECT_FALSE(verify(stored));
}

TEST_F(Store, WithoutAllOfItsFilesThereIsNoCheckpoint) {
  const Stored stored = write(10);
  const Manifest manifest = read_manifest(stored).value();
  const std::string file = path(stored, file_of_rank(1));
  for (const int more : {-1, 1}) {
    fs::resize_file(file, manifest.files[1].bytes + uint64_t(more));
    EXPECT_THAT(publish(stored, manifest, 0).error().message, HasSubstr("rank-1.safetensors is not there")) << more;
  }
  std::filesystem::remove(file);
  EXPECT_THAT(publish(stored, manifest, 0).error().message, HasSubstr("must have the same checkpoint.folder"));
}

constexpr double kLong_s = 60;  // by then a test has failed
constexpr std::chrono::milliseconds kMoment(50);

TEST_F(Store, AFileThatIsSeenLaterIsWaitedFor) {
  const Stored stored = write(10);
  const Manifest manifest = read_manifest(stored).value();
  const std::string file = path(stored, file_of_rank(1)), elsewhere = folder_.path("elsewhere");
  fs::rename(file, elsewhere);
  auto published = std::async(std::launch::async, [&] { return publish(stored, manifest, kLong_s); });
  EXPECT_EQ(published.wait_for(kMoment), std::future_status::timeout);
  fs::rename(elsewhere, file);
  EXPECT_TRUE(published.get());
}

TEST_F(Store, OfVersion1TheSumsAreComparedBeforeItIsLoaded) {
  const Stored stored = write(10);
  Manifest manifest = read_manifest(stored).value();
  manifest.version = 1;
  for (StoredFile& file : manifest.files) {
    const std::string text = read_text(path(stored, file.name)).value();
    file.sums = {XXH3_64bits(text.data(), text.size())};
  }
  ASSERT_TRUE(publish(stored, manifest));
  EXPECT_EQ(look_at(stored, {.number = 1, .all = 2}), manifest);
  EXPECT_EQ(verify(stored), manifest);
  EXPECT_TRUE(write_model({stored, manifest}, false, folder_.path("model.safetensors")));
  flip_bit(path(stored, file_of_rank(1)), -1);
  EXPECT_TRUE(look_at(stored, {.number = 0, .all = 2}));
  EXPECT_THAT(look_at(stored, {.number = 1, .all = 2}).error().message, HasSubstr("is damaged: its sum is"));
  EXPECT_THAT(verify(stored).error().message, HasSubstr("rank-1.safetensors is damaged: its sum is"));
}

TEST_F(Store, OneThatIsWrittenAnewIsNoneUntilItIsPublished) {
  write(10);
  const Stored again = write(20);
  ASSERT_TRUE(begin(folder_.path(), 20));
  EXPECT_EQ(newest_whole(folder_.path()).value().found->at.step, 10);
  EXPECT_THAT(steps(), ElementsAre(10));
  EXPECT_EQ(place_of(folder_.path(), 20).folder, again.folder);
}

TEST_F(Store, OldOnesAndLeftoversAreRemoved) {
  for (const int64_t step : {10, 20, 30, 40}) write(step);
  ASSERT_TRUE(begin(folder_.path(), 35)) << "of a run that was killed";
  ASSERT_TRUE(begin(folder_.path(), 50)) << "may be under way";
  folder_.write("notes.txt", "the user's own");
  ASSERT_TRUE(remove_old(folder_.path(), 40, 2));
  EXPECT_THAT(steps(), ElementsAre(30, 40));
  EXPECT_FALSE(fs::exists(place_of(folder_.path(), 35).folder));
  EXPECT_TRUE(fs::exists(place_of(folder_.path(), 50).folder));
  EXPECT_TRUE(fs::exists(folder_.path("notes.txt")));
}

// A run that has gone on from 10, as 20 is damaged, writes 15: that is the newest of its own.
TEST_F(Store, OneThatWasPassedOverTakesNoPlaceOfTheNew) {
  for (const int64_t step : {10, 15, 20}) write(step);
  flip_bit(path(place_of(folder_.path(), 20), file_of_rank(0)), 100);
  ASSERT_TRUE(remove_old(folder_.path(), 15, 1));
  EXPECT_THAT(steps(), ElementsAre(15, 20));
  EXPECT_EQ(newest_whole(folder_.path()).value().found->at.step, 15);
}

TEST_F(Store, WhatCannotBeRemovedKeepsNoOtherOne) {
  for (const int64_t step : {10, 20, 30}) write(step);
  const std::string manifest = path(place_of(folder_.path(), 20), "manifest.json");
  fs::remove(manifest);
  fs::create_directories(manifest + "/a");  // a folder that is not empty cannot be removed as a file is
  EXPECT_THAT(remove_old(folder_.path(), 30, 1).error().message, HasSubstr("step-000000020"));
  EXPECT_FALSE(fs::exists(place_of(folder_.path(), 10).folder));
}

TEST_F(Store, OfALinkOnlyTheLinkIsRemoved) {
  const Stored elsewhere = write(10);
  const std::string aside = folder_.path("aside");
  fs::rename(elsewhere.folder, aside);
  fs::create_directory_symlink(aside, elsewhere.folder);
  write(20);
  ASSERT_TRUE(remove_old(folder_.path(), 20, 1));
  EXPECT_THAT(steps(), ElementsAre(20));
  EXPECT_TRUE(fs::exists(aside + "/manifest.json"));
}

TEST_F(Store, OneThatIsGivenUpTakesNoRoom) {
  const Stored begun = begin(folder_.path(), 10).value();
  write_pieces(path(begun, file_of_rank(1)), {{"parameter/w@0", {1}}});
  abandon(begun);
  EXPECT_FALSE(fs::exists(begun.folder));
}

TEST_F(Store, AManifestThatIsAPipeIsNotWaitedFor) {
  const Stored stored = write(10);
  const std::string manifest = path(stored, "manifest.json");
  fs::remove(manifest);
  ASSERT_EQ(::mkfifo(manifest.c_str(), 0600), 0);
  const Fd writer(::open(manifest.c_str(), O_RDWR));  // who never writes
  EXPECT_THAT(newest_whole(folder_.path()).value().passed_over, ElementsAre(HasSubstr("it is not a regular file")));
}

TEST_F(Store, AFolderIsOfOneRunAtATime) {
  {
    const auto first = Claim::take(folder_.path("runs"), 0);
    ASSERT_TRUE(first);
    EXPECT_EQ(Claim::take(folder_.path("runs"), 0).error().message,
              "another run writes its checkpoints to " + folder_.path("runs") +
                  "; give each run a checkpoint.folder of its own");
    EXPECT_TRUE(Claim::take(folder_.path("others"), 0));
  }
  EXPECT_TRUE(Claim::take(folder_.path("runs"), 0));
  EXPECT_TRUE(Claim::take(folder_.write("file", "") + "/runs", 0)) << "what cannot be written is said when it is tried";
}

TEST_F(Store, ARunThatIsEndingIsWaitedFor) {
  std::optional<Claim> ending = Claim::take(folder_.path("runs"), 0).value();
  auto next = std::async(std::launch::async, [&] { return Claim::take(folder_.path("runs"), kLong_s); });
  EXPECT_EQ(next.wait_for(kMoment), std::future_status::timeout);
  ending.reset();
  EXPECT_TRUE(next.get());
}

TEST_F(Store, AFolderIsFreeWhenItsRunHasEndedAlthoughAProcessOfItHasNot) {
  std::optional<Claim> claim = Claim::take(folder_.path("runs"), 0).value();
  const Fd inherited(::dup(claim->fd()));
  EXPECT_FALSE(Claim::take(folder_.path("runs"), 0));
  claim.reset();
  EXPECT_TRUE(Claim::take(folder_.path("runs"), 0));
}

TEST_F(Store, AManifestInTheFolderOfAnotherStepIsRefused) {
  const Stored stored = write(10);
  fs::rename(stored.folder, place_of(folder_.path(), 99).folder);
  EXPECT_THAT(newest_whole(folder_.path()).value().passed_over, ElementsAre(HasSubstr("is of step 10")));
}

TEST_F(Store, ATiedTensorIsExportedUnderEachName) {
  const Stored stored = write(3);
  Found found{stored, verify(stored).value()};
  found.manifest.run["tied"] = {{"head", "w"}, {"w", "head"}, {"lost", "nothing"}, {"odd", 7}};
  ASSERT_TRUE(write_model(found, false, folder_.path("model.safetensors")));
  const auto reader = weights::Reader::open(folder_.path("model.safetensors")).value();
  const auto head = std::ranges::find(reader.header().tensors, "head", &weights::TensorInfo::name);
  ASSERT_NE(head, reader.header().tensors.end());
  std::vector<float> values(4);
  ASSERT_TRUE(reader.read(*head, 0, std::as_writable_bytes(std::span(values))));
  EXPECT_THAT(values, ElementsAre(3, 3, -3, -3));
  EXPECT_EQ(reader.header().tensors.size(), found.manifest.tensors.size() + 1) << "what is no name of one adds nothing";
}

TEST_F(Store, TheModelIsExportedWhole) {
  const Stored stored = write(3);
  const Found found{stored, verify(stored).value()};
  ASSERT_TRUE(write_model(found, false, folder_.path("model.safetensors")));
  const auto reader = weights::Reader::open(folder_.path("model.safetensors")).value();
  EXPECT_EQ(reader.header().metadata.at("steps"), "3");
  for (const weights::TensorInfo& tensor : reader.header().tensors) {
    std::vector<float> values(tensor.bytes() / sizeof(float));
    ASSERT_TRUE(reader.read(tensor, 0, std::as_writable_bytes(std::span(values))));
    if (tensor.name == "w")
      EXPECT_THAT(values, ElementsAre(3, 3, -3, -3));
    else
      EXPECT_THAT(values, ElementsAre(3));
  }
  EXPECT_THAT(write_model(found, true, folder_.path("a")).error().message, HasSubstr("has no average"));
  EXPECT_FALSE(fs::exists(folder_.path("a")));
}

}  // namespace
}  // namespace remuda::checkpoint
