#include "comm/terms.h"

#include <algorithm>
#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/characters.h"
#include "base/check.h"
#include "base/json.h"
#include "base/text.h"
#include "comm/wire.h"

namespace remuda::comm {
namespace {

constexpr size_t kMostShown = 3;
constexpr size_t kMostCharacters = 80;
constexpr uint32_t kMostBytes = 1 << 20;

std::string to_text(const Terms& terms) {
  Json list = Json::array();
  for (const Term& term : terms) list.push_back({term.name, term.value});
  return to_line(list);
}

Result<Terms> parse_terms(std::string_view text, const std::string& peer) {
  REMUDA_ASSIGN(const Json list, parse_json(text, peer));
  Terms terms;
  const auto is_text = [](const Json& part) { return part.is_string(); };
  if (!list.is_array()) return failed(fmt::format("{} sent terms that are no list", peer));
  for (const Json& pair : list) {
    if (!pair.is_array() || pair.size() != 2 || !std::ranges::all_of(pair, is_text))
      return failed(fmt::format("{} sent a term that is no pair of texts", peer));
    terms.push_back({pair[0], pair[1]});
  }
  return terms;
}

const Term* find(const Terms& terms, const std::string& name) {
  const auto found = std::ranges::find(terms, name, &Term::name);
  return found == terms.end() ? nullptr : &*found;
}

std::string shown(const Term* term) {
  if (!term) return "not given";
  return term->value.empty() ? "empty" : shortened(printable(term->value), kMostCharacters);
}

Result<void> send_terms(int fd, const Terms& terms, double deadline_s, const std::string& peer) {
  std::string text = to_text(terms);
  if (text.size() > kMostBytes) text = "[]";
  const auto length = static_cast<uint32_t>(text.size());
  REMUDA_TRY(send_all(fd, std::as_bytes(std::span(&length, 1)), deadline_s, peer));
  return send_all(fd, std::as_bytes(std::span(text)), deadline_s, peer);
}

Result<Terms> receive_terms(int fd, double deadline_s, const std::string& peer) {
  uint32_t length = 0;
  REMUDA_TRY(recv_all(fd, std::as_writable_bytes(std::span(&length, 1)), deadline_s, peer));
  if (length > kMostBytes) return failed(fmt::format("{} sent too many terms", peer));
  std::string text(length, ' ');
  REMUDA_TRY(recv_all(fd, std::as_writable_bytes(std::span(text)), deadline_s, peer));
  return parse_terms(text, peer);
}

}  // namespace

TermsDigest digest_of(const Terms& terms) {
  const std::string text = to_text(terms);
  TermsDigest digest;
  unsigned length = 0;
  const int done = EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(digest.data()), &length,
                              EVP_sha256(), nullptr);
  REMUDA_CHECK(done == 1 && length == digest.size(), "SHA-256 gives 32 bytes");
  return digest;
}

std::string differences(int a, const Terms& terms_of_a, int b, const Terms& terms_of_b) {
  std::vector<std::string> names;
  for (const Terms* terms : {&terms_of_a, &terms_of_b})
    for (const Term& term : *terms)
      if (std::ranges::find(names, term.name) == names.end()) names.push_back(term.name);
  std::string text;
  size_t count = 0;
  for (const std::string& name : names) {
    const Term* of_a = find(terms_of_a, name);
    const Term* of_b = find(terms_of_b, name);
    if (of_a && of_b && *of_a == *of_b) continue;
    if (++count > kMostShown) continue;
    text += fmt::format("{}{} is {} for rank {} and {} for rank {}", text.empty() ? "" : "; ",
                        shortened(printable(name), kMostCharacters), shown(of_a), a, shown(of_b), b);
  }
  if (count == 0) return "the same terms in another order";
  if (count > kMostShown) text += fmt::format("; and {} more", count - kMostShown);
  return text;
}

Result<Terms> exchange_terms(int fd, const Terms& mine, bool send_first, double deadline_s, const std::string& peer) {
  if (send_first) REMUDA_TRY(send_terms(fd, mine, deadline_s, peer));
  REMUDA_ASSIGN(Terms theirs, receive_terms(fd, deadline_s, peer));
  if (!send_first) REMUDA_TRY(send_terms(fd, mine, deadline_s, peer));
  return theirs;
}

}  // namespace remuda::comm
