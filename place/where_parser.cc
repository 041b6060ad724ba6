#include <cctype>
#include <charconv>
#include <fmt/format.h>

#include "base/quantity.h"
#include "base/text.h"
#include "place/where.h"
#include "place/where_node.h"

namespace remuda::place {
namespace {

using Op = WhereNode::Op;

constexpr size_t kLongestList = 256;

struct Token {
  enum class Kind { name, text, number, mark, end };
  Kind kind = Kind::end;
  std::string text;  ///< a text without its quotes
  size_t position = 1;
};

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_name_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

tl::unexpected<Error> wrong(size_t position, const std::string& what) {
  return usage_error(fmt::format("the condition is wrong at character {}: {}", position, what));
}

/// Cuts the text into tokens.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<Token> next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
    begin_ = at_;
    if (at_ == text_.size()) return token(Token::Kind::end);
    const char c = text_[at_];
    if (c == '"' || c == '\'') return quoted(c);
    if (is_name_start(c)) return run(Token::Kind::name, is_name_part);
    if (is_digit(c)) return run(Token::Kind::number, [](char d) { return is_name_part(d) || d == '.'; });
    return mark();
  }

 private:
  Token token(Token::Kind kind) const { return {kind, std::string(text_.substr(begin_, at_ - begin_)), begin_ + 1}; }

  Token run(Token::Kind kind, bool (*belongs)(char)) {
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    return token(kind);
  }

  Result<Token> quoted(char quote) {
    const size_t end = text_.find(quote, begin_ + 1);
    if (end == std::string_view::npos) return wrong(begin_ + 1, "this quote is never closed");
    at_ = end + 1;
    return Token{Token::Kind::text, std::string(text_.substr(begin_ + 1, end - begin_ - 1)), begin_ + 1};
  }

  Result<Token> mark() {
    for (const std::string_view known : {"==", "!=", "<=", ">=", "=~", "&&", "||"})
      if (text_.substr(at_).starts_with(known)) return at_ += 2, token(Token::Kind::mark);
    if (std::string_view("<>!()[],").find(text_[at_]) == std::string_view::npos)
      return wrong(at_ + 1, fmt::format("'{}' means nothing here", printable(text_.substr(at_, 1))));
    ++at_;
    return token(Token::Kind::mark);
  }

  std::string_view text_;
  size_t at_ = 0, begin_ = 0;
};

const char* values_wanted(AttributeType type) {
  switch (type) {
    case AttributeType::text:
      return "a text in quotes";
    case AttributeType::number:
      return "a number";
    case AttributeType::amount:
      return "an amount such as 40Gi";
    case AttributeType::version:
      return "a version such as 8.0";
  }
  return "";
}

std::optional<WhereNode::Value> value_of(AttributeType type, const Token& token) {
  const bool is_text = token.kind == Token::Kind::text;
  if (!is_text && token.kind != Token::Kind::number) return std::nullopt;
  if (type == AttributeType::text) return is_text ? std::optional<WhereNode::Value>(token.text) : std::nullopt;
  if (type == AttributeType::version) {
    const auto version = VersionNumber::parse(token.text);
    return version ? std::optional<WhereNode::Value>(*version) : std::nullopt;
  }
  const bool plain = token.text.find_first_not_of("0123456789.") == std::string::npos;
  const auto amount = type == AttributeType::amount || plain ? parse_amount(token.text) : std::nullopt;
  return amount ? std::optional<WhereNode::Value>(*amount) : std::nullopt;
}

std::optional<Op> op_of(const Token& token) {
  using Known = std::pair<std::string_view, Op>;
  for (const auto& [text, op] : {Known{"==", Op::equal},
                                 {"!=", Op::unequal},
                                 {"<", Op::less},
                                 {"<=", Op::at_most},
                                 {">", Op::greater},
                                 {">=", Op::at_least},
                                 {"=~", Op::like},
                                 {"in", Op::in}})
    if (token.kind != Token::Kind::text && token.text == text) return op;
  return std::nullopt;
}

