#include "comm/rendezvous.h"

#include <algorithm>
#include <arpa/inet.h>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <numeric>
#include <span>

#include "base/text.h"
#include "comm/acceptor.h"
#include "comm/handshake.h"
#include "comm/wire.h"

namespace remuda::comm {
namespace {

static_assert(std::endian::native == std::endian::little, "plain structs go over the wire as they are");

Terms terms_of(const ConnectOptions& options) {
  Terms terms = options.terms;
  terms.push_back({"encryption", name_of(options.encryption)});
  terms.push_back({"streams", std::to_string(options.streams)});
  return terms;
}

/// Not a name, and not that of all addresses of a machine: what these are shows when somebody is connected.
bool is_one_address(const std::string& address) {
  in6_addr any{};
  const bool is_number =
      ::inet_pton(AF_INET, address.c_str(), &any) == 1 || ::inet_pton(AF_INET6, address.c_str(), &any) == 1;
  return is_number && address != "0.0.0.0" && address != "::";
}

class Rendezvous {
 public:
  Rendezvous(const ConnectOptions& options, std::vector<int> ranks, double deadline_s)
      : self_{options.rank, options.size, options.secret, terms_of(options), options.encryption},
        master_{options.master_address, options.master_port},
        timeout_s_(options.connect_timeout_s),
        first_come_(options.first_come),
        deadline_s_(deadline_s),
        mesh_(options.rank, options.size, std::move(ranks), options.streams) {
    for (int stream = 0; stream < options.streams; ++stream) data_.push_back(data_role(stream));
    both_.insert(both_.end(), data_.begin(), data_.end());
  }

  Result<Mesh> lead(Fd listener);
  Result<Mesh> follow(Fd listener);

 private:
  // The ranks that this one connects to, besides the leader, and those that connect to it.
  std::span<const int> before() const { return std::span(mesh_.ranks).first(mesh_.number()).subspan(1); }
  std::span<const int> after() const { return std::span(mesh_.ranks).subspan(mesh_.number() + 1); }
  Link& link(int rank, LinkRole role) {
    return role == LinkRole::control ? mesh_.control[rank] : mesh_.data[stream_of(role)][rank];
  }
  Result<void> connect_to(int rank, const Endpoint& endpoint, LinkRole role);
  Result<Link> protect(Fd fd, int rank, const Protection& protection, Tls::End end) const;
  Result<void> accept_rest(Acceptor& acceptor, std::span<const LinkRole> roles);
  Result<void> admit(Candidate candidate);
  bool has_place_for(int rank, LinkRole role);
  Result<void> missing(const Acceptor& acceptor, std::span<const LinkRole> roles);
  bool complete(std::span<const LinkRole> roles);
  Result<std::vector<Contact>> gather_contacts();
  Result<void> receive_from(int rank, std::span<std::byte> bytes);

