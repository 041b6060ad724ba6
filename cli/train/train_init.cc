#include "cli/train/train_init.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/letter_case.h"
#include "base/text.h"
#include "cli/train/script_file.h"
#include "data/cifar.h"
#include "data/foreign.h"
#include "data/idx.h"
#include "data/image_files.h"
#include "data/image_set.h"
#include "data/token_set.h"

namespace remuda::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMostContext = 128;
constexpr int kAnyToken = 1 << 16;
constexpr uint64_t kMostBatch = 256, kLeastBatch = 8;

/// An IDX file by its name in the folder.
struct Array {
  std::string name;
  data::IdxHeader header;
  uint32_t count() const { return header.dimensions[0]; }
};

struct Pair {
  std::string images, labels;
  uint64_t count = 0;
};

/// A folder or archive of images by its name in the folder.
struct ImageFolder {
  std::string name;
  data::ImageFiles images;
};

enum class Use { unknown, train, test };

Use use_of(const std::string& folder) {
  const std::string name = lower(folder);
  if (name.find("train") != std::string::npos) return Use::train;
  for (const char* word : {"test", "t10k", "val", "eval", "dev"})
    if (name.find(word) != std::string::npos) return Use::test;
  return Use::unknown;
}

size_t common_prefix(const std::string& a, const std::string& b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

/// Sorts by use, then by size: the first is to train on, the second, if there is one, to test with.
template <typename T, typename Name, typename Size>
void sort_by_use(std::vector<T>& all, Name name, Size size) {
  const auto rank = [&](const T& one) {
    const Use use = use_of(name(one));
    return use == Use::train ? 0 : use == Use::unknown ? 1 : 2;
  };
  std::ranges::stable_sort(
      all, [&](const T& a, const T& b) { return rank(a) != rank(b) ? rank(a) < rank(b) : size(a) > size(b); });
}

std::string toml_string(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"";
}

class Folder {
 public:
  static Result<Folder> open(const std::string& path) {
    Folder folder;
    folder.path_ = path;
    std::error_code error;
    for (auto entry = fs::directory_iterator(path, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
      std::error_code ignored;
      const std::string name = entry->path().filename().string();
      if (entry->is_regular_file(ignored) && printable(name) == name) folder.names_.push_back(name);
    }
    if (error) return usage_error(fmt::format("cannot read the folder {}: {}", path, error.message()));
    std::ranges::sort(folder.names_);
    return folder;
  }

  std::string full(const std::string& name) const { return (fs::path(path_) / name).string(); }

  std::vector<std::string> ending_in(std::initializer_list<const char*> endings) const {
    std::vector<std::string> found;
    for (const auto& name : names_)
      if (std::ranges::any_of(endings, [&](const char* ending) { return name.ends_with(ending); }))
        found.push_back(name);
    return found;
  }

  /// Each array of images with the array of as many labels whose name is most similar.
  std::vector<Pair> pairs() const {
    std::vector<Array> images, labels;
    for (const auto& name : names_) {
      const auto file = data::open_idx(full(name));
      if (!file) continue;
      (file->header.dimensions.size() == 1 ? labels : images).push_back({name, file->header});
    }
    std::vector<Pair> pairs;
    for (const Array& image : images) {
      if (image.header.dimensions.size() < 3) continue;
      const Array* best = nullptr;
      for (const Array& label : labels) {
        if (label.count() != image.count()) continue;
        if (!best || common_prefix(image.name, label.name) > common_prefix(image.name, best->name)) best = &label;
      }
      if (best) pairs.push_back({image.name, best->name, image.count()});
    }
    sort_by_use(pairs, [](const Pair& pair) { return pair.images; }, [](const Pair& pair) { return pair.count; });
    return pairs;
  }

  /// Folders and archives of images, by their names in the folder; "." where it is one itself.
  std::vector<ImageFolder> image_folders() const {
    std::vector<ImageFolder> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(path_, error))
      if (entry.is_directory(error) || entry.path().extension() == ".tar")
        if (const std::string name = entry.path().filename().string(); printable(name) == name)
          if (auto set = data::ImageFiles::open(full(name), {})) found.push_back({name, std::move(*set)});
    const bool named = std::ranges::any_of(found, [](const auto& one) { return use_of(one.name) == Use::train; });
    if (auto whole = data::ImageFiles::open(path_, {}); whole && !named) {
      found.clear();
      found.push_back({".", std::move(*whole)});
    }
    std::ranges::sort(found, {}, &ImageFolder::name);
    sort_by_use(
        found, [](const ImageFolder& one) { return one.name; },
        [](const ImageFolder& one) { return one.images.size(); });
    return found;
  }

  /// The folder of CIFAR's binary files by its name in the folder: "." where it is one itself; empty where none is.
  std::string cifar() const {
    std::vector<std::string> names{"."};
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(path_, error))
      if (entry.is_directory(error)) names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    for (const std::string& name : names) {
      const bool labelled = fs::exists(fs::path(full(name)) / "batches.meta.txt", error) ||
                            fs::exists(fs::path(full(name)) / "fine_label_names.txt", error);
      if (labelled && printable(name) == name && data::CifarSet::open(full(name), data::Split::train)) return name;
    }
    return "";
  }

  std::vector<std::string> tokens() const {
    std::vector<std::string> files;
    for (const auto& name : ending_in({".bin", ".tokens"}))
      if (data::foreign_kind(full(name)).empty() && data::TokenSet::open(full(name), 1, kAnyToken))
        files.push_back(name);
    sort_by_use(
        files, [](const std::string& name) { return name; },
        [&](const std::string& name) { return fs::file_size(full(name)); });
    return files;
  }

  /// None where there is less than a model could learn from: then they explain the other files.
  std::vector<std::string> texts() const {
    constexpr uint64_t kLeastText = 20'000;
    const auto files = ending_in({".txt"});
    uint64_t bytes = 0;
    for (const auto& name : files) bytes += fs::file_size(full(name));
    return bytes >= kLeastText ? files : std::vector<std::string>();
  }

  /// The only TorchScript file; none where there are several.
  std::string model() const {
    std::vector<std::string> models;
    for (const auto& name : ending_in({".pt", ".pth", ".ts"}))
      if (check_script_file(full(name), "model.path")) models.push_back(name);
    return models.size() == 1 ? models[0] : "";
  }

  /// "3 files, one of them a.csv: text (CSV, JSON or the like)".
  std::string content() const {
    if (names_.empty()) return "no files at all";
    std::string text = counted(double(names_.size()), "file");
    for (const auto& name : names_)
      if (const std::string kind = data::foreign_kind(full(name)); !kind.empty())
        return text + fmt::format(", one of them {}: {}", name, kind);
    return text;
  }

 private:
  std::string path_;
  std::vector<std::string> names_;
};