/// Recursive descent, one function per rule of the grammar, one token ahead.
class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {}

  Result<WhereNode> parse() {
    REMUDA_TRY(advance());
    REMUDA_ASSIGN(WhereNode root, any());
    if (ahead_.kind != Token::Kind::end) return unexpected("&& or ||");
    return root;
  }

 private:
  Result<void> advance() {
    REMUDA_ASSIGN(ahead_, lexer_.next());
    return {};
  }

  bool is_mark(std::string_view mark) const { return ahead_.kind == Token::Kind::mark && ahead_.text == mark; }

  tl::unexpected<Error> unexpected(std::string_view wanted) const {
    const std::string found = ahead_.kind == Token::Kind::end ? "the end" : fmt::format("'{}'", printable(ahead_.text));
    return wrong(ahead_.position, fmt::format("expected {}, found {}", wanted, found));
  }

  Result<void> expect(std::string_view mark) {
    if (!is_mark(mark)) return unexpected(fmt::format("'{}'", mark));
    return advance();
  }

  Result<WhereNode> any() { return joined("||", WhereNode::Kind::any, &Parser::all); }
  Result<WhereNode> all() { return joined("&&", WhereNode::Kind::all, &Parser::single); }

  Result<WhereNode> joined(std::string_view mark, WhereNode::Kind kind, Result<WhereNode> (Parser::*part)()) {
    REMUDA_ASSIGN(WhereNode first, (this->*part)());
    if (!is_mark(mark)) return first;
    WhereNode node{.kind = kind};
    node.children.push_back(std::move(first));
    while (is_mark(mark)) {
      REMUDA_TRY(advance());
      REMUDA_ASSIGN(WhereNode next, (this->*part)());
      node.children.push_back(std::move(next));
    }
    return node;
  }

  Result<WhereNode> single() {
    const bool negated = is_mark("!"), nested = is_mark("(");
    if (!negated && !nested) return comparison();
    if (++depth_ > Where::kDeepest)
      return wrong(ahead_.position, fmt::format("more than {} levels of '(' and '!'", Where::kDeepest));
    REMUDA_TRY(advance());
    REMUDA_ASSIGN(WhereNode inner, negated ? single() : any());
    if (nested) REMUDA_TRY(expect(")"));
    --depth_;
    if (nested) return inner;
    WhereNode node{.kind = WhereNode::Kind::negation};
    node.children.push_back(std::move(inner));
    return node;
  }

  Result<WhereNode> comparison() {
    WhereNode node;
    REMUDA_ASSIGN(node.attribute, attribute());
    const auto op = op_of(ahead_);
    if (!op) return unexpected("== or another comparison");
    const bool is_text = node.attribute->type == AttributeType::text;
    if (is_text ? *op >= Op::less && *op <= Op::at_least : *op == Op::like)
      return wrong(ahead_.position, fmt::format("{} is {}: '{}' does not compare it", node.attribute->name,
                                                is_text ? "a text" : "a number", ahead_.text));
    node.op = *op;
    REMUDA_TRY(advance());
    if (node.op != Op::in) REMUDA_TRY(value(node));
    if (node.op == Op::in) REMUDA_TRY(list(node));
    return node;
  }

  Result<const Attribute*> attribute() {
    if (ahead_.kind != Token::Kind::name) return unexpected("the name of an attribute");
    const Attribute* found = find_attribute(ahead_.text);
    if (!found) return unknown_attribute();
    REMUDA_TRY(advance());
    return found;
  }

  tl::unexpected<Error> unknown_attribute() const {
    std::vector<std::string> known;
    std::string all;
    for (const Attribute& attribute : attributes()) {
      known.emplace_back(attribute.name);
      all += (all.empty() ? "" : ", ") + known.back();
    }
    const std::string near = nearest(ahead_.text, known);
    return wrong(ahead_.position, near.empty()
                                      ? fmt::format("'{}' is no attribute; there are {}", ahead_.text, all)
                                      : fmt::format("'{}' is no attribute; is '{}' meant?", ahead_.text, near));
  }

  Result<void> value(WhereNode& node) {
    auto read = value_of(node.attribute->type, ahead_);
    if (!read)
      return unexpected(fmt::format("{}, as for {}", values_wanted(node.attribute->type), node.attribute->name));
    node.values.push_back(std::move(*read));
    return advance();
  }

  Result<void> list(WhereNode& node) {
    REMUDA_TRY(expect("["));
    REMUDA_TRY(value(node));
    while (is_mark(",")) {
      if (node.values.size() == kLongestList)
        return wrong(ahead_.position, fmt::format("a list has at most {} values", kLongestList));
      REMUDA_TRY(advance());
      REMUDA_TRY(value(node));
    }
    return expect("]");
  }

  Lexer lexer_;
  Token ahead_;
  int depth_ = 0;
};

}  // namespace

Result<WhereNode> parse_where(std::string_view text) { return Parser(text).parse(); }

}  // namespace remuda::place
