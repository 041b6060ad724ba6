#include "policy/file.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <fmt/format.h>
#include <functional>
#include <sys/stat.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/file.h"
#include "base/quantity.h"
#include "base/read_all.h"
#include "base/text.h"
#include "document/toml_text.h"

namespace remuda::policy {
namespace {

constexpr size_t kMostTables = 1000, kMostNames = 1000, kMostExempt = 64, kLongestCommand = 4096;
constexpr double kLongest_s = 366.0 * 86400, kLongestProbe_s = 600, kMostHours = 1e9, kShortestIdle_s = 10,
                 kHighestPrice = 1e9;

/// One table of the file, key by key; the first thing that is wrong is the error.
class Reader {
 public:
  Reader(const toml::table& table, std::string name) : table_(table), name_(std::move(name)) {}

  /// Stores what `take` makes of the value; where that is nothing, the value should have been `expected`.
  template <typename T>
  void read(const char* key, const std::string& expected,
            const std::function<std::optional<T>(const toml::node&)>& take,
            const std::function<void(T, std::string)>& store) {
    known_.emplace_back(key);
    const toml::node* value = table_.get(key);
    if (!value || !outcome_) return;
    if (auto taken = take(*value))
      store(std::move(*taken), document::origin(*value));
    else
      outcome_ = usage_error(fmt::format("{}: {}.{} is {}; it must be {}", document::origin(*value), name_, key,
                                         document::shown(*value), expected));
  }

  template <typename T>
  void read(const char* key, const std::string& expected,
            const std::function<std::optional<T>(const toml::node&)>& take, std::optional<Rule<T>>& rule) {
    read<T>(key, expected, take,
            [&](T value, std::string where) { rule = Rule<T>{std::move(value), std::move(where)}; });
  }

  template <typename T>
  void read(const char* key, const std::string& expected,
            const std::function<std::optional<T>(const toml::node&)>& take, T& plain) {
    read<T>(key, expected, take, [&](T value, const std::string&) { plain = std::move(value); });
  }

  Result<void> finish() const {
    REMUDA_TRY(outcome_);
    for (const auto& [key, value] : table_) {
      const std::string name(key.str());
      if (std::ranges::find(known_, name) != known_.end()) continue;
      const std::string near = nearest(name, known_);
      return usage_error(fmt::format("{}: there is no key {}.{}{}", document::origin(value), name_, printable(name),
                                     near.empty() ? "" : fmt::format("; did you mean {}?", near)));
    }
    return {};
  }

  std::string where() const { return document::origin(table_); }