std::string train_table(uint64_t samples, const char* rates) {
  const uint64_t batch = std::clamp(samples / 20, kLeastBatch, kMostBatch);
  return fmt::format("[train]\nepochs = 5\nglobal_batch = {}\n{}\n", batch, rates);
}

constexpr const char* kHead =
    "# Written by `remuda train --init`. Every key is explained by `remuda train --help-keys`.\n"
    "# It trains on all CPU devices, unless [[device]] names others or [placement] asks for GPUs.\n\n";

std::string model_table(const std::string& path, const std::string& built_in) {
  return "[model]\n" + (path.empty() ? built_in : "path = " + toml_string(path) + "\n") + "\n";
}

Result<FirstJob> image_job(const Folder& folder, const std::vector<Pair>& pairs) {
  const auto open = [&](const Pair& pair) {
    return data::ImageSet::open(folder.full(pair.images), folder.full(pair.labels));
  };
  REMUDA_ASSIGN(const data::ImageSet train, open(pairs[0]));
  const Pair* test = nullptr;
  for (size_t i = 1; i < pairs.size() && !test; ++i)
    if (const auto set = open(pairs[i]); set && set->shape() == train.shape() && set->classes() <= train.classes())
      test = &pairs[i];
  const auto files = [](const char* table, const Pair& pair) {
    return fmt::format("[data.{}]\nimages = {}\nlabels = {}\n\n", table, toml_string(pair.images),
                       toml_string(pair.labels));
  };
  const std::string model = folder.model();
  const auto& shape = train.shape();
  FirstJob job;
  job.text = kHead + model_table(model, "name = \"resnet\"\n") + "[data]\nformat = \"idx\"\n\n" +
             files("train", pairs[0]) + (test ? files("test", *test) : "") +
             train_table(train.size(), "optimizer = \"adamw\"\nlearning_rate = 0.003\nschedule = \"cosine\"");
  job.summary = fmt::format("{} on {} images of {}x{}x{} in {} classes", model.empty() ? "resnet" : model, train.size(),
                            shape.channels, shape.height, shape.width, train.classes());
  if (test) job.summary += fmt::format(", tested on {}", test->count);
  return job;
}

