#include "comm/elements.h"

namespace remuda::comm {

const char* name_of(Element type) {
  switch (type) {
    case Element::bytes:
      return "bytes";
    case Element::int64:
      return "int64";
    case Element::float64:
      return "float64";
    case Element::float32:
      return "float32";
    case Element::float16:
      return "float16";
    case Element::bfloat16:
      return "bfloat16";
  }
  return "an unknown type";
}

size_t size_of(Element type) {
  switch (type) {
    case Element::int64:
    case Element::float64:
      return 8;
    case Element::float32:
      return 4;
    case Element::float16:
    case Element::bfloat16:
      return 2;
    case Element::bytes:
      break;
  }
  return 1;
}

Element sum_of(Element type) { return type == Element::float16 || type == Element::bfloat16 ? Element::float32 : type; }

}  // namespace remuda::comm
