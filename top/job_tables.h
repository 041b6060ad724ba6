// JobTables: alerts, the jobs that hold devices, and the queue with its sentences. Pure.
#pragma once

#include <vector>

#include "top/body.h"
#include "top/items.h"

namespace remuda::top {

void add_alerts(const std::vector<Item>& items, double now_s, Body& body);

/// Who holds what: for how long, how busy and how effective, and for how much longer.
void add_jobs(const std::vector<Item>& items, double now_s, Body& body);

/// How far the runs within these jobs are, as far as they say so.
void add_runs(const std::vector<Item>& items, Body& body);
void add_queue(const std::vector<Item>& items, double now_s, Body& body);

/// "for 6 min", "" where it is not known since when.
std::string since_text(double since_s, double now_s);

/// "acknowledged by ana", "silenced for 2 h"; "" for an open one.
std::string attention_text(const snapshot::Alert& alert, double now_s);

/// The mean of what is known of a job's devices, and what they have cost together.
snapshot::Use use_of(const Item& job);

}  // namespace remuda::top
