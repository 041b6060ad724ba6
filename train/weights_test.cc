#include "train/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <torch/script.h>

#include "base/testing/scratch_folder.h"
#include "train/testing/capped_memory.h"
#include "train/testing/cases.h"
#include "weights/writer.h"

namespace remuda::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using weights::DType;

constexpr auto kNothing = [] {};

std::map<std::string, torch::Tensor> all_of(Model& model) {
  std::map<std::string, torch::Tensor> all;
  for (const auto& tensors : {model.named_parameters(), model.named_buffers()})
    for (const NamedTensor& one : tensors) all.emplace(one.name, one.tensor.detach().clone());
  return all;
}

void expect_same(Model& a, Model& b) {
  const auto of_a = all_of(a), of_b = all_of(b);
  ASSERT_EQ(of_a.size(), of_b.size());
  for (const auto& [name, tensor] : of_a) EXPECT_TRUE(tensor.equal(of_b.at(name))) << name;
}

class TrainWeights : public ::testing::Test {
 protected:
  void write(Model& model, int steps = 1) {
    const auto written = write_weights(model, PendingFile::create(path_).value(), steps, kNothing);
    ASSERT_TRUE(written) << written.error().message;
    EXPECT_EQ(written->bytes, folder_.read("w").size());
  }

  /// A file with such tensors, all of whose bytes are `bytes`, one after the other.
  void write(weights::Header header, const std::string& bytes) {
    auto writer = weights::Writer::create(PendingFile::create(path_).value(), std::move(header)).value();
    ASSERT_TRUE(writer.append(std::as_bytes(std::span(bytes))));
    ASSERT_TRUE(writer.commit());
  }

  /// Why the file does not fit the model, which must not be changed then.
  std::string refusal(Model& model) {
    const auto before = all_of(model);
    const auto loaded = load_weights(model, path_);
    if (loaded) return "none";
    EXPECT_EQ(loaded.error().kind, ErrorKind::usage);
    EXPECT_EQ(loaded.error().message.find('\n'), std::string::npos);
    for (const auto& [name, tensor] : all_of(model)) EXPECT_TRUE(tensor.equal(before.at(name))) << name;
    return loaded.error().message;
  }

  /// A TorchScript model with one parameter `weight`.
  std::unique_ptr<Model> script(const torch::Tensor& weight) {
    torch::jit::Module module("scale");
    module.register_parameter("weight", weight.detach().requires_grad_(), false);
    module.define("def forward(self, x):\n  return x * self.weight.sum()\n");
    module.save(folder_.path("model.pt"));
    return make_model({.path = folder_.path("model.pt")}, {}).value();
  }

  const ScratchFolder folder_;
  const std::string path_ = folder_.path("w");
};

TEST_F(TrainWeights, OfEachKindOfModelComeBackAsTheyWere) {
  auto cases = testing::model_cases();
  cases.push_back(cases[1]);
  cases.back().spec.norm = job::Norm::batch;  // has buffers, of floats and of an integer
  for (const auto& model_case : cases) {
    auto written = make_model(model_case.spec, model_case.input).value();
    const auto batch = testing::make_batch(model_case, 3, 5, torch::kFloat);
    testing::case_loss(model_case, *written, batch);  // moves running statistics
    write(*written);
    torch::manual_seed(99);
    auto read = make_model(model_case.spec, model_case.input).value();
    const auto loaded = load_weights(*read, path_);
    ASSERT_TRUE(loaded) << loaded.error().message;
    expect_same(*written, *read);
    read->set_training(false);
    written->set_training(false);
    EXPECT_TRUE(read->forward(batch.input).equal(written->forward(batch.input))) << model_case.name;
  }
}

TEST_F(TrainWeights, HaveTheModulesNamesAndSayWhereTheyAreFrom) {
  write(*testing::make_seeded(testing::model_cases()[0], torch::kFloat), 12);
  const auto reader = weights::Reader::open(path_).value();
  std::vector<std::string> names;
  for (const auto& tensor : reader.header().tensors) names.push_back(tensor.name);
  EXPECT_THAT(names, ElementsAre("layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias",
                                 "layers.2.weight", "layers.2.bias"));
  EXPECT_EQ(reader.header().metadata.at("format"), "pt");
  EXPECT_EQ(reader.header().metadata.at("steps"), "12");
  EXPECT_TRUE(reader.header().metadata.contains("remuda"));
}

