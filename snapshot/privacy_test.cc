#include "snapshot/privacy.h"

#include <gtest/gtest.h>

namespace remuda::snapshot {
namespace {

Json snapshot() {
  const auto lease = [](const char* user) {
    return Json{{"job", 1}, {"device", "gpu"}, {"user", user}, {"command", {"secret"}}, {"cgroup", "/secret"}};
  };
  const auto process = [](Json user) { return Json{{"pid", 1}, {"user", std::move(user)}, {"command", "secret"}}; };
  Json json;
  json["jobs"] = {{"leases", {lease("ana"), lease("ben"), {{"device", "gpu"}, {"holder", "ben"}}}},
                  {"waiting", {{{"id", 2}, {"user", "ben"}, {"folder", "/secret"}, {"later_field", "secret"}}}}};
  json["past"] = {lease("ben")};
  json["past"][0]["why"] = "there is no program /home/ben/secret";
  json["inventory"]["devices"] = {
      {{"id", "gpu"}, {"status", {{"processes", {process("ana"), process("ben"), process({{"missing", "denied"}})}}}}},
      {{"id", "other"}, {"status", {{"processes", {{"missing", "denied"}}}}}}};
  return json;
}

TEST(SnapshotPrivacy, OwnCommandsStay) {
  Json json = snapshot();
  hide_from("ana", json);
  EXPECT_EQ(json["jobs"]["leases"][0]["command"], Json({"secret"}));
  EXPECT_EQ(json["inventory"]["devices"][0]["status"]["processes"][0]["command"], "secret");
}

TEST(SnapshotPrivacy, OthersGo) {
  Json json = snapshot();
  hide_from("carol", json);
  EXPECT_EQ(to_line(json).find("secret"), std::string::npos) << to_line(json);
  json = snapshot();
  hide_from("an", json);
  EXPECT_EQ(to_line(json).find("secret"), std::string::npos) << "ana is another";
}

TEST(SnapshotPrivacy, WhoHoldsWhatStays) {
  Json json = snapshot();
  hide_from("carol", json);
  EXPECT_EQ(json["jobs"]["leases"][1]["user"], "ben");
  EXPECT_EQ(json["jobs"]["leases"][1]["job"], 1);
  EXPECT_EQ(json["jobs"]["leases"][2]["holder"], "ben");
  EXPECT_EQ(json["inventory"]["devices"][1]["status"]["processes"]["missing"], "denied");
}

TEST(SnapshotPrivacy, AnErrorHasNothingToHide) {
  Json json{{"version", 1}, {"error", "no"}};
  hide_from("ana", json);
  EXPECT_EQ(json["error"], "no");
}

}  // namespace
}  // namespace remuda::snapshot