  Identity self_;
  Endpoint master_;
  double timeout_s_;
  bool first_come_;
  double deadline_s_;
  Mesh mesh_;
  std::vector<LinkRole> control_{LinkRole::control}, data_, both_{LinkRole::control};
};

Result<void> Rendezvous::connect_to(int rank, const Endpoint& endpoint, LinkRole role) {
  auto fd = dial(endpoint, deadline_s_);
  if (!fd) {
    fd.error().message = fmt::format("rank {} did not reach rank {} within {:g} s: {}", self_.rank, rank, timeout_s_,
                                     fd.error().message);
    fd.error().peer = rank;
    return tl::unexpected(fd.error());
  }
  auto welcome = authenticate(fd->get(), self_, role, endpoint.text(), deadline_s_);
  if (!welcome) {
    if (welcome.error().kind == ErrorKind::lost_peer) welcome.error().peer = rank;
    return tl::unexpected(welcome.error());
  }
  REMUDA_ASSIGN(link(rank, role), protect(std::move(*fd), rank, *welcome, Tls::End::connector));
  return {};
}

// Encrypts what follows, where both ends have agreed on that.
Result<Link> Rendezvous::protect(Fd fd, int rank, const Protection& protection, Tls::End end) const {
  const Endpoint address = remote_endpoint(fd.get());
  Link link(std::move(fd));
  if (!protection.encrypted) return link;
  auto encrypted = link.encrypt(end, protection.key, deadline_s_, fmt::format("rank {} at {}", rank, address.text()));
  if (encrypted) return link;
  Error error = encrypted.error();
  error.message = fmt::format("rank {}: {}", self_.rank, error.message);
  if (error.kind == ErrorKind::lost_peer) error.peer = rank;
  return tl::unexpected(std::move(error));
}

Result<void> Rendezvous::admit(Candidate candidate) {
  const auto& greeting = candidate.greeting();
  const int rank = static_cast<int>(greeting.rank);
  const auto answer = [&](Greeting::Verdict verdict) {
    return send_all(candidate.fd.get(), candidate.handshake.verdict(verdict), deadline_s_, candidate.address);
  };
  if (greeting.size != static_cast<uint32_t>(self_.size)) {
    static_cast<void>(answer(Greeting::Verdict::other_size));
    return usage_error(fmt::format("rank {} at {} was started for a job of {} ranks, rank {} for {}", rank,
                                   candidate.address, greeting.size, self_.rank, self_.size));
  }
  if (greeting.terms != digest_of(self_.terms)) {
    static_cast<void>(answer(Greeting::Verdict::other_terms));
    return tl::unexpected(other_terms(candidate.fd.get(), self_, true, greeting.rank, candidate.address));
  }
  if (std::ranges::find(both_, greeting.role) == both_.end())
    return failed(fmt::format("rank {} at {} has more streams than its terms say", rank, candidate.address));
  if (!has_place_for(rank, greeting.role)) {
    static_cast<void>(answer(Greeting::Verdict::duplicate));
    if (first_come_) return {};
    const Link& first = link(rank, greeting.role);
    return usage_error(fmt::format("rank {} is there twice: at {} and {}", rank, candidate.address,
                                   first ? "at " + remote_endpoint(first.get()).text() : "here"));
  }
  REMUDA_TRY(answer(Greeting::Verdict::welcome));
  REMUDA_ASSIGN(link(rank, greeting.role),
                protect(std::move(candidate.fd), rank, candidate.handshake.protection(), Tls::End::acceptor));
  return {};
}

bool Rendezvous::has_place_for(int rank, LinkRole role) {
  if (std::ranges::find(after(), rank) == after().end() || link(rank, role)) return false;
  // Data without control is what a rank of an earlier meeting has left behind.
  return !first_come_ || role == LinkRole::control || link(rank, LinkRole::control);
}

bool Rendezvous::complete(std::span<const LinkRole> roles) {
  for (const LinkRole role : roles)
    for (const int rank : after())
      if (!link(rank, role)) return false;
  return true;
}

Result<void> Rendezvous::missing(const Acceptor& acceptor, std::span<const LinkRole> roles) {
  std::vector<int> ranks;
  for (const int rank : after())
    if (!std::ranges::all_of(roles, [&](LinkRole role) { return bool(link(rank, role)); })) ranks.push_back(rank);
  const std::string hint = acceptor.last_refusal().empty() ? "" : fmt::format(" ({})", acceptor.last_refusal());
  return tl::unexpected(Error{ErrorKind::lost_peer,
                              fmt::format("rank {}: rank {} of {} did not come within {:g} s{}", self_.rank,
                                          index_ranges(ranks), self_.size, timeout_s_, hint),
                              ranks.front()});
}

Result<void> Rendezvous::accept_rest(Acceptor& acceptor, std::span<const LinkRole> roles) {
  while (!complete(roles)) {
    REMUDA_ASSIGN(auto candidate, acceptor.next(deadline_s_));
    if (!candidate) return missing(acceptor, roles);
    REMUDA_TRY(admit(std::move(*candidate)));
  }
  return {};
}

Result<void> Rendezvous::receive_from(int rank, std::span<std::byte> bytes) {
  auto received = mesh_.control[rank].recv_all(bytes, deadline_s_, fmt::format("rank {}", rank));
  if (!received) {
    received.error().message += " while the ranks of the job were connecting";
    received.error().peer = rank;
  }
  return received;
}

Result<std::vector<Contact>> Rendezvous::gather_contacts() {
  std::vector<Contact> contacts(self_.size);
  for (const int rank : after()) {
    Contact contact;
    REMUDA_TRY(receive_from(rank, std::as_writable_bytes(std::span(&contact, 1))));
    contacts[rank] = contact_of(endpoint_of(contact, mesh_.control[rank].get()));
  }
  return contacts;
}

Result<Mesh> Rendezvous::lead(Fd listener) {
  if (const Endpoint here = local_endpoint(listener.get()); is_one_address(here.address))
    REMUDA_TRY(check_secret(self_.secret, here, self_.rank));
  Acceptor acceptor(std::move(listener), self_);
  REMUDA_TRY(accept_rest(acceptor, control_));
  REMUDA_ASSIGN(const std::vector<Contact> contacts, gather_contacts());
  for (const int rank : after())
    REMUDA_TRY(
        mesh_.control[rank].send_all(std::as_bytes(std::span(contacts)), deadline_s_, fmt::format("rank {}", rank)));
  REMUDA_TRY(accept_rest(acceptor, data_));
  return std::move(mesh_);
}

Result<Mesh> Rendezvous::follow(Fd listener) {
  if (is_one_address(master_.address)) REMUDA_TRY(check_secret(self_.secret, master_, self_.rank));
  const int leader = mesh_.leader();
  const Contact mine = contact_of(local_endpoint(listener.get()));
  Acceptor acceptor(std::move(listener), self_);
  REMUDA_TRY(connect_to(leader, master_, LinkRole::control));
  REMUDA_TRY(
      mesh_.control[leader].send_all(std::as_bytes(std::span(&mine, 1)), deadline_s_, fmt::format("rank {}", leader)));
  std::vector<Contact> contacts(self_.size);
  REMUDA_TRY(receive_from(leader, std::as_writable_bytes(std::span(contacts))));
  for (const LinkRole role : data_) REMUDA_TRY(connect_to(leader, master_, role));
  for (const int rank : before())
    for (const LinkRole role : both_)
      REMUDA_TRY(connect_to(rank, endpoint_of(contacts[rank], mesh_.control[leader].get()), role));
  REMUDA_TRY(accept_rest(acceptor, both_));
  return std::move(mesh_);
}

}  // namespace

Mesh::Mesh(int rank, int size, std::vector<int> ranks, int streams)
    : rank(rank), size(size), control(static_cast<size_t>(size)), ranks(std::move(ranks)) {
  while (streams-- > 0) data.emplace_back(static_cast<size_t>(size));
}

int Mesh::number() const { return static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin()); }

