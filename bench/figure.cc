#include "bench/figure.h"

#include <fmt/format.h>

#include "base/table.h"

namespace remuda::bench {
namespace {

Json json_of(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

std::string text_of(const std::optional<double>& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "-";
}

std::string text_of(const Json& parameters) {
  std::string text;
  for (const auto& [key, value] : parameters.items())
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key,
                        value.is_string() ? value.get<std::string>() : to_line(value));
  return text;
}

}  // namespace

std::string as_json_lines(const std::vector<Figure>& figures) {
  std::string text;
  for (const Figure& figure : figures)
    text += to_line({{"name", figure.name},
                     {"parameters", figure.parameters},
                     {"value", figure.value},
                     {"unit", figure.unit},
                     {"peer", json_of(figure.peer)},
                     {"ratio", json_of(figure.ratio)},
                     {"limit", json_of(figure.limit)}}) +
            "\n";
  return text;
}

std::string as_table(const std::vector<Figure>& figures) {
  Table table({"figure", "parameters", "value", "unit", "peer", "ratio", "limit"});
  for (const Figure& figure : figures)
    table.add({figure.name, text_of(figure.parameters), fmt::format("{:.1f}", figure.value), figure.unit,
               text_of(figure.peer, "{:.1f}"), text_of(figure.ratio, "{:.2f}"), text_of(figure.limit, "{:.1f}")});
  return table.text();
}

}  // namespace remuda::bench
