// Routes: what is answered at which path, and to whom.
#pragma once

#include <atomic>
#include <httplib.h>
#include <string>
#include <vector>

#include "snapshot/source.h"
#include "web/feed.h"

namespace remuda::web {

/// What decides whether a request is answered.
struct Gate {
  std::string token;
  std::string scheme = "http";
  std::vector<std::string> names;  ///< of this server, beside addresses and localhost
  std::string embed_origin;        ///< whose pages may show this one in a frame, with ?embed; empty: nobody's
  int most_streams = 128;          ///< of events; one more is told to come back
};

/// What the answers are made of. All of it outlives the server.
struct Stage {
  const Gate& gate;
  snapshot::Source& source;
  Feed& feed;
  std::atomic<int> streams = 0;  ///< of events that are open
};

/// GET of the page's files, to anybody; of /api/snapshot, /api/history, /api/set, /api/events, /metrics and
/// /metrics/dcgm with the token. All else is refused with a sentence.
void add_routes(httplib::Server& server, Stage& stage);

}  // namespace remuda::web