/// The height and width to bring images to: none where those looked at, evenly spread, have one size that is no larger
/// than is usual.
Result<int> size_to_train_at(const data::ImageFiles& images) {
  constexpr int kUsual = 224;
  constexpr size_t kLookedAt = 64;
  std::vector<data::PictureSize> sizes;
  for (size_t i = 0; i < images.size(); i += std::max<size_t>(1, images.size() / kLookedAt)) {
    REMUDA_ASSIGN(const data::PictureSize size, images.size_of(i));
    sizes.push_back(size);
  }
  int side = kUsual;
  for (const auto& size : sizes) side = std::min({side, size.height, size.width});
  const bool same = std::ranges::count(sizes, sizes[0]) == std::ssize(sizes);
  return same && std::max(sizes[0].height, sizes[0].width) <= kUsual ? 0 : side;
}

Result<FirstJob> image_folder_job(const Folder& folder, const std::vector<ImageFolder>& found) {
  const data::ImageFiles& train = found[0].images;
  REMUDA_ASSIGN(const int size, size_to_train_at(train));
  const auto fits = [&](const ImageFolder& one) {
    return one.images.class_names() == train.class_names() && (size > 0 || one.images.shape() == train.shape());
  };
  const auto test = std::find_if(found.begin() + 1, found.end(), fits);
  const std::string model = folder.model();
  FirstJob job;
  job.text = kHead + model_table(model, "name = \"resnet\"\n") + "[data]\nformat = \"images\"\n" +
             (size > 0 ? fmt::format("size = {}\n", size) : "") + "train = " + toml_string(found[0].name) + "\n" +
             (test != found.end() ? "test = " + toml_string(test->name) + "\n" : "") + "\n" +
             train_table(train.size(), "optimizer = \"adamw\"\nlearning_rate = 0.003\nschedule = \"cosine\"");
  job.summary = fmt::format("{} on {} image files in {} classes", model.empty() ? "resnet" : model, train.size(),
                            train.classes());
  if (test != found.end()) job.summary += fmt::format(", tested on {}", test->images.size());
  return job;
}

Result<FirstJob> cifar_job(const Folder& folder, const std::string& name) {
  REMUDA_ASSIGN(const data::CifarSet train, data::CifarSet::open(folder.full(name), data::Split::train));
  const auto test = data::CifarSet::open(folder.full(name), data::Split::test);
  const bool has_test = test && test->classes() == train.classes();
  const std::string model = folder.model();
  FirstJob job;
  job.text = kHead + model_table(model, "name = \"resnet\"\n") +
             "[data]\nformat = \"cifar\"\nflip = \"on\"\ncrop = 4\ntrain = " + toml_string(name) + "\n" +
             (has_test ? "test = " + toml_string(name) + "\n" : "") + "\n" +
             train_table(train.size(), "optimizer = \"adamw\"\nlearning_rate = 0.003\nschedule = \"cosine\"");
  job.summary =
      fmt::format("{} on {} images of CIFAR-{}", model.empty() ? "resnet" : model, train.size(), train.classes());
  if (has_test) job.summary += fmt::format(", tested on {}", test->size());
  return job;
}

