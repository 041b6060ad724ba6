// Tests only: ranks as threads of this process, with a model of four parameters and a batch for it.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/listener.h"
#include "parallel/parallel.h"

namespace remuda::parallel::testing {

/// Runs `body` once per rank, each a thread; the first exception of one is thrown again.
inline void run_ranks(int size, const std::function<void(const Group&)>& body) {
  const int port = free_port().value();
  std::vector<std::exception_ptr> errors{size_t(size)};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        Place place;
        place.rank = rank;
        place.size = size;
        place.master_port = port;
        place.secret = "of this test";
        body(Group::connect(place));
      } catch (...) {
        errors[size_t(rank)] = std::current_exception();
      }
    });
  for (auto& thread : threads) thread.join();
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
}

inline Group alone() { return Group::connect({}); }

/// The sentence with which `call` is refused.
template <typename Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline torch::nn::Linear make_linear(double value = 0.5) {
  torch::nn::Linear model(3, 1);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model->parameters()) parameter.fill_(value);
  return model;
}

struct Batch {
  torch::Tensor inputs, targets;
};
inline Batch make_batch(int64_t size) {
  const auto inputs = torch::arange(size * 3).view({size, 3}).sin();
  return {inputs, inputs.sum(1, true) * 2};
}

inline torch::Tensor loss_sum(torch::nn::Linear& model, const Batch& batch, Part part) {
  const auto scores = model->forward(batch.inputs.narrow(0, part.begin, part.size));
  return torch::mse_loss(scores, batch.targets.narrow(0, part.begin, part.size), torch::Reduction::Sum);
}

/// A step on `part` of the batch.
inline Step train_on(DataParallel& parallel, torch::nn::Linear& model, const Batch& batch, Part part,
                     double rate = 0.1) {
  torch::Tensor loss = torch::zeros({});
  parallel.begin(double(part.size));
  if (part.size > 0) {
    loss = loss_sum(model, batch, part);
    loss.backward();
  }
  return parallel.step(rate, loss);
}

}  // namespace remuda::parallel::testing
