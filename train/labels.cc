#include "train/labels.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace remuda::train::label {
namespace {

constexpr std::pair<uint32_t, const char*> kNames[] = {{kStructure, "the shapes of the models"},
                                                       {kOrder, "the order of gradients"},
                                                       {kValues, "rank 0's parameters"},
                                                       {kReports, "the reports of a step"},
                                                       {kCollectives, "the devices' own library"},
                                                       {kStuck, "the devices' own library"},
                                                       {kMemory, "the memory of devices"},
                                                       {kNeeds, "the memory of devices"},
                                                       {kPrecision, "what devices compute in"},
                                                       {kHash, "a comparison of the parameters"},
                                                       {kKernels, "a comparison of the parameters"},
                                                       {kAloneTurn, "the speed of devices"},
                                                       {kAloneTimes, "the speed of devices"},
                                                       {kMeasureAgain, "the speed of devices"},
                                                       {kShares, "new shares"},
                                                       {kStateMove, "a move of the state"},
                                                       {kEvaluation, "an evaluation"},
                                                       {kBufferWeights, "the mean of buffers"},
                                                       {kBuffers, "the mean of buffers"},
                                                       {kTotals, "the totals of the run"},
                                                       {kImageCache, "the memory for images"},
                                                       {kClock, "a profile"},
                                                       {kProfile, "a profile"},
                                                       {kCheckpoint, "a checkpoint"},
                                                       {kCopies, "a buddy's copy"},
                                                       {kCompression, "packed gradients"},
                                                       {kLoss, "the loss of a rank"},
                                                       {kAssembly, "the loss of a rank"},
                                                       {kFarewell, "the end of the run"},
                                                       {kJoin, "a rank that joins"},
                                                       {kUserSum, "Group::sum"},
                                                       {kUserBarrier, "Group::barrier"},
                                                       {kFeed, "batches of other ranks"},
                                                       {kLoader, "a DataLoader"},
                                                       {kOptions, "the options of a DataParallel"},
                                                       {kNorms, "a batch norm"},
                                                       {kNormPiece, "a batch norm"},
                                                       {kBlockPass, "a block of the model"},
                                                       {kLentBlock, "a block of the model"},
                                                       {kFirstNorm, "a batch norm"}};

}  // namespace

std::string text_of(uint32_t label) {
  const auto* const found =
      std::ranges::find(kNames, std::min<uint32_t>(label, kFirstNorm), &std::pair<uint32_t, const char*>::first);
  return found == std::end(kNames) ? fmt::format("bucket {}", label) : found->second;
}

}  // namespace remuda::train::label
