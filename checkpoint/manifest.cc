#include "checkpoint/manifest.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <xxhash.h>

#include "base/text.h"
#include "weights/header.h"

namespace remuda::checkpoint {
namespace {

constexpr size_t kMostRanks = 65536, kMostTensors = 1 << 20, kMostDimensions = 64;
constexpr double kLatest_s = 2.5e11;  // the last year of four digits
constexpr const char* kSum = "xxh3";
constexpr size_t kSumDigits = 16;

/// A field of the type that is asked for; what is wrong is kept for the error.
class Fields {
 public:
  Fields(const Json& object, std::string& wrong) : object_(object), wrong_(wrong) {}

  std::string text(const char* key) {
    const Json* value = find(key);
    if (!value || !value->is_string()) return miss<std::string>(key, "a text");
    return value->get<std::string>();
  }
  uint64_t count(const char* key) {
    const Json* value = find(key);
    return value ? count_of(*value, key) : miss<uint64_t>(key, kCount);
  }
  uint64_t count_of(const Json& value, const char* key) {
    const bool fits = value.is_number_unsigned() && value.get<uint64_t>() <= uint64_t{INT64_MAX};
    return fits ? value.get<uint64_t>() : miss<uint64_t>(key, kCount);
  }
  double number(const char* key) {
    const Json* value = find(key);
    return value && value->is_number() ? value->get<double>() : miss<double>(key, "a number");
  }
  bool flag(const char* key) {
    const Json* value = find(key);
    return value && value->is_boolean() ? value->get<bool>() : miss<bool>(key, "true or false");
  }
  const Json& list(const char* key, size_t most) {
    static const Json none = Json::array();
    const Json* value = find(key);
    if (value && value->is_array() && value->size() <= most) return *value;
    miss<int>(key, "a list that is not too long");
    return none;
  }
  const Json& object(const char* key) {
    static const Json none = Json::object();
    const Json* value = find(key);
    if (value && value->is_object()) return *value;
    miss<int>(key, "an object");
    return none;
  }
  template <typename T>
  T miss(const char* key, const char* what) {
    if (wrong_.empty()) wrong_ = fmt::format("\"{}\" must be {}", key, what);
    return {};
  }

 private:
  static constexpr const char* kCount = "an integer of at least 0";
  const Json* find(const char* key) const {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }

  const Json& object_;
  std::string& wrong_;
};

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() < 256 && name.front() != '.' && name.find('/') == std::string::npos &&
         printable(name) == name;
}

std::string text_of(const std::vector<uint64_t>& sums) {
  std::string text;
  for (const uint64_t sum : sums) fmt::format_to(std::back_inserter(text), "{:016x}", sum);
  return text;
}

/// Nothing where the text is not what text_of() makes of so many.
std::optional<std::vector<uint64_t>> sums_in(const std::string& text, uint64_t count) {
  std::vector<uint64_t> sums;
  for (size_t at = 0; text.size() / kSumDigits == count && at < text.size(); at += kSumDigits)
    std::from_chars(text.data() + at, text.data() + std::min(at + kSumDigits, text.size()), sums.emplace_back(), 16);
  if (sums.size() != count || text_of(sums) != text) return std::nullopt;
  return sums;
}

StoredFile file_of(const Json& json, int version, std::string& wrong) {
  Fields fields(json, wrong);
  StoredFile file{fields.text("name"), fields.count("bytes"), {}};
  const uint64_t count = version == 1 ? 1 : file.bytes / kSummedBytes + (file.bytes % kSummedBytes > 0 ? 1 : 0);
  const auto sums = sums_in(fields.text(kSum), count);
  if (wrong.empty() && !is_plain_name(file.name)) fields.miss<int>("name", "the name of a file in the same folder");
  if (wrong.empty() && !sums)
    fields.miss<int>(kSum, version == 1 ? "16 hexadecimal digits" : "16 hexadecimal digits for each MiB");
  if (sums) file.sums = *sums;
  return file;
}

ModelTensor tensor_of(const Json& json, std::string& wrong) {
  Fields fields(json, wrong);
  ModelTensor tensor{.name = fields.text("name"), .is_buffer = fields.flag("buffer")};
  if (const auto type = weights::dtype_named(fields.text("dtype")))
    tensor.type = *type;
  else
    fields.miss<int>("dtype", "a type of safetensors");
  for (const Json& size : fields.list("shape", kMostDimensions)) tensor.shape.push_back(fields.count_of(size, "shape"));
  if (!weights::bytes_needed({.type = tensor.type, .shape = tensor.shape}))
    fields.miss<int>("shape", "sizes that can be multiplied");
  return tensor;
}

}  // namespace

