#include "cli/train/train_inputs.h"

#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"
#include "data/testing/pictures.h"

namespace remuda::cli {
namespace {

using testing::HasSubstr;

/// Small data files in a folder of their own.
class TrainInputs : public testing::Test {
 protected:
  TrainInputs() {
    job_.train.global_batch = 4;
    job_.devices = {{"cpu:0"}, {"cpu:1"}};
    job_.data.train = {.images = images("train", 2, 3), .labels = labels("train", {0, 1, 2})};
    job_.data.test = job::DataFiles{.images = images("test", 2, 2), .labels = labels("test", {2, 0})};
  }
  /// `count` square images of `side` pixels.
  std::string images(const std::string& name, char side, char count) {
    const char header[]{0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, side, 0, 0, 0, side};
    return folder_.write(name + "-images", std::string(header, sizeof header) + std::string(count * side * side, 'p'));
  }
  std::string labels(const std::string& name, const std::vector<char>& values) {
    const char header[]{0, 0, 8, 1, 0, 0, 0, static_cast<char>(values.size())};
    return folder_.write(name + "-labels",
                         std::string(header, sizeof header) + std::string(values.begin(), values.end()));
  }
  std::string refusal() const {
    const auto checked = check_inputs(job_);
    if (checked) return "none";
    EXPECT_EQ(checked.error().kind, ErrorKind::usage);
    return checked.error().message;
  }

