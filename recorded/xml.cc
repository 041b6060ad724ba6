#include "recorded/xml.h"

#include <algorithm>
#include <expat.h>
#include <fmt/format.h>
#include <limits>
#include <memory>

namespace remuda::recorded {
namespace {

constexpr size_t kDeepest = 64;
constexpr size_t kMostElements = 200'000;
constexpr size_t kMostAttributes = 64;
constexpr size_t kLongestText = 4096;

// Expat 2.9 deprecates the old name.
auto line_of(XML_Parser parser) {
#if XML_MAJOR_VERSION > 2 || (XML_MAJOR_VERSION == 2 && XML_MINOR_VERSION >= 9)
  return XML_GetCurrentLineNumber64(parser);
#else
  return XML_GetCurrentLineNumber(parser);
#endif
}

class TreeReader {
 public:
  explicit TreeReader(std::string_view where) : where_(where), parser_(XML_ParserCreate(nullptr), &XML_ParserFree) {
    XML_Parser parser = parser_.get();
    XML_SetUserData(parser, this);
    XML_SetElementHandler(parser, begin, end);
    XML_SetCharacterDataHandler(parser, characters);
    XML_SetStartDoctypeDeclHandler(parser, doctype);
    XML_SetEntityDeclHandler(parser, entity);
  }

  Result<Element> read(std::string_view text) {
    if (text.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
      return usage_error(fmt::format("{} is too large", where_));
    const bool whole = XML_Parse(parser_.get(), text.data(), static_cast<int>(text.size()), 1) == XML_STATUS_OK;
    const bool only_more = XML_GetErrorCode(parser_.get()) == XML_ERROR_JUNK_AFTER_DOC_ELEMENT;
    if (!whole && !(only_more && refusal_.empty() && !top_.children.empty())) return refuse();
    return std::move(top_.children.front());
  }

 private:
  static TreeReader& self(void* data) { return *static_cast<TreeReader*>(data); }

  static void begin(void* data, const char* name, const char** attributes) { self(data).open(name, attributes); }

  /// A parser that was told to stop may still end the element it is in.
  static void end(void* data, const char*) {
    if (self(data).refusal_.empty()) self(data).open_.pop_back();
  }

  static void characters(void* data, const char* text, int length) {
    if (!self(data).refusal_.empty()) return;
    std::string& own = self(data).open_.back()->text;
    own.append(text, std::min(static_cast<size_t>(length), kLongestText - own.size()));
  }

  static void doctype(void* data, const char*, const char*, const char*, int has_internal_subset) {
    if (has_internal_subset) self(data).stop("declarations inside a file are not read");
  }

  static void entity(void* data, const char*, int, const char*, int, const char*, const char*, const char*,
                     const char*) {
    self(data).stop("entities are not read");
  }

  void open(const char* name, const char** attributes) {
    if (open_.size() > kDeepest) return stop(fmt::format("elements nest deeper than {}", kDeepest));
    if (++elements_ > kMostElements) return stop(fmt::format("there are more than {} elements", kMostElements));
    Element element;
    element.name = std::string_view(name).substr(0, kLongestText);
    for (size_t i = 0; attributes[i]; i += 2) {
      if (element.attributes.size() == kMostAttributes)
        return stop(fmt::format("an element has more than {} attributes", kMostAttributes));
      element.attributes.emplace_back(std::string_view(attributes[i]).substr(0, kLongestText),
                                      std::string_view(attributes[i + 1]).substr(0, kLongestText));
    }
    open_.push_back(&open_.back()->children.emplace_back(std::move(element)));
  }

  void stop(std::string why) {
    refusal_ = std::move(why);
    XML_StopParser(parser_.get(), XML_FALSE);
  }

  tl::unexpected<Error> refuse() const {
    const std::string why = refusal_.empty() ? XML_ErrorString(XML_GetErrorCode(parser_.get())) : refusal_;
    return usage_error(fmt::format("{} is not XML that can be read: line {}: {}", where_, line_of(parser_.get()), why));
  }

  const std::string where_;
  std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser_;
  Element top_;  ///< holds the root
  std::vector<Element*> open_{&top_};
  size_t elements_ = 0;
  std::string refusal_;
};

}  // namespace

std::string_view Element::attribute(std::string_view wanted) const {
  const auto found = std::ranges::find(attributes, wanted, &std::pair<std::string, std::string>::first);
  return found == attributes.end() ? std::string_view{} : found->second;
}

const Element* Element::child(std::string_view path) const {
  const Element* element = this;
  while (!path.empty()) {
    const std::string_view wanted = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(wanted.size() + 1, path.size()));
    const auto found = std::ranges::find(element->children, wanted, &Element::name);
    if (found == element->children.end()) return nullptr;
    element = &*found;
  }
  return element;
}

Result<Element> read_xml(std::string_view text, std::string_view where) { return TreeReader(where).read(text); }

}  // namespace remuda::recorded