TEST_F(TrainWeights, PassByInPiecesInMemoryForOnePiece) {
  const testing::CappedMemory memory;
  testing::Budget budget;
  const testing::OnDevice device(budget);
  testing::ModelCase wide{.spec = {.name = "mlp", .hidden = {8000}}, .input = {1, 28, 28, 5, 0}};
  auto model = testing::make_seeded(wide, torch::kFloat);
  const auto before = all_of(*model);
  ASSERT_GT(before.at("layers.0.weight").nbytes(), 20u << 20);
  budget.cap = budget.used + (10 << 20);
  write(*model);
  for (const auto& parameter : model->parameters()) parameter.detach().zero_();
  ASSERT_TRUE(load_weights(*model, path_));
  for (const auto& one : model->named_parameters()) EXPECT_TRUE(one.tensor.equal(before.at(one.name))) << one.name;
}

TEST_F(TrainWeights, ThatDifferInNamesAreRefusedWithTheFirstOfThem) {
  const auto cases = testing::model_cases();
  write(*testing::make_seeded(cases[1], torch::kFloat));
  auto mlp = testing::make_seeded(cases[0], torch::kFloat);
  const std::string sentence = refusal(*mlp);
  EXPECT_THAT(
      sentence,
      HasSubstr(
          path_ +
          " does not fit the model: it lacks layers.0.weight, layers.0.bias, layers.1.weight and 3 more; it has "));
  EXPECT_THAT(sentence, HasSubstr(" more, which the model has not"));
}

TEST_F(TrainWeights, ThatDifferInShapeAreRefusedWithBothShapes) {
  auto model_case = testing::model_cases()[0];
  write(*testing::make_seeded(model_case, torch::kFloat));
  model_case.spec.hidden = {24, 17};
  auto model = testing::make_seeded(model_case, torch::kFloat);
  EXPECT_EQ(refusal(*model),
            path_ + " does not fit the model: layers.1.weight has shape [16, 24], but [17, 24] in the model");
}

TEST_F(TrainWeights, AreConvertedToTheModelsTypeExactlyWhereItCanBe) {
  auto model = script(torch::zeros({4}));
  const auto weight = [&] { return model->parameters()[0].detach(); };
  const auto values = torch::tensor({1.0, -0.5, 3.140625, 65280.0}, torch::kDouble);  // exact in each of these types
  const std::pair<DType, torch::ScalarType> types[]{{DType::f16, torch::kHalf},
                                                    {DType::bf16, torch::kBFloat16},
                                                    {DType::f32, torch::kFloat},
                                                    {DType::f64, torch::kDouble}};
  for (const auto& [type, as] : types) {
    const auto stored = values.to(as);
    write({{{"weight", type, {4}}}, {}}, {static_cast<const char*>(stored.data_ptr()), stored.nbytes()});
    weight().zero_();
    ASSERT_TRUE(load_weights(*model, path_)) << name_of(type);
    EXPECT_TRUE(weight().equal(values.to(torch::kFloat))) << name_of(type);
  }
}

TEST_F(TrainWeights, OfAnotherKindOfNumberAreRefused) {
  auto model = script(torch::zeros({4}));
  write({{{"weight", DType::i32, {4}}}, {}}, std::string(16, 'x'));
  EXPECT_EQ(refusal(*model),
            path_ + " does not fit the model: weight holds I32, which is not converted to the model's Float");
  write({{{"weight", DType::f8_e4m3, {4}}}, {}}, std::string(4, 'x'));
  EXPECT_THAT(refusal(*model), HasSubstr("weight holds F8_E4M3, which is not converted"));
}

TEST_F(TrainWeights, MayLieInAnotherOrderInMemory) {
  const auto columns = torch::arange(6, torch::kFloat).view({2, 3}).t();
  ASSERT_FALSE(columns.is_contiguous());
  auto model = script(torch::zeros({3, 2}));
  model->parameters()[0].set_data(columns.clone());
  ASSERT_FALSE(model->parameters()[0].is_contiguous());
  write(*model);
  model->parameters()[0].detach().zero_();
  ASSERT_TRUE(load_weights(*model, path_));
  EXPECT_TRUE(model->parameters()[0].equal(columns));
}

