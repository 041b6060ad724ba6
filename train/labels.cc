#include "train/labels.h"

#include <fmt/format.h>

namespace remuda::train::label {
namespace {

constexpr const char* name_of_label(uint32_t label) {
  switch (label) {
    case kStructure:
      return "the shapes of the models";
    case kOrder:
      return "the order of gradients";
    case kValues:
      return "rank 0's parameters";
    case kReports:
      return "the reports of a step";
    case kCollectives:
    case kStuck:
      return "the devices' own library";
    case kMemory:
    case kNeeds:
      return "the memory of devices";
    case kPrecision:
      return "what devices compute in";
    case kHash:
    case kKernels:
      return "a comparison of the parameters";
    case kAloneTurn:
    case kAloneTimes:
    case kMeasureAgain:
      return "the speed of devices";
    case kShares:
      return "new shares";
    case kEvaluation:
      return "an evaluation";
    case kBufferWeights:
    case kBuffers:
      return "the mean of buffers";
    case kTotals:
      return "the totals of the run";
    case kImageCache:
      return "the memory for images";
    case kClock:
    case kProfile:
      return "a profile";
    case kCheckpoint:
      return "a checkpoint";
    case kCopies:
      return "a buddy's copy";
    case kCompression:
      return "packed gradients";
    case kLoss:
    case kAssembly:
      return "the loss of a rank";
    case kFarewell:
      return "the end of the run";
    case kJoin:
      return "a rank that joins";
    case kUserSum:
      return "Group::sum";
    case kUserBarrier:
      return "Group::barrier";
    case kFeed:
      return "batches of other ranks";
    case kLoader:
      return "a DataLoader";
    case kOptions:
      return "the options of a DataParallel";
    case kNorms:
    case kNormPiece:
      return "a batch norm";
    case kBlockPass:
    case kLentBlock:
      return "a block of the model";
    default:
      return label >= kFirstNorm ? "a batch norm" : nullptr;
  }
}

}  // namespace

std::string text_of(uint32_t label) {
  if (const char* const name = name_of_label(label)) return name;
  return fmt::format("bucket {}", label);
}

}  // namespace remuda::train::label
