#include "cli/train/train_init.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"
#include "cli/train/train_inputs.h"
#include "data/testing/pictures.h"
#include "job/train_job.h"

namespace remuda::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// An IDX file of square images, or of labels 0, 1, 2, 0, 1, ...
void write_idx_images(const ScratchFolder& folder, const std::string& name, char count, char side) {
  const char header[]{0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, side, 0, 0, 0, side};
  folder.write(name, std::string(header, sizeof header) + std::string(size_t(count * side * side), 'p'));
}

void write_idx_labels(const ScratchFolder& folder, const std::string& name, char count) {
  std::string bytes{0, 0, 8, 1, 0, 0, 0, count};
  for (char i = 0; i < count; ++i) bytes += static_cast<char>(i % 3);
  folder.write(name, bytes);
}

void write_token_file(const ScratchFolder& folder, const std::string& name, int count, int below) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += {static_cast<char>(i % below), static_cast<char>(i % below >> 8)};
  folder.write(name, bytes);
}

/// The job as training would read it; it must be valid.
job::TrainJob written_job(const ScratchFolder& folder) {
  const auto written = write_first_job(folder.path());
  EXPECT_TRUE(written) << written.error().message;
  const std::string text = folder.read("job.toml");
  auto parsed = job::parse_job(text, folder.path("job.toml"));
  EXPECT_TRUE(parsed) << parsed.error().message << "\n" << text;
  const auto checked = check_inputs(parsed->job);
  EXPECT_TRUE(checked) << checked.error().message;
  return parsed->job;
}

TEST(TrainInit, PairsImagesWithTheirLabelsByCountAndName) {
  const ScratchFolder folder;
  write_idx_images(folder, "t10k-images", 60, 4);
  write_idx_labels(folder, "t10k-labels", 60);
  write_idx_images(folder, "train-images", 60, 4);
  write_idx_labels(folder, "train-labels", 60);
  folder.write("README.md", "Images of the letter p, sixty of them.");
  const job::TrainJob job = written_job(folder);
  EXPECT_EQ(job.model.name, "resnet");
  EXPECT_EQ(job.data.train.images, folder.path("train-images"));
  EXPECT_EQ(job.data.train.labels, folder.path("train-labels"));
  ASSERT_TRUE(job.data.test);
  EXPECT_EQ(job.data.test->images, folder.path("t10k-images"));
  EXPECT_EQ(job.data.test->labels, folder.path("t10k-labels"));
}

TEST(TrainInit, TakesTheLargerSetWhereNamesSayNothing) {
  const ScratchFolder folder;
  write_idx_images(folder, "a", 20, 4);
  write_idx_labels(folder, "a.labels", 20);
  write_idx_images(folder, "b", 90, 4);
  write_idx_labels(folder, "b.labels", 90);
  write_idx_images(folder, "wide", 10, 5);  // of another shape: not for testing
  write_idx_labels(folder, "wide.labels", 10);
  const job::TrainJob job = written_job(folder);
  EXPECT_EQ(job.data.train.images, folder.path("b"));
  ASSERT_TRUE(job.data.test);
  EXPECT_EQ(job.data.test->images, folder.path("a"));
  EXPECT_THAT(first_job(folder.path())->summary, HasSubstr("resnet on 90 images of 1x4x4 in 3 classes, tested on 20"));
}

void write_image_folder(const ScratchFolder& folder, const std::string& name, data::PictureSize size) {
  for (const char* of : {"/cat", "/dog"}) {
    std::filesystem::create_directories(folder.path(name + of));
    folder.write(name + of + "/1.png", data::png_file(data::slopes(size)));
  }
}

TEST(TrainInit, TakesFoldersOfImagesToTrainAndToTest) {
  const ScratchFolder folder;
  write_image_folder(folder, "val", {8, 8});
  write_image_folder(folder, "train", {8, 8});
  const job::TrainJob job = written_job(folder);
  EXPECT_EQ(job.data.format, job::DataFormat::images);
  EXPECT_EQ(job.data.train.path, folder.path("train"));
  EXPECT_EQ(job.data.test->path, folder.path("val"));
  EXPECT_EQ(job.data.size, 0) << "all are of one size";
  EXPECT_THAT(first_job(folder.path())->summary, HasSubstr("resnet on 2 image files in 2 classes, tested on 2"));
}

TEST(TrainInit, BringsImagesOfSeveralSizesToOne) {
  const ScratchFolder folder;
  write_image_folder(folder, ".", {40, 60});
  folder.write("dog/2.png", data::png_file(data::slopes({50, 30})));
  const job::TrainJob job = written_job(folder);
  EXPECT_EQ(job.data.train.path, folder.path(""));
  EXPECT_EQ(job.data.size, 30);
  EXPECT_FALSE(job.data.test);
}

TEST(TrainInit, TakesTarFilesOfImages) {
  const ScratchFolder folder;
  const std::string image = data::png_file(data::slopes({300, 300}));
  folder.write("train.tar", data::tar_file({{"cat/1.png", image}, {"dog/1.png", image}}));
  const job::TrainJob job = written_job(folder);
  EXPECT_EQ(job.data.train.path, folder.path("train.tar"));
  EXPECT_EQ(job.data.size, 224) << "larger images are shrunk";
}