/// Four values, under two names and a third that is no tied one.
class TiedWeights : public TrainWeights {
 protected:
  TiedWeights() {
    torch::jit::Module module("tied");
    const auto weight = torch::ones({4}, torch::requires_grad());
    module.register_parameter("first", weight, false);
    module.register_parameter("between", torch::zeros({4}, torch::requires_grad()), false);
    module.register_parameter("second", weight, false);
    module.define("def forward(self, x):\n  return x * self.first.sum() * self.second.sum() + self.between.sum()\n");
    module.save(folder_.path("tied.pt"));
    model_ = make_model({.path = folder_.path("tied.pt")}, {}).value();
  }

  /// A file in which each of the names has one value everywhere.
  void write_values(const std::map<std::string, float>& by_name, DType type = DType::f32) {
    weights::Header header;
    std::string bytes;
    for (const auto& [name, value] : by_name) {
      header.tensors.push_back({name, type, {4}});
      const auto stored = torch::full({4}, value).to(type == DType::f16 ? torch::kHalf : torch::kFloat);
      bytes.append(static_cast<const char*>(stored.data_ptr()), stored.nbytes());
    }
    write(std::move(header), bytes);
  }
  bool holds(float first, float between) const {
    return model_->parameters()[0].eq(first).all().item<bool>() &&
           model_->parameters()[1].eq(between).all().item<bool>();
  }

  std::unique_ptr<Model> model_;
};

TEST_F(TiedWeights, StandThereUnderEachName) {
  model_->parameters()[0].detach().fill_(3);
  write(*model_);
  const auto reader = weights::Reader::open(path_).value();
  std::map<std::string, float> last;
  for (const weights::TensorInfo& tensor : reader.header().tensors) {
    std::vector<float> values(4);
    ASSERT_TRUE(reader.read(tensor, 0, std::as_writable_bytes(std::span(values))));
    last[tensor.name] = values.back();
  }
  EXPECT_EQ(last, (std::map<std::string, float>{{"between", 0}, {"first", 3}, {"second", 3}}));
}

TEST_F(TiedWeights, MayHaveAnyOfTheirNames) {
  write_values({{"between", 1}, {"second", 2}});
  ASSERT_TRUE(load_weights(*model_, path_));
  EXPECT_TRUE(holds(2, 1));
  write_values({{"between", 5}, {"first", 4}, {"second", 4}}, DType::f16);
  ASSERT_TRUE(load_weights(*model_, path_));
  EXPECT_TRUE(holds(4, 5));
  write_values({{"between", 5}, {"first", NAN}, {"second", NAN}});
  EXPECT_TRUE(load_weights(*model_, path_)) << "not alike for a comparison of numbers only";
}

TEST_F(TiedWeights, OfUnlikeValuesAreRefusedWithBothNames) {
  write_values({{"between", 1}, {"first", 2}, {"second", 2.5}});
  EXPECT_EQ(refusal(*model_), path_ +
                                  " does not fit the model: first and second are one tensor there, but have unlike "
                                  "values in the file");
  EXPECT_TRUE(holds(1, 0));
}

TEST_F(TrainWeights, GoAsTorchScriptWithTheirProgramAndNoMore) {
  torch::jit::Module module("line");
  for (const char* name : {"slope", "offset"})
    module.register_parameter(name, torch::zeros({1000}, torch::requires_grad()), false);
  module.register_parameter("again", module.attr("slope").toTensor(), false);
  module.define("def forward(self, x):\n  return x * self.slope + self.offset + self.again\n");
  module.save(folder_.path("model.pt"));
  auto model = make_model({.path = folder_.path("model.pt")}, {}).value();
  const auto flat = torch::arange(100'000, torch::kFloat);  // as trained: parts of all parameters
  model->parameters()[0].set_data(flat.narrow(0, 50'000, 1000));
  model->parameters()[1].set_data(flat.narrow(0, 20'000, 1000));

  const auto written = write_script(*model, PendingFile::create(path_).value(), kNothing);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(written->bytes, folder_.read("w").size());
  EXPECT_LT(written->bytes, 20'000u) << "not the memory of which they are parts";
  auto read = make_model({.path = path_}, {});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ((*read)->parameters().size(), 2u) << "to be trained, and tied, as before";
  expect_same(*model, **read);
  EXPECT_EQ(model->parameters()[0].storage().data(), flat.storage().data()) << "the model itself stays as it is";
}

}  // namespace
}  // namespace remuda::train