 private:
  const toml::table& table_;
  const std::string name_;
  std::vector<std::string> known_;
  Result<void> outcome_;
};

std::optional<bool> flag(const toml::node& node) {
  return node.is_boolean() ? std::optional(node.as_boolean()->get()) : std::nullopt;
}

std::function<std::optional<int>(const toml::node&)> integer(int low, int high) {
  return [low, high](const toml::node& node) -> std::optional<int> {
    if (!node.is_integer()) return std::nullopt;
    const int64_t value = node.as_integer()->get();
    return value >= low && value <= high ? std::optional(static_cast<int>(value)) : std::nullopt;
  };
}

std::optional<double> hours(const toml::node& node) {
  if (!node.is_number()) return std::nullopt;
  const double value =
      node.is_integer() ? static_cast<double>(node.as_integer()->get()) : node.as_floating_point()->get();
  return value >= 0 && value <= kMostHours ? std::optional(value) : std::nullopt;
}

std::optional<Enforce> enforce(const toml::node& node) {
  return node.is_string() ? from_word<Enforce>(node.as_string()->get()) : std::nullopt;
}

std::optional<double> duration(const toml::node& node) {
  const auto seconds = node.is_string() ? parse_duration(node.as_string()->get()) : std::nullopt;
  return seconds && *seconds <= kLongest_s ? seconds : std::nullopt;
}

/// "64GiB"; with a unit, as on the command line.
std::optional<int64_t> amount(const toml::node& node) {
  const std::string text = node.is_string() ? node.as_string()->get() : "";
  if (text.find_first_not_of("0123456789.") == std::string::npos) return std::nullopt;
  const auto bytes = parse_amount(text);
  return bytes ? std::optional(static_cast<int64_t>(*bytes)) : std::nullopt;
}

/// ["alice", "bob"], at least one.
std::optional<std::vector<std::string>> names(const toml::node& node) {
  if (!node.is_array() || node.as_array()->empty() || node.as_array()->size() > kMostNames) return std::nullopt;
  std::vector<std::string> names;
  for (const toml::node& one : *node.as_array()) {
    const std::string name = one.is_string() ? one.as_string()->get() : "";
    if (name.empty() || printable(name) != name) return std::nullopt;
    names.push_back(name);
  }
  return names;
}

/// [] is none.
std::optional<std::vector<std::string>> exemptions(const toml::node& node) {
  if (!node.is_array() || node.as_array()->size() > kMostExempt) return std::nullopt;
  std::vector<std::string> units;
  for (const toml::node& one : *node.as_array()) {
    units.push_back(one.is_string() ? one.as_string()->get() : "");
    if (!is_exemption(units.back())) return std::nullopt;
  }
  return units;
}

std::optional<std::array<bool, 7>> days(const toml::node& node) {
  return node.is_string() ? parse_days(node.as_string()->get()) : std::nullopt;
}

std::optional<int> minute(const toml::node& node) {
  return node.is_string() ? parse_minute(node.as_string()->get()) : std::nullopt;
}

constexpr const char *kDuration = "a time such as \"15m\", \"12h\" or \"7d\"", *kCores = "an integer from 0 to 65536",
                     *kAmount = "an amount such as \"64GiB\"", *kNames = "a list of names such as [\"alice\"]",
                     *kMinute = "a time of day such as \"08:00\"";

void read_who(Reader& reader, Who& who) {
  reader.read<std::vector<std::string>>("users", kNames, names, who.users);
  reader.read<std::vector<std::string>>("groups", kNames, names, who.groups);
  who.where = reader.where();
}

Result<void> read_queue(const toml::table& table, Policy& policy) {
  Reader reader(table, "queue");
  reader.read<double>("half_life", kDuration, duration, policy.half_life_s);
  reader.read<double>("patience", kDuration, duration, policy.patience_s);
  reader.read<bool>("backfill", "true or false", flag, policy.backfill);
  return reader.finish();
}

Result<void> read_limit(const toml::table& table, Policy& policy) {
  Limit limit;
  Reader reader(table, "limit");
  read_who(reader, limit.who);
  reader.read<int>("devices", "an integer from 0 to 256", integer(0, 256), limit.devices);
  reader.read<int>("waiting", "an integer from 0 to 1000000", integer(0, 1'000'000), limit.waiting);
  reader.read<int>("priority", "an integer from -1000 to 1000", integer(-1000, 1000), limit.priority);
  reader.read<double>("device_hours", "a number of at least 0", hours, limit.device_hours);
  reader.read<double>("longest", kDuration, duration, limit.longest_s);
  reader.read<double>("default", kDuration, duration, limit.default_s);
  reader.read<bool>("share", "true or false", flag, limit.share);
  reader.read<int>("cpus", kCores, integer(0, 65536), limit.cores);
  reader.read<int>("default_cpus", kCores, integer(0, 65536), limit.default_cores);
  reader.read<int64_t>("host_mem", kAmount, amount, limit.host_memory);
  reader.read<int64_t>("default_host_mem", kAmount, amount, limit.default_host_memory);
  REMUDA_TRY(reader.finish());
  if (limit.default_s && limit.longest_s && limit.default_s->value > limit.longest_s->value)
    return usage_error(fmt::format("{}: limit.default is longer than limit.longest", limit.default_s->where));
  if (limit.default_cores && limit.cores && limit.default_cores->value > limit.cores->value)
    return usage_error(fmt::format("{}: limit.default_cpus is more than limit.cpus", limit.default_cores->where));
  if (limit.default_host_memory && limit.host_memory && limit.default_host_memory->value > limit.host_memory->value)
    return usage_error(
        fmt::format("{}: limit.default_host_mem is more than limit.host_mem", limit.default_host_memory->where));
  policy.limits.push_back(std::move(limit));
  return {};
}

Result<void> read_reservation(const toml::table& table, Policy& policy) {
  Reservation reservation;
  Reader reader(table, "reservation");
  read_who(reader, reservation.who);
  reader.read<std::vector<std::string>>("devices", "a list of devices such as [\"gpu:0\"]", names, reservation.devices);
  reader.read<std::array<bool, 7>>("days", "days such as \"Mon-Fri\" or \"Sat,Sun\"", days, reservation.hours.days);
  reader.read<int>("from", kMinute, minute, reservation.hours.from_min);
  reader.read<int>("to", kMinute, minute, reservation.hours.to_min);
  REMUDA_TRY(reader.finish());
  reservation.where = reader.where();
  if (reservation.devices.empty())
    return usage_error(reservation.where + ": reservation.devices is missing; it must be a list such as [\"gpu:0\"]");
  if (reservation.who.users.empty() && reservation.who.groups.empty())
    return usage_error(reservation.where + ": the reservation is for nobody; it needs users or groups");
  policy.reservations.push_back(std::move(reservation));
  return {};
}

Result<void> read_devices(const toml::table& table, Policy& policy) {
  Reader reader(table, "devices");
  reader.read<Enforce>("enforce", "\"off\", \"jobs\", \"audit\" or \"everyone\"", enforce, policy.enforce);
  reader.read<std::vector<std::string>>(
      "exempt",
      fmt::format("a list of {} units at the most such as [\"gdm.service\"], or of cgroups such as "
                  "[\"/system.slice/a\"]",
                  kMostExempt),
      exemptions, policy.exempt);
  return reader.finish();
}

/// A command that root's shell is to run.
std::optional<std::string> command(const toml::node& node) {
  const std::string text = node.is_string() ? node.as_string()->get() : "";
  return text.empty() || text.size() > kLongestCommand || text.find('\0') != std::string::npos ? std::nullopt
                                                                                               : std::optional(text);
}

std::optional<double> patience(const toml::node& node) {
  const auto seconds = duration(node);
  return seconds && *seconds > 0 && *seconds <= kLongestProbe_s ? seconds : std::nullopt;
}

Result<void> read_health(const toml::table& table, Policy& policy) {
  Reader reader(table, "health");
  reader.read<std::string>("probe", "a command such as \"/usr/local/sbin/check-gpu\"", command, policy.health.probe);
  reader.read<double>("timeout", "a time of 10m at the most such as \"30s\"", patience, policy.health.probe_timeout_s);
  return reader.finish();
}

/// Below half of the time, so that a job that works is none.
std::optional<double> floor_of_use(const toml::node& node) {
  const auto value = node.is_number() ? node.value<double>() : std::nullopt;
  return value && *value > 0 && *value <= 0.5 ? value : std::nullopt;
}

/// Those that programs use for this: others end a process, or mean something else.
std::optional<int> checkpoint_signal(const toml::node& node) {
  const std::string name = node.is_string() ? node.as_string()->get() : "";
  if (name == "USR1") return SIGUSR1;
  return name == "USR2" ? std::optional(SIGUSR2) : std::nullopt;
}

std::optional<double> idle_time(const toml::node& node) {
  const auto seconds = duration(node);
  return seconds && *seconds >= kShortestIdle_s ? seconds : std::nullopt;
}

Result<void> read_idle(const toml::table& table, Policy& policy) {
  constexpr const char* kTime = "a time of at least 10 s such as \"30m\"";
  Idle& idle = policy.idle;
  Reader reader(table, "idle");
  reader.read<double>("warn_after", kTime, idle_time, idle.warn_after_s);
  reader.read<double>("signal_after", kTime, idle_time, idle.signal_after_s);
  reader.read<double>("release_after", kTime, idle_time, idle.release_after_s);
  reader.read<double>("floor", "a share of time above 0 and up to 0.5", floor_of_use, idle.floor);
  reader.read<int>("signal", "\"USR1\" or \"USR2\"", checkpoint_signal, idle.signal);
  reader.read<std::vector<std::string>>("exempt_users", kNames, names, idle.exempt.users);
  reader.read<std::vector<std::string>>("exempt_groups", kNames, names, idle.exempt.groups);
  idle.exempt.where = reader.where();
  REMUDA_TRY(reader.finish());
  if (!idle.is_on())
    return usage_error(reader.where() + ": idle.warn_after is missing: nobody is signalled or ended without a warning");
  if (idle.signal_after_s > 0 && idle.signal_after_s <= idle.warn_after_s)
    return usage_error(reader.where() + ": idle.signal_after must be longer than idle.warn_after");
  if (idle.release_after_s > 0 && idle.release_after_s <= std::max(idle.warn_after_s, idle.signal_after_s))
    return usage_error(reader.where() +
                       ": idle.release_after must be longer than idle.warn_after and idle.signal_after");
  return {};
}

Result<void> read_sharing(const toml::table& table, Policy& policy) {
  Reader reader(table, "sharing");
  reader.read<bool>("mps", "true or false", flag, policy.mps);
  reader.read<std::vector<std::string>>("mig", "a list of GPUs such as [\"gpu:0\"]", names, policy.mig);
  return reader.finish();
}

std::optional<double> price(const toml::node& node) {
  const auto value = node.is_number() ? node.value<double>() : std::nullopt;
  return value && *value > 0 && *value <= kHighestPrice ? value : std::nullopt;
}

/// A word or a sign, such as "EUR".
std::optional<std::string> word(const toml::node& node) {
  constexpr size_t kLongest = 64;
  const std::string text = node.is_string() ? node.as_string()->get() : "";
  return text.empty() || text.size() > kLongest || printable(text) != text ? std::nullopt : std::optional(text);
}

Result<void> read_tariff(const toml::table& table, Policy& policy) {
  Tariff tariff;
  std::string currency;
  Reader reader(table, "tariff");
  reader.read<std::string>("model", "a name, with wildcards, such as \"*A100*\"", word, tariff.model);
  reader.read<double>("hour", "a number above 0", price, tariff.hour);
  reader.read<double>("kwh", "a number above 0", price, tariff.kwh);
  reader.read<std::string>("currency", "a name such as \"EUR\"", word, currency);
  REMUDA_TRY(reader.finish());
  if (tariff.hour <= 0 && tariff.kwh <= 0)
    return usage_error(reader.where() + ": the tariff takes nothing; it needs tariff.hour or tariff.kwh");
  if (policy.currency.empty()) policy.currency = currency;
  if (policy.currency.empty())
    return usage_error(reader.where() + ": tariff.currency is missing; write one such as \"EUR\"");
  if (!currency.empty() && currency != policy.currency)
    return usage_error(fmt::format("{}: tariff.currency is {}, and that of a tariff before it {}", reader.where(),
                                   currency, policy.currency));
  policy.tariffs.push_back(std::move(tariff));
  return {};
}

using ReadTable = Result<void> (*)(const toml::table&, Policy&);

/// [[name]] tables.
Result<void> read_each(const toml::node& node, const std::string& name, ReadTable read, Policy& policy) {
  const auto wrong = [&] {
    return usage_error(fmt::format("{0}: {1} must be tables, each below a line [[{1}]], {2} at the most",
                                   document::origin(node), name, kMostTables));
  };
  if (!node.is_array() || node.as_array()->size() > kMostTables) return wrong();
  for (const toml::node& one : *node.as_array()) {
    if (!one.is_table()) return wrong();
    REMUDA_TRY(read(*one.as_table(), policy));
  }
  return {};
}

/// A file that somebody else can write is not the administrator's.
Result<void> check_owner(const std::string& path, int fd) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return usage_error(fmt::format("cannot read {}: {}", path, errno_text(errno)));
  const bool is_trusted = info.st_uid == 0 || info.st_uid == ::geteuid();
  if (is_trusted && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return usage_error(
      fmt::format("{} can be written by others; make it root's: chown root {} && chmod 644 {}", path, path, path));
}

}  // namespace

Result<Policy> parse_policy(std::string_view text, const std::string& name) {
  if (text.size() > kMostBytes) return usage_error(fmt::format("{} is longer than {} bytes", name, kMostBytes));
  REMUDA_ASSIGN(const toml::table table, document::parse_toml(text, name));
  Policy policy;
  const std::vector<std::string> known{"queue",   "devices", "health",      "idle",
                                       "sharing", "limit",   "reservation", "tariff"};
  for (const auto& [key, value] : table) {
    if (key == "queue" && value.is_table()) {
      REMUDA_TRY(read_queue(*value.as_table(), policy));
    } else if (key == "devices" && value.is_table()) {
      REMUDA_TRY(read_devices(*value.as_table(), policy));
    } else if (key == "health" && value.is_table()) {
      REMUDA_TRY(read_health(*value.as_table(), policy));
    } else if (key == "idle" && value.is_table()) {
      REMUDA_TRY(read_idle(*value.as_table(), policy));
    } else if (key == "sharing" && value.is_table()) {
      REMUDA_TRY(read_sharing(*value.as_table(), policy));
    } else if (key == "limit") {
      REMUDA_TRY(read_each(value, "limit", read_limit, policy));
    } else if (key == "reservation") {
      REMUDA_TRY(read_each(value, "reservation", read_reservation, policy));
    } else if (key == "tariff") {
      REMUDA_TRY(read_each(value, "tariff", read_tariff, policy));
    } else {
      const std::string word(key.str()), near = nearest(word, known);
      return usage_error(
          fmt::format("{}: there is no table {}; the tables are [queue], [devices], [health], [idle], "
                      "[sharing], [[limit]], [[reservation]] and [[tariff]]{}",
                      document::origin(value), printable(word),
                      near.empty() || near == word ? "" : fmt::format("; did you mean {}?", near)));
    }
  }
  return policy;
}

Result<Policy> read_policy(const std::string& path) {
  REMUDA_ASSIGN(const Fd file, open_for_reading(path));
  REMUDA_TRY(check_owner(path, file.get()));
  REMUDA_ASSIGN(const std::string text, read_all(file.get(), path, kMostBytes, 0));
  return parse_policy(text, path);
}

}  // namespace remuda::policy