TEST(TrainInit, TakesCifarFromTheFolderOfItsArchive) {
  const ScratchFolder folder;
  const std::string set = "cifar-10-batches-bin/";
  std::filesystem::create_directory(folder.path(set));
  const auto records = [](int count) {
    std::string bytes;
    for (int i = 0; i < count; ++i) bytes += static_cast<char>(i % 10) + std::string(3072, 'p');
    return bytes;
  };
  folder.write(set + "batches.meta.txt", "airplane\nautomobile\n");
  folder.write(set + "data_batch_1.bin", records(20));
  folder.write(set + "data_batch_2.bin", records(10));
  folder.write(set + "test_batch.bin", records(10));
  const job::TrainJob job = written_job(folder);
  EXPECT_EQ(job.data.format, job::DataFormat::cifar);
  EXPECT_EQ(job.data.train.path, folder.path("cifar-10-batches-bin"));
  ASSERT_TRUE(job.data.test);
  EXPECT_EQ(job.data.test->path, job.data.train.path);
}

TEST(TrainInit, TokensTrainAGptOfTheirVocabulary) {
  const ScratchFolder folder;
  write_token_file(folder, "train.bin", 1000, 300);
  write_token_file(folder, "val.bin", 100, 310);
  const job::TrainJob job = written_job(folder);
  EXPECT_EQ(job.model.name, "gpt");
  EXPECT_EQ(job.model.vocabulary, 300) << "val.bin ends at 99";
  EXPECT_EQ(job.data.train.tokens, folder.path("train.bin"));
  ASSERT_TRUE(job.data.test);
  EXPECT_EQ(job.data.test->tokens, folder.path("val.bin"));
  EXPECT_EQ(job.data.context, 50) << "the smaller file has two windows";
}

TEST(TrainInit, TextTrainsAGptOfBytes) {
  const ScratchFolder folder;
  folder.write("b.txt", std::string(9'000, 'b'));
  folder.write("a.txt", std::string(10'999, 'a'));
  EXPECT_FALSE(first_job(folder.path())) << "too little to learn from";
  folder.write("empty.txt", "");
  folder.write("c.txt", "\xff");
  const job::TrainJob job = written_job(folder);
  EXPECT_EQ(job.model.vocabulary, 256);
  EXPECT_EQ(job.data.train.tokens, folder.path("train.tokens"));
  ASSERT_TRUE(job.data.test);
  EXPECT_EQ(job.data.test->tokens, folder.path("test.tokens"));
  EXPECT_EQ(folder.read("train.tokens").size(), 2 * 18'000u);
  EXPECT_EQ(folder.read("train.tokens").substr(2 * 10'998, 4), std::string("a\0b\0", 4)) << "in the order of names";
  EXPECT_EQ(folder.read("test.tokens").size(), 2 * 2'000u);
  EXPECT_THAT(folder.read("test.tokens"), testing::EndsWith(std::string("\xff\0", 2)));
}

TEST(TrainInit, TakesTheTorchScriptModelThatLiesThere) {
  const ScratchFolder folder;
  write_idx_images(folder, "images", 30, 4);
  write_idx_labels(folder, "labels", 30);
  folder.write("my \"best\" model.pt", "PK\x03\x04 model/constants.pkl model/data.pkl PK\x05\x06");
  folder.write("weights.pt", "PK\x03\x04 weights/data.pkl PK\x05\x06");
  EXPECT_EQ(written_job(folder).model.path, folder.path("my \"best\" model.pt"));
}

TEST(TrainInit, FolderWithoutDataIsRefusedWithWhatIsThereAndWhatIsLookedFor) {
  const ScratchFolder folder;
  const auto refusal = [&] { return write_first_job(folder.path()).error().message; };
  EXPECT_THAT(refusal(), HasSubstr("has no data to train on (no files at all); looked for are folders and tar files"));
  folder.write("digits.csv", "label,pixel0,pixel1\n3,0,255\n");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("(1 file, one of them digits.csv: text"), HasSubstr("docs/train.md")));
  write_idx_images(folder, "images", 30, 4);
  EXPECT_THAT(refusal(), HasSubstr("(2 files")) << "images without labels";
  EXPECT_FALSE(folder.has("job.toml"));
  EXPECT_THAT(write_first_job(folder.path("absent")).error().message, HasSubstr("cannot read the folder"));
}

TEST(TrainInit, AJobFileThatIsThereStays) {
  const ScratchFolder folder;
  write_idx_images(folder, "images", 30, 4);
  write_idx_labels(folder, "labels", 30);
  folder.write("job.toml", "mine");
  const auto refused = write_first_job(folder.path());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
  EXPECT_THAT(refused.error().message, HasSubstr("job.toml is there already"));
  EXPECT_EQ(folder.read("job.toml"), "mine");
}

}  // namespace
}  // namespace remuda::cli
