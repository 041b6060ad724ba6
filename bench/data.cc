// How fast a folder of JPEG files becomes batches, mirrored and moved: in the step by its one thread, and ahead of it
// by worker threads, beside what the decoder alone can do on the same cores; and, from the second epoch on, from
// memory.
//
// The device is one that computes elsewhere (a GPU): for the time of its step, the thread that waits for it sleeps. The
// step takes as long as the worker threads need for a batch, which is where reading ahead is worth most.

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <thread>

#include "base/check.h"
#include "base/table.h"
#include "base/testing/scratch_folder.h"
#include "bench/figure.h"
#include "bench/repeat.h"
#include "data/decode.h"
#include "data/image_cache.h"
#include "data/image_files.h"
#include "data/loader.h"
#include "data/mix.h"
#include "data/testing/pictures.h"

namespace remuda::bench {
namespace {

using data::Range;

struct Options {
  int images = 1024, batch = 64, size = 224, repeats = 3;
  int threads = int(std::thread::hardware_concurrency());
  bool json = false;
};

/// Waves of several lengths with noise: about as many bytes as a photograph of 500 x 375 pixels has at this quality.
std::string photograph(uint64_t seed) {
  data::Picture picture{3, {375, 500}, {}};
  const auto wave = [&](double at, uint64_t which) {
    const auto draw = double(data::mix(seed * 16 + which) % 1000);
    return std::sin(at * (0.01 + draw / 4000) + draw);
  };
  uint64_t noise = seed;
  for (int y = 0; y < picture.size.height; ++y)
    for (int x = 0; x < picture.size.width; ++x)
      for (uint64_t c = 0; c < 3; ++c) {
        noise = data::mix(noise);
        const double value = 128 + 50 * wave(x, c) + 50 * wave(y, 3 + c) + double(noise % 32);
        picture.values.push_back(uint8_t(std::clamp(value, 0.0, 255.0)));
      }
  return data::jpeg_file(picture, 90);
}

void write_images(const ScratchFolder& folder, int count) {
  for (const char* name : {"cat", "dog"}) std::filesystem::create_directory(folder.path(name));
  for (int i = 0; i < count; ++i)
    folder.write(fmt::format("{}/{}.jpg", i % 2 == 0 ? "cat" : "dog", i), photograph(uint64_t(i)));
}

/// Images per second of `threads` threads that only decode files in memory, to the size that reading needs.
double decoder_limit(const Options& options) {
  constexpr int kEach = 200;
  const std::string file = photograph(7);
  const double start = now_s();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < options.threads; ++i)
      threads.emplace_back([&] {
        data::Picture picture;
        for (int repeat = 0; repeat < kEach; ++repeat)
          REMUDA_CHECK(data::decode(data::bytes_of(file), "memory", 3, {options.size, options.size}, picture),
                       "it decodes");
      });
  }
  return options.threads * kEach / (now_s() - start);
}

/// Images per second of a run over the folder in which each step takes `step_s` after its batch is there.
double run_speed(const Options& options, const data::Dataset& set, int workers, double step_s) {
  const auto size = uint64_t(options.batch), batches = set.size() / size;
  data::Loader loader(set, data::SampleOrder::shuffled(set.size(), 1), workers);
  const double start = now_s();
  for (uint64_t i = 0; i < batches; ++i) {
    const std::vector<Range> next{{(i + 1) * size, size}, {(i + 2) * size, size}};
    const auto ahead = std::span(next).first(workers > 0 ? std::min<uint64_t>(2, batches - 1 - i) : 0);
    REMUDA_CHECK(loader.take({i * size, size}, ahead), "the images can be read");
    if (step_s > 0) std::this_thread::sleep_for(std::chrono::duration<double>(step_s));
  }
  return double(batches * size) / (now_s() - start);
}

template <typename Measure>
double median_of(int repeats, Measure measure) {
  std::vector<double> all;
  for (int i = 0; i < repeats; ++i) all.push_back(measure());
  return median(std::move(all));
}

const data::ImageTransform kTransform{.flip = true, .crop = 28};

data::ImageFiles open_files(const ScratchFolder& folder, const Options& options) {
  return data::ImageFiles::open(folder.path(), {.channels = 3, .size = options.size}).value();
}

data::ImageSamples from_memory(const ScratchFolder& folder, const Options& options) {
  auto files = std::make_unique<data::ImageFiles>(open_files(folder, options));
  return data::ImageSamples(data::ImageCache::create(std::move(files), UINT64_MAX).value(), kTransform);
}

std::vector<Figure> measure_all(const Options& options) {
  const ScratchFolder folder;
  write_images(folder, options.images);
  const data::ImageSamples set(std::make_unique<data::ImageFiles>(open_files(folder, options)), kTransform);
  const data::ImageSamples kept = from_memory(folder, options);
  const auto speed_of = [&](const data::Dataset& from, int workers, double step_s) {
    return median_of(options.repeats, [&] { return run_speed(options, from, workers, step_s); });
  };
  const auto speed = [&](int workers, double step_s) { return speed_of(set, workers, step_s); };
  const double limit = median_of(options.repeats, [&] { return decoder_limit(options); });
  const double one = speed(0, 0), all = speed(options.threads - 1, 0);
  const double step_s = options.batch / all;
  const double in_step = speed(0, step_s), ahead = speed(options.threads, step_s);
  run_speed(options, kept, options.threads - 1, 0);  // the first epoch decodes
  const double again = speed_of(kept, options.threads - 1, 0);
  const auto parameters = [&](int workers, double step) {
    return Json{{"images", options.images},
                {"batch", options.batch},
                {"size", options.size},
                {"workers", workers},
                {"step_ms", std::round(10000 * step) / 10}};
  };
  const char* unit = "images/s";
  return {{"decoder alone, all threads", parameters(options.threads, 0), limit, unit, {}, {}, {}},
          {"read by one thread", parameters(0, 0), one, unit, {}, {}, limit},
          {"read by all threads", parameters(options.threads - 1, 0), all, unit, one, all / one, limit},
          {"in the step", parameters(0, step_s), in_step, unit, {}, {}, limit},
          {"ahead of the step", parameters(options.threads, step_s), ahead, unit, in_step, ahead / in_step, limit},
          {"from memory by all threads", parameters(options.threads - 1, 0), again, unit, one, again / one, {}}};
}

}  // namespace
}  // namespace remuda::bench

int main(int argc, char** argv) {
  using namespace remuda;
  CLI::App app("Measures how fast a folder of JPEG files becomes batches, in the step and ahead of it.");
  bench::Options options;
  app.add_option("--images", options.images, "files to make")->check(CLI::Range(1, 100000));
  app.add_option("--batch", options.batch, "images in a batch")->check(CLI::Range(1, 100000));
  app.add_option("--size", options.size, "height and width that they are brought to")->check(CLI::Range(1, 4096));
  app.add_option("--threads", options.threads, "as many as may read at once")->check(CLI::Range(1, 256));
  app.add_option("--repeats", options.repeats, "of which the median is shown")->check(CLI::Range(1, 100));
  app.add_flag("--json", options.json, "print one JSON object per figure, a line each");
  CLI11_PARSE(app, argc, argv);
  const auto figures = bench::measure_all(options);
  std::cout << (options.json ? bench::as_json_lines(figures) : bench::as_table(figures));
}