Contact contact_of(const Endpoint& endpoint) {
  Contact contact{.port = static_cast<uint32_t>(endpoint.port)};
  endpoint.address.copy(contact.address, sizeof contact.address - 1);
  return contact;
}

Endpoint endpoint_of(const Contact& contact, int fd) {
  const Endpoint endpoint{std::string(contact.address, ::strnlen(contact.address, sizeof contact.address)),
                          static_cast<int>(contact.port)};
  const bool any = endpoint.address == "0.0.0.0" || endpoint.address == "::";
  return any ? Endpoint{remote_endpoint(fd).address, endpoint.port} : endpoint;
}

std::vector<int> all_ranks(int size) {
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Result<Mesh> connect_mesh(ConnectOptions& options, std::vector<int> ranks) {
  const bool leads = options.rank == ranks.front();
  Rendezvous rendezvous(options, std::move(ranks), deadline_after(options.connect_timeout_s));
  const auto listen = [&] {
    if (options.listener) return adopt_listener(std::move(options.listener));
    return listen_on(leads ? Endpoint{options.master_address, options.master_port} : Endpoint{options.bind_address, 0});
  };
  REMUDA_ASSIGN(Fd listener, listen());
  options.bind_address = local_endpoint(listener.get()).address;
  return leads ? rendezvous.lead(std::move(listener)) : rendezvous.follow(std::move(listener));
}

Result<Mesh> connect_mesh(ConnectOptions& options) { return connect_mesh(options, all_ranks(options.size)); }

}  // namespace remuda::comm
