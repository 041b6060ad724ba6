#include "weights/header_events.h"

#include <fmt/format.h>

#include "base/characters.h"
#include "base/text.h"

namespace remuda::weights {
namespace {

constexpr size_t kMostDimensions = 64;  // libtorch's own limit
constexpr size_t kMostNameShown = 80;

std::string shown(const std::string& name) { return shortened(printable(name), kMostNameShown); }

}  // namespace

bool HeaderEvents::refuse(std::string wrong) {
  wrong_ = std::move(wrong);
  return false;
}

bool HeaderEvents::unexpected() {
  switch (place_) {
    case Place::outside:
      return refuse("its header is no JSON object");
    case Place::file:
      return refuse(fmt::format("the entry '{}' is no object", shown(key_)));
    case Place::metadata:
      return refuse(fmt::format("'{}' of __metadata__ is no text", shown(key_)));
    default:
      return refuse(fmt::format("tensor '{}' must have a dtype (a text), a shape and two data_offsets (whole numbers)",
                                shown(tensor().name)));
  }
}

bool HeaderEvents::start_object(size_t) {
  if (place_ == Place::outside) {
    place_ = Place::file;
    return true;
  }
  if (place_ != Place::file) return unexpected();
  if (key_ == "__metadata__") {
    place_ = Place::metadata;
    return true;
  }
  place_ = Place::tensor;
  given_.clear();
  offsets_ = 0;
  header.tensors.push_back({.name = key_});
  return true;
}

bool HeaderEvents::key(std::string& name) {
  if (place_ == Place::file) {
    key_ = name;
    return names_.insert(name).second || refuse(fmt::format("it holds '{}' twice", shown(name)));
  }
  if (place_ == Place::metadata) {
    key_ = name;
    return !header.metadata.contains(name) || refuse(fmt::format("its __metadata__ holds '{}' twice", shown(name)));
  }
  if (name == "dtype")
    place_ = Place::type;
  else if (name == "shape")
    place_ = Place::shape;
  else if (name == "data_offsets")
    place_ = Place::offsets;
  else
    return unexpected();
  if (!given_.insert(place_).second) return refuse(fmt::format("tensor '{}' has {} twice", shown(tensor().name), name));
  return true;
}

bool HeaderEvents::end_object() {
  if (place_ == Place::tensor) {
    if (given_.size() < 3 || offsets_ != 2) return unexpected();
    place_ = Place::file;
  } else {
    place_ = place_ == Place::metadata ? Place::file : Place::outside;
  }
  return true;
}

bool HeaderEvents::start_array(size_t) {
  if (in_list_ || (place_ != Place::shape && place_ != Place::offsets)) return unexpected();
  in_list_ = true;
  return true;
}

bool HeaderEvents::end_array() {
  in_list_ = false;
  place_ = Place::tensor;
  return true;
}

bool HeaderEvents::number_unsigned(Json::number_unsigned_t value) {
  if (!in_list_) return unexpected();
  if (place_ == Place::shape) {
    if (tensor().shape.size() == kMostDimensions)
      return refuse(fmt::format("tensor '{}' has more than {} dimensions", shown(tensor().name), kMostDimensions));
    tensor().shape.push_back(value);
    return true;
  }
  if (++offsets_ > 2) return unexpected();
  (offsets_ == 1 ? tensor().begin : tensor().end) = value;
  return true;
}

bool HeaderEvents::string(std::string& value) {
  if (place_ == Place::metadata) {
    header.metadata.emplace(key_, value);
    return true;
  }
  if (place_ != Place::type) return unexpected();
  const auto type = dtype_named(value);
  if (!type) return refuse(fmt::format("tensor '{}' has the unknown dtype '{}'", shown(tensor().name), shown(value)));
  tensor().type = *type;
  place_ = Place::tensor;
  return true;
}

bool HeaderEvents::parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) {
  return refuse(fmt::format("its header is not JSON: error at byte {}", position));
}

}  // namespace remuda::weights