  ScratchFolder folder_;
  job::TrainJob job_;
};

TEST_F(TrainInputs, ThatFitAreAccepted) { EXPECT_EQ(refusal(), "none"); }

TEST_F(TrainInputs, NeedASampleForEachDevice) {
  job_.train.global_batch = 1;
  EXPECT_EQ(refusal(), "train.global_batch is 1, but each of the 2 devices needs at least one sample");
}

TEST_F(TrainInputs, MissingFilesAreNamed) {
  job_.data.test->labels = folder_.path("absent");
  EXPECT_THAT(refusal(), HasSubstr(folder_.path("absent") + ": No such file or directory"));
}

TEST_F(TrainInputs, AMissingModelFileIsNamed) {
  job_.model.path = folder_.path("model.pt");
  EXPECT_THAT(refusal(), HasSubstr(folder_.path("model.pt") + ": No such file or directory"));
}

TEST_F(TrainInputs, AFileOfTorchSaveIsRefusedWithTheWayToTorchScript) {
  const std::string end = "PK\x05\x06";
  const std::string names =
      std::string("PK\x03\x04") + "model/data.pkl ... PK\x01\x02 model/data.pkl model/version " + end;
  job_.model.path = folder_.write("model.pt", names);
  EXPECT_THAT(refusal(), HasSubstr(folder_.path("model.pt") + " is a file of torch.save()"));
  EXPECT_THAT(refusal(), HasSubstr("torch.jit.script(module).save(FILE)"));
  job_.model.path = folder_.write("model.pt", names + "model/constants.pkl model/code/" + end);
  EXPECT_EQ(refusal(), "none") << "TorchScript";
  job_.model.path = folder_.write("model.pt", "hello");
  EXPECT_THAT(refusal(), HasSubstr("model.pt is no TorchScript file; in Python, torch.jit.script(module)"));
}

TEST_F(TrainInputs, AModelFileThatWasCutShortIsDamaged) {
  job_.model.path = folder_.write("model.pt", std::string("PK\x03\x04") + "model/data.pkl model/constants.pkl");
  EXPECT_THAT(refusal(), HasSubstr("model.pt is a damaged TorchScript file: its end is missing"));
}

TEST_F(TrainInputs, DataOfOtherKindsIsRefusedWithTheFormats) {
  for (const char* bytes : {"label,pixel0,pixel1\n3,0,255\n", "\x89PNG\r\n\x1a\n"}) {
    job_.data.train.images = folder_.write("data", bytes);
    EXPECT_THAT(refusal(), HasSubstr("training reads folders and tar files"));
  }
  job_.data.train.images = folder_.path("");
  EXPECT_THAT(refusal(), HasSubstr(" is a folder; training reads folders and tar files"));
}

TEST_F(TrainInputs, TestImagesMustHaveTheShapeOfTheTrainingImages) {
  job_.data.test->images = images("wide", 3, 2);
  EXPECT_EQ(refusal(), folder_.path("wide-images") +
                           " has images of 1x3x3, but those to train on are 1x2x2 "
                           "(channels x height x width)");
}

TEST_F(TrainInputs, TestLabelsMustNotGoBeyondTheTrainingLabels) {
  job_.data.test->labels = labels("more", {0, 5});
  EXPECT_EQ(refusal(), folder_.path("more-labels") + " has label 5, but the largest to train on is 2");
}

/// Image folders, by the names of their classes.
class TrainInputsOfFolders : public TrainInputs {
 protected:
  TrainInputsOfFolders() {
    job_.data = {.format = job::DataFormat::images, .train = {.path = folder("train", {"cat", "dog"})}};
    job_.data.test = job::DataFiles{.path = folder("test", {"cat", "dog"})};
  }
  std::string folder(const std::string& name, const std::vector<std::string>& classes, int side = 4) {
    for (const std::string& of : classes) {
      std::filesystem::create_directories(folder_.path(fmt::format("{}/{}", name, of)));
      folder_.write(fmt::format("{}/{}/1.png", name, of), data::png_file(data::plain({side, side}, {1, 2, 3})));
    }
    return folder_.path(name);
  }
};

TEST_F(TrainInputsOfFolders, ThatFitAreAccepted) { EXPECT_EQ(refusal(), "none"); }

TEST_F(TrainInputsOfFolders, MustHaveTheSameClasses) {
  job_.data.test->path = folder("fewer", {"dog"});
  EXPECT_EQ(refusal(), folder_.path("train") + " has the class cat, but " + folder_.path("fewer") +
                           " has not; both must have the same");
  job_.data.test->path = folder("more", {"cat", "dog", "emu"});
  EXPECT_EQ(refusal(), folder_.path("more") + " has the class emu, but " + folder_.path("train") +
                           " has not; both must have the same");
}

TEST_F(TrainInputsOfFolders, MustHaveOneSizeUnlessTheyAreBroughtToOne) {
  job_.data.test->path = folder("large", {"cat", "dog"}, 5);
  EXPECT_THAT(refusal(), HasSubstr("large has images of 3x5x5, but those to train on are 3x4x4"));
  job_.data.size = 4;
  EXPECT_EQ(refusal(), "none");
}

TEST_F(TrainInputsOfFolders, TheFirstImageOfEachClassIsDecoded) {
  folder_.write("train/dog/1.png", std::string("\x89PNG\r\n\x1a\n") + "and nothing");
  EXPECT_THAT(refusal(), HasSubstr("train/dog/1.png is a damaged PNG file"));
}

TEST_F(TrainInputsOfFolders, NeedAMeanForEachChannel) {
  job_.data.mean = job_.data.std = {0.5};
  EXPECT_THAT(refusal(), HasSubstr("data.mean and data.std must have a number for each channel; the images have 3"));
  job_.data.color = job::Color::gray;
  EXPECT_EQ(refusal(), "none");
}

TEST_F(TrainInputsOfFolders, OtherFilesAreRefusedWithTheFormats) {
  job_.data.train.path = folder_.write("data.csv", "label,pixel0,pixel1\n3,0,255\n");
  EXPECT_THAT(refusal(), HasSubstr("data.csv is text (CSV, JSON or the like); training reads folders and tar files"));
}

TEST_F(TrainInputs, CifarMustBeOfOneKind) {
  job_.data = {.format = job::DataFormat::cifar, .train = {.path = folder_.write("train.bin", std::string(3073, 1))}};
  EXPECT_EQ(refusal(), "none");
  job_.data.test.emplace().path = folder_.write("test.bin", std::string(3074, 1));
  EXPECT_EQ(refusal(),
            folder_.path("test.bin") + " is of CIFAR-100, but " + folder_.path("train.bin") + " of CIFAR-10");
  job_.data.train.path = folder_.write("train.bin", "label,pixel0,pixel1\n3,0,255\n");
  EXPECT_THAT(refusal(), HasSubstr("is text (CSV, JSON or the like); training reads"));
}

TEST_F(TrainInputs, ATransformIsATorchScriptFile) {
  job_.data.transform = folder_.write("transform.pt", "hello");
  EXPECT_THAT(refusal(), HasSubstr("transform.pt is no TorchScript file; in Python, torch.jit.script(module)"));
  job_.data.transform = folder_.path("none.pt");
  EXPECT_THAT(refusal(), HasSubstr("none.pt: No such file or directory"));
}

TEST_F(TrainInputs, TokensMustBeOfTheVocabulary) {
  job_.data = {.format = job::DataFormat::tokens,
               .train = {.tokens = folder_.write("tokens", std::string("\1\0\2\0\3\0", 6))}};
  job_.data.context = 2;
  job_.model.vocabulary = 4;
  EXPECT_EQ(refusal(), "none");
  job_.model.vocabulary = 3;
  EXPECT_THAT(refusal(), HasSubstr(folder_.path("tokens")));
}

}  // namespace
}  // namespace remuda::cli