uint64_t Manifest::bytes() const {
  uint64_t sum = 0;
  for (const StoredFile& file : files) sum += file.bytes;
  return sum;
}

std::map<std::string, std::string> Manifest::tied() const {
  std::map<std::string, std::string> names;
  if (const auto said = run.find("tied"); said != run.end() && said->is_object())
    for (const auto& [name, first] : said->items())
      if (first.is_string() && std::ranges::find(tensors, name, &ModelTensor::name) == tensors.end())
        names[name] = first.get<std::string>();
  return names;
}

Json to_json(const Manifest& manifest) {
  Json files = Json::array(), tensors = Json::array();
  for (const StoredFile& file : manifest.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {kSum, text_of(file.sums)}});
  for (const ModelTensor& tensor : manifest.tensors)
    tensors.push_back({{"name", tensor.name},
                       {"dtype", name_of(tensor.type)},
                       {"shape", tensor.shape},
                       {"buffer", tensor.is_buffer}});
  return sealed({{"remuda_checkpoint", manifest.version},
                 {"remuda", manifest.remuda},
                 {"step", manifest.step},
                 {"written_s", manifest.written_s},
                 {"run", manifest.run},
                 {"files", std::move(files)},
                 {"tensors", std::move(tensors)}});
}

/// Of the values, and not of the bytes that say them: these are what a run goes on from.
Json sealed(Json manifest) {
  if (!manifest.is_object()) return manifest;
  manifest.erase(kSum);
  const std::string line = to_line(manifest);
  manifest[kSum] = fmt::format("{:016x}", XXH3_64bits(line.data(), line.size()));
  return manifest;
}

Result<Manifest> parse_manifest(std::string_view text, const std::string& where) {
  REMUDA_ASSIGN(const Json json, parse_json(text, where));
  std::string wrong;
  Fields fields(json, wrong);
  const uint64_t version = fields.count("remuda_checkpoint");
  if (!wrong.empty()) return usage_error(fmt::format("{} is no manifest of a checkpoint", where));
  if (version > Manifest::kVersion)
    return usage_error(fmt::format("{} was written by a newer remuda (format {}, this one reads up to {})", where,
                                   version, Manifest::kVersion));
  if (!json.contains(kSum) || sealed(json)[kSum] != json[kSum])
    return usage_error(fmt::format("{} is damaged: its sum is not that of what it says", where));
  if (version == 0) return usage_error(fmt::format("{} is damaged: there is no format 0", where));
  Manifest manifest{.version = int(version),
                    .remuda = fields.text("remuda"),
                    .step = int64_t(fields.count("step")),
                    .written_s = fields.number("written_s"),
                    .run = fields.object("run")};
  for (const Json& file : fields.list("files", kMostRanks))
    manifest.files.push_back(file_of(file, manifest.version, wrong));
  if (manifest.files.empty()) fields.miss<int>("files", "a list of at least one file");
  if (!(manifest.written_s >= 0 && manifest.written_s < kLatest_s)) fields.miss<int>("written_s", "seconds since 1970");
  for (const Json& tensor : fields.list("tensors", kMostTensors)) manifest.tensors.push_back(tensor_of(tensor, wrong));
  if (!wrong.empty()) return usage_error(fmt::format("{} is damaged: {}", where, printable(wrong)));
  return manifest;
}

}  // namespace remuda::checkpoint
