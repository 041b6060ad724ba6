// remuda web: serves the page that shows a machine and its pool.
#include <fmt/format.h>
#include <memory>
#include <string>
#include <unistd.h>

#include "base/host_port.h"
#include "cli/subcommands.h"
#include "cli/watch/source_flags.h"
#include "process/stop_signals.h"
#include "web/access.h"
#include "web/server.h"

namespace remuda::cli {
namespace {

constexpr const char* kWebHelp =
    "Open the printed address. It holds a token, without which nobody gets to see anything; it is new at each start.\n"
    "The page needs nothing from elsewhere, and changes nothing here. To look from another machine:\n"
    "  ssh -L 8790:127.0.0.1:8790 HOST\n\n"
    "Examples:\n"
    "  remuda web                                  this machine\n"
    "  remuda web --demo                           eight unlike GPUs and their users, recorded: needs no GPU\n"
    "  remuda web --replay a.json --replay b.json  recordings of `remuda record`, as two hosts\n"
    "  remuda web --listen 0.0.0.0:8790 --tls-cert cert.pem --tls-key key.pem\n"
    "  remuda web --token-file ~/.remuda-token     for a Prometheus that scrapes /metrics with the token\n";

struct WebFlags {
  SourceFlags source;
  std::string listen = "127.0.0.1:8790";
  std::string token_file;
  web::ServerOptions server;
};

/// Unlike other addresses to listen at, this one may have port 0: any.
Result<void> set_address(const std::string& text, web::ServerOptions& options) {
  const bool is_any_port = text.ends_with(":0");
  const auto parsed = parse_host_port(is_any_port ? text.substr(0, text.size() - 1) + "1" : text);
  if (!parsed) return usage_error(fmt::format("--listen: '{}' is no address; write one such as 127.0.0.1:8790", text));
  if (!parsed->host.empty()) options.address = parsed->host;
  options.port = is_any_port ? 0 : parsed->port;
  return {};
}

Result<int> serve(WebFlags flags) {
  if (::geteuid() == 0)
    return usage_error(
        "the page is not served by root, as whoever got hold of the server would have the machine; start it as a user, "
        "or as one that can do nothing else: setpriv --reuid=nobody --clear-groups remuda web");
  if (flags.source.is_recording() && flags.source.reports.is_any())
    return usage_error("--on-alert and --syslog report this machine's alerts, and a recording is to be played");
  REMUDA_TRY(set_address(flags.listen, flags.server));
  if (flags.token_file.empty()) {
    REMUDA_ASSIGN(flags.server.token, web::make_token());
  } else {
    REMUDA_ASSIGN(flags.server.token, web::token_in(flags.token_file));
  }
  REMUDA_ASSIGN(process::StopSignals stop, process::StopSignals::hold_with_hang_up());
  REMUDA_ASSIGN(const auto source, open_source(flags.source));  // its threads have the signals blocked, too
  REMUDA_ASSIGN(const auto server, web::Server::open(flags.server, *source));
  fmt::print("{}\n", server->url());
  if (::isatty(STDERR_FILENO) != 0) fmt::print(stderr, "Ctrl-C ends it\n");
  std::fflush(stdout);
  server->serve(stop.fd());
  while (stop.next()) {  // else they would act once they may again, before what is new is written
  }
  return 0;
}

}  // namespace

void add_web(Program& program) {
  auto flags = std::make_shared<WebFlags>();
  CLI::App& command =
      program.add("web", "Show machine, users and queue in a browser", [flags] { return serve(*flags); });
  command.add_option("--listen", flags->listen, "Where to listen; port 0: any that is free")
      ->type_name("ADDRESS:PORT")
      ->capture_default_str();
  auto* certificate = command.add_option("--tls-cert", flags->server.certificate, "The server's certificate, as PEM")
                          ->type_name("FILE");
  auto* key = command.add_option("--tls-key", flags->server.key, "The key of the certificate")->type_name("FILE");
  certificate->needs(key);
  key->needs(certificate);
  command
      .add_option("--token-file", flags->token_file,
                  "Take the token from this file, which is made where there is none, so that it stays the same")
      ->type_name("FILE");
  command.add_option("--name", flags->server.names, "A name of this server, beside the host's own")->type_name("NAME");
  command
      .add_option("--embed", flags->server.embed_origin,
                  "A site whose pages may show this one in a frame, by ?embed: https://host")
      ->type_name("ORIGIN");
  add_source_options(command, flags->source);
  add_report_options(command, flags->source.reports);
  command.footer(kWebHelp);
}

}  // namespace remuda::cli
