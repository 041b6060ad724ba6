#include "train/run_terms.h"

#include "base/env.h"
#include "base/version.h"
#include "data/content.h"

namespace remuda::train {
namespace {

comm::Term run_id() { return {env::run_id.name, env::get(env::run_id).value_or("")}; }

}  // namespace

comm::Terms terms_of_run() { return {run_id(), {"the version of remuda", version()}}; }

comm::Terms terms_of_content(const job::TrainJob& job) {
  comm::Terms terms;
  for (const auto& [key, path] : job::files_of(job)) {
    const auto content = data::describe_content(path);
    terms.push_back({"the content of " + key, content ? *content : "not readable: " + content.error().message});
  }
  return terms;
}

comm::Terms terms_of(const job::TrainJob& job, const std::string& run_id) {
  comm::Terms terms{{env::run_id.name, run_id}, {"the version of remuda", version()}};
  for (const auto& [key, value] : job::settings_of(job)) terms.push_back({key, value});
  for (comm::Term& term : terms_of_content(job)) terms.push_back(std::move(term));
  return terms;
}

comm::Terms terms_of(const measure::Plan& plan) { return {run_id(), {"the plan", to_line(to_json(plan))}}; }

}  // namespace remuda::train