Result<FirstJob> token_job(const Folder& folder, const std::vector<std::string>& files) {
  const auto size = [&](const std::string& name) { return fs::file_size(folder.full(name)) / 2; };
  const bool has_test = files.size() > 1;
  const uint64_t smallest = has_test ? std::min(size(files[0]), size(files[1])) : size(files[0]);
  const int context = int(std::clamp<uint64_t>(smallest / 2, 1, kMostContext));
  int vocabulary = 1;
  for (size_t i = 0; i < (has_test ? 2u : 1u); ++i) {
    REMUDA_ASSIGN(const data::TokenSet all, data::TokenSet::open(folder.full(files[i]), 1, kAnyToken));
    for (size_t window = 0; window < all.size(); ++window)
      for (const uint16_t token : all.window(window)) vocabulary = std::max(vocabulary, token + 1);
  }
  const std::string model = folder.model();
  FirstJob job;
  job.text = kHead +
             model_table(model, fmt::format("name = \"gpt\"\nwidth = 64\ndepth = 2\nheads = 4\nvocabulary = {}\n",
                                            vocabulary)) +
             fmt::format("[data]\nformat = \"tokens\"\ncontext = {}\ntrain = {}\n", context, toml_string(files[0])) +
             (has_test ? fmt::format("test = {}\n", toml_string(files[1])) : "") + "\n" +
             train_table(size(files[0]) / uint64_t(context),
                         "optimizer = \"adamw\"\nlearning_rate = 0.001\nschedule = \"cosine\"");
  job.summary = fmt::format("{} on {} tokens", model.empty() ? "gpt" : model, size(files[0]));
  if (has_test) job.summary += fmt::format(", tested on {}", size(files[1]));
  return job;
}

/// A token for each byte.
std::string tokens_of(std::string_view text) {
  std::string bytes;
  bytes.reserve(2 * text.size());
  for (const char c : text) bytes += {c, '\0'};
  return bytes;
}

/// All texts, joined in the order of their names. The last tenth is to test with.
Result<FirstJob> text_job(const Folder& folder, const std::vector<std::string>& files) {
  constexpr size_t kMostText = size_t{1} << 30;
  std::string text;
  for (const std::string& name : files) {
    REMUDA_ASSIGN(const std::string part, read_text(folder.full(name), kMostText));
    text += part;
  }
  const size_t trained = text.size() - text.size() / 10;
  FirstJob job;
  job.token_files["train.tokens"] = tokens_of(std::string_view(text).substr(0, trained));
  job.token_files["test.tokens"] = tokens_of(std::string_view(text).substr(trained));
  job.text =
      kHead + model_table("", "name = \"gpt\"\nwidth = 128\ndepth = 4\nheads = 4\nvocabulary = 256\n") +
      fmt::format("[data]  # each byte of the text is a token\nformat = \"tokens\"\ncontext = {}\n", kMostContext) +
      "train = \"train.tokens\"\ntest = \"test.tokens\"\n\n"
      "[train]\nepochs = 5\nglobal_batch = 32\noptimizer = \"adamw\"\nlearning_rate = 0.002\n"
      "schedule = \"cosine\"\n\n[output]\nsample = 400\n";
  job.summary = fmt::format("gpt on {} bytes of text, tested on {}", trained, text.size() - trained);
  return job;
}

}  // namespace

Result<FirstJob> first_job(const std::string& path) {
  REMUDA_ASSIGN(const Folder folder, Folder::open(path));
  if (const auto pairs = folder.pairs(); !pairs.empty()) return image_job(folder, pairs);
  if (const auto name = folder.cifar(); !name.empty()) return cifar_job(folder, name);
  if (const auto found = folder.image_folders(); !found.empty()) return image_folder_job(folder, found);
  if (const auto files = folder.tokens(); !files.empty()) return token_job(folder, files);
  if (const auto files = folder.texts(); !files.empty()) return text_job(folder, files);
  return usage_error(fmt::format(
      "{} has no data to train on ({}); looked for are folders and tar files of JPEG and PNG images, "
      "a folder for each class, IDX files of images with their labels, as MNIST's, CIFAR's binary files, files of "
      "uint16 tokens (*.bin, *.tokens) and text (*.txt); docs/train.md shows how to write them from Python",
      path, folder.content()));
}

Result<std::string> write_first_job(const std::string& folder) {
  REMUDA_ASSIGN(const FirstJob job, first_job(folder));
  const std::string path = (fs::path(folder) / "job.toml").string();
  std::error_code error;
  if (fs::exists(fs::symlink_status(path, error)))
    return usage_error(fmt::format("{} is there already; move it away to have another one written", path));
  REMUDA_ASSIGN(PendingFile file, PendingFile::create(path));
  for (const auto& [name, bytes] : job.token_files) {
    REMUDA_ASSIGN(PendingFile tokens, PendingFile::create((fs::path(folder) / name).string()));
    REMUDA_TRY(tokens.commit(bytes));
  }
  REMUDA_TRY(file.commit(job.text));
  return fmt::format("wrote {}: {}", path, job.summary);
}

}  // namespace remuda::cli
