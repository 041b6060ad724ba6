#include "train/events.h"

#include <chrono>
#include <csignal>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

namespace remuda::train {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
  }
  /// All that is written until the last writer is gone.
  std::vector<Json> read_events() {
    std::string text;
    char buffer[65536];
    for (ssize_t got; (got = ::read(read_end.get(), buffer, sizeof buffer)) > 0;) text.append(buffer, size_t(got));
    std::vector<Json> events;
    for (const auto& line : split(text, '\n'))
      if (!line.empty()) events.push_back(parse_json(line, "an event").value_or(Json()));
    return events;
  }
  Fd read_end, write_end;
};

constexpr int kSteps = 20000;  // some 600 KB: many times what a pipe holds
constexpr int kEvery = 100;

TEST(Events, NeverBlockWhileNobodyReads) {
  Pipe pipe;
  auto sender = std::async(std::launch::async, [&] {
    auto events = std::make_unique<Events>(pipe.write_end.get());
    for (int step = 0; step < kSteps; ++step) {
      events->send({{"event", "step"}, {"step", step}});
      if (step % kEvery == 0) events->send({{"event", "balance"}, {"step", step}, {"reason", std::string(500, 'x')}});
    }
    events->send({{"event", "done"}, {"report", std::string(100000, 'y')}});
    return events;  // it still has what the pipe could not take
  });
  if (sender.wait_for(std::chrono::seconds(60)) != std::future_status::ready) {
    ::signal(SIGPIPE, SIG_IGN);
    pipe.read_end.reset();  // lets the sender end
    FAIL() << "blocked by a pipe that is full";
  }
  auto events = sender.get();
  auto ended = std::async(std::launch::async, [&] {
    events.reset();
    pipe.write_end.reset();
  });
  const auto read = pipe.read_events();
  ended.get();

  int steps = 0, decisions = 0, last_step = -1;
  for (const auto& event : read) {
    if (event["event"] == "step") {
      ++steps;
      EXPECT_GT(event["step"], last_step) << "in order";
      last_step = event["step"];
    }
    if (event["event"] == "balance") {
      EXPECT_EQ(event["step"], kEvery * decisions) << "every decision, in order";
      ++decisions;
    }
  }
  EXPECT_EQ(decisions, kSteps / kEvery);
  EXPECT_LT(steps, kSteps) << "old progress is dropped";
  EXPECT_EQ(last_step, kSteps - 1) << "but not the newest";
  ASSERT_FALSE(read.empty());
  EXPECT_EQ(read.back()["event"], "done");
}

TEST(Events, EndWithTheirReader) {
  Pipe pipe;
  ::signal(SIGPIPE, SIG_IGN);
  Events events(pipe.write_end.get());
  pipe.read_end.reset();
  for (int i = 0; i < 1000; ++i) events.send({{"event", "epoch"}, {"epoch", i}});
}

}  // namespace
}  // namespace remuda::train
