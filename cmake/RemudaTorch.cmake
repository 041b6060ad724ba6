# remuda_torch: the libtorch that remuda-train is built against, as one target to link.
#
# REMUDA_TORCH says which: debian (the package libtorch-dev), python (the PyTorch 2.x that python3 imports), a folder (an
# unpacked libtorch), or auto: python where there is one, debian otherwise.
#
# libtorch's own TorchConfig.cmake is read for its compiler flags but not run: it sets the language standard back to its
# own, and the one in a CUDA wheel refuses to configure without the CUDA toolkit, which remuda does not need.

include_guard(GLOBAL)

set(REMUDA_TORCH auto CACHE STRING "libtorch to build against: auto, debian, python, or a folder")

# Sets `result` to the folder of the PyTorch that python3 imports, or to nothing, and `why_not` to the reason.
function(remuda_python_torch result why_not)
  execute_process(COMMAND python3 ${REMUDA_ROOT}/tools/python_torch.py
    OUTPUT_VARIABLE folder ERROR_VARIABLE error OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
  set(${result} "${folder}" PARENT_SCOPE)
  set(${why_not} "${error}" PARENT_SCOPE)
endfunction()

# Sets `result` to the folder to search, or to nothing for Debian's.
function(remuda_torch_folder result)
  set(folder "")
  if(REMUDA_TORCH STREQUAL "auto" OR REMUDA_TORCH STREQUAL "python")
    remuda_python_torch(folder why_not)
    if(REMUDA_TORCH STREQUAL "python" AND NOT folder)
      message(FATAL_ERROR "REMUDA_TORCH=python, but ${why_not}")
    endif()
  elseif(NOT REMUDA_TORCH STREQUAL "debian")
    get_filename_component(folder "${REMUDA_TORCH}" ABSOLUTE BASE_DIR ${REMUDA_ROOT})
  endif()
  set(${result} "${folder}" PARENT_SCOPE)
endfunction()

remuda_torch_folder(torch_folder)
if(torch_folder)
  set(torch_search PATHS ${torch_folder} NO_DEFAULT_PATH)
  set(torch_origin "${torch_folder}")
else()
  set(torch_search "")
  set(torch_origin "Debian's libtorch-dev")
endif()

find_path(torch_include ATen/ATen.h PATH_SUFFIXES include NO_CACHE ${torch_search})
find_path(torch_api_include torch/torch.h
  PATH_SUFFIXES torch/csrc/api/include include/torch/csrc/api/include NO_CACHE ${torch_search})
find_file(torch_config TorchConfig.cmake
  PATHS ${torch_folder}/share/cmake/Torch /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/cmake/Torch NO_DEFAULT_PATH NO_CACHE)
find_library(torch_library torch PATH_SUFFIXES lib NO_CACHE ${torch_search})
find_library(torch_cpu_library torch_cpu PATH_SUFFIXES lib NO_CACHE ${torch_search})
find_library(c10_library c10 PATH_SUFFIXES lib NO_CACHE ${torch_search})
foreach(part torch_include torch_api_include torch_config torch_library torch_cpu_library c10_library)
  if(NOT ${part})
    message(FATAL_ERROR "No libtorch in ${torch_origin} (${part} not found): install libtorch-dev, or set REMUDA_TORCH "
      "to a folder with an unpacked libtorch, or REMUDA_TRAIN=OFF to build without it")
  endif()
endforeach()

# Refuses a compiler that was installed without the shared C++ library: it puts a copy of its own into each program, which
# then crashes in the first message that libtorch prints by the other one.
function(remuda_require_shared_cxx_library)
  if(REMUDA_LOADS_CXX_LIBRARY)
    return()
  endif()
  set(program ${CMAKE_BINARY_DIR}/loads_cxx_library)
  set(CMAKE_TRY_COMPILE_TARGET_TYPE EXECUTABLE)
  file(WRITE ${program}.cc "#include <iostream>\nint main() { std::cout << 1; }\n")
  try_compile(remuda_program_linked ${CMAKE_BINARY_DIR} ${program}.cc OUTPUT_VARIABLE said COPY_FILE ${program})
  if(NOT remuda_program_linked)
    message(FATAL_ERROR "${CMAKE_CXX_COMPILER} cannot make a program:\n${said}")
  endif()
  file(STRINGS ${program} loaded REGEX "lib(std)?c\\+\\+\\.so" LIMIT_COUNT 1)
  if(NOT loaded)
    message(FATAL_ERROR "Programs of ${CMAKE_CXX_COMPILER} do not load the shared C++ library, which libtorch needs them to share: "
      "set CMAKE_CXX_COMPILER to a compiler whose programs do, or REMUDA_TRAIN=OFF to build without libtorch")
  endif()
  set(REMUDA_LOADS_CXX_LIBRARY ON CACHE INTERNAL "")
endfunction()
remuda_require_shared_cxx_library()

# The one flag that matters is which string ABI libtorch was built with.
file(STRINGS ${torch_config} torch_flags REGEX "set\\(TORCH_CXX_FLAGS ")
string(REGEX REPLACE ".*TORCH_CXX_FLAGS \"([^\"]*)\".*" "\\1" torch_flags "${torch_flags}")

add_library(remuda_torch INTERFACE)
target_include_directories(remuda_torch SYSTEM INTERFACE ${torch_include} ${torch_api_include})
target_compile_options(remuda_torch INTERFACE ${torch_flags})
# A device backend registers itself when its library is loaded: keep libtorch.so, which names them, even if nothing
# calls into it. The libraries behind it are its own business.
target_link_options(remuda_torch INTERFACE -Wl,--no-as-needed -Wl,--allow-shlib-undefined)
target_link_libraries(remuda_torch INTERFACE ${torch_library} ${torch_cpu_library} ${c10_library})

file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/torch_version.cc CONTENT "#include <torch/version.h>\nTORCH_VERSION\n")
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -E -P -I ${torch_include} -I ${torch_api_include} ${CMAKE_BINARY_DIR}/torch_version.cc
  OUTPUT_VARIABLE torch_version OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REGEX REPLACE ".*\"([^\"]+)\"$" "\\1" torch_version "${torch_version}")
message(STATUS "libtorch ${torch_version} from ${torch_origin}")
