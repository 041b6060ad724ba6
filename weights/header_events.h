// HeaderEvents: takes the pieces of a header's JSON as they are read, so that a hostile header costs no more than its
// entries. Internal to weights.
#pragma once

#include <set>
#include <string>

#include "base/json.h"
#include "weights/header.h"

namespace remuda::weights {

class HeaderEvents final : public JsonEvents {
 public:
  /// What was read. After parse_json() returned true, each tensor is complete; nothing was compared yet.
  Header header;
  /// What was wrong when it returned false.
  const std::string& wrong() const { return wrong_; }

  bool null() override { return unexpected(); }
  bool boolean(bool) override { return unexpected(); }
  bool number_integer(Json::number_integer_t) override { return unexpected(); }
  bool number_unsigned(Json::number_unsigned_t value) override;
  bool number_float(Json::number_float_t, const std::string&) override { return unexpected(); }
  bool string(std::string& value) override;
  bool binary(Json::binary_t&) override { return unexpected(); }
  bool start_object(size_t) override;
  bool key(std::string& name) override;
  bool end_object() override;
  bool start_array(size_t) override;
  bool end_array() override;
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override;

 private:
  /// What is being read now.
  enum class Place { outside, file, metadata, tensor, type, shape, offsets };

  bool refuse(std::string wrong);
  bool unexpected();
  TensorInfo& tensor() { return header.tensors.back(); }

  Place place_ = Place::outside;
  std::string key_;              ///< of the file or its metadata: the last one
  std::set<std::string> names_;  ///< of the file
  std::set<Place> given_;        ///< of the tensor
  int offsets_ = 0;              ///< of the tensor: so many
  bool in_list_ = false;         ///< of a shape or of offsets
  std::string wrong_;
};

}  // namespace remuda::weights
