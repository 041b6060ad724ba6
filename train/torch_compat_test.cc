#include "train/torch_compat.h"

#include <gtest/gtest.h>

namespace remuda::train {
namespace {

bool is_of_memory(const std::string& text) { return is_out_of_memory(std::runtime_error(text)); }

TEST(TorchCompat, AnAllocationThatAMakersLibraryCannotMakeIsOutOfMemory) {
  for (const char* text :
       {"CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDnCreate(handle)`",
        "CUDA error: HIPBLAS_STATUS_ALLOC_FAILED when calling `hipblasCreate(handle)`",
        "CUDA error: rocblas_status_memory_error when calling `rocblas_create_handle(handle)`",
        "miopen error: miopenStatusAllocFailed"})
    EXPECT_TRUE(is_of_memory(text)) << text;
}

TEST(TorchCompat, WhatElseALibraryReportsIsNot) {
  for (const char* text : {"CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm(...)`",
                           "cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",
                           "CUDA error: rocblas_status_invalid_size when calling `rocblas_sgemm(...)`",
                           "CUDA error: device-side assert triggered"})
    EXPECT_FALSE(is_of_memory(text)) << text;
}

TEST(TorchCompat, AnOperatorThatIsNotDeterministicIsNamedInOneSentence) {
  const bool before = at::globalContext().deterministicAlgorithms();
  set_deterministic(at::globalContext(), true);
  std::string sentence;
  try {
    torch::zeros({4}).put_(torch::zeros({1}, torch::kLong), torch::ones({1}));
  } catch (const std::exception& error) {
    sentence = first_line(error);
  }
  set_deterministic(at::globalContext(), before);
  EXPECT_EQ(sentence, std::string("put_ has no kernel on this device that gives the same bits each time (libtorch ") +
                          TORCH_VERSION + "); leave train.deterministic out");
}

}  // namespace
}  // namespace remuda::train
