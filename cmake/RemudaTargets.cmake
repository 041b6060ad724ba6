# The functions every folder's CMakeLists.txt uses, and what all targets share.

get_filename_component(REMUDA_ROOT ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(REMUDA_SANITIZE "" CACHE STRING "Sanitizers to build with, as in address,undefined")
set(REMUDA_BIN ${CMAKE_BINARY_DIR}/bin CACHE PATH "Where programs land")

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()

find_package(Threads REQUIRED)
find_package(tl-expected REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(GTest REQUIRED)
find_package(PkgConfig REQUIRED)
include(GoogleTest)

add_library(remuda_flags INTERFACE)
target_compile_options(remuda_flags INTERFACE -Wall -Wextra -Wno-missing-field-initializers -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 sees overlapping copies in std::string where there are none (GCC bug 105651), and unset variables where it is
  # asked to instrument.
  target_compile_options(remuda_flags INTERFACE -Wno-restrict)
  if(REMUDA_SANITIZE)
    target_compile_options(remuda_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
target_include_directories(remuda_flags INTERFACE ${REMUDA_ROOT})
target_link_libraries(remuda_flags INTERFACE Threads::Threads tl::expected fmt::fmt nlohmann_json::nlohmann_json)

# One code model for all objects: any of them may land in a shared library, and all can share precompiled headers.
add_compile_options(-fPIC)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fno-semantic-interposition)
endif()

if(REMUDA_SANITIZE)
  add_compile_options(-fsanitize=${REMUDA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${REMUDA_SANITIZE})
endif()

# What every test finds in its environment; ctest reads this file before it starts the first one.
configure_file(${REMUDA_ROOT}/cmake/test_environment.cmake.in ${CMAKE_BINARY_DIR}/test_environment.cmake @ONLY)
set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_BINARY_DIR}/test_environment.cmake)

# Reading headers is most of what compiling takes here. Three sets of them are precompiled, once each: `code` for all
# targets, `test` for those with GoogleTest, and `torch` (RemudaTorch.cmake), which saves 8 s of a file's 12.
set(precompile OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(precompile ON)
endif()
option(REMUDA_PCH "Precompile the headers that many files share" ${precompile})

# remuda_precompile(NAME DEPS other ... HEADERS <a> ...): what remuda_link takes by that name.
function(remuda_precompile name)
  cmake_parse_arguments(ARG "" "" "DEPS;HEADERS" ${ARGN})
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/pch_${name}.cc CONTENT "")
  add_library(remuda_pch_${name} OBJECT ${CMAKE_BINARY_DIR}/pch_${name}.cc)
  target_link_libraries(remuda_pch_${name} PRIVATE remuda_flags ${ARG_DEPS})
  target_precompile_headers(remuda_pch_${name} PRIVATE ${ARG_HEADERS})
endfunction()

if(REMUDA_PCH)
  # Precompiled, the standard library is no longer a system header to g++ 12: what it inlines is warned about.
  target_compile_options(remuda_flags INTERFACE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  set(common_headers <algorithm> <chrono> <filesystem> <functional> <map> <memory> <optional> <span> <string>
    <string_view> <variant> <vector> <fmt/format.h> <nlohmann/json.hpp> <tl/expected.hpp>)
  remuda_precompile(code HEADERS ${common_headers})
  remuda_precompile(test DEPS GTest::gtest GTest::gmock HEADERS ${common_headers} <gmock/gmock.h> <gtest/gtest.h>)
endif()

# Links ARGN, and takes the richest set of precompiled headers that fits them.
function(remuda_link target scope)
  target_link_libraries(${target} ${scope} remuda_flags ${ARGN})
  if(NOT REMUDA_PCH)
    return()
  elseif("remuda_torch" IN_LIST ARGN)
    set(headers torch)
  elseif("GTest::gmock" IN_LIST ARGN)
    set(headers test)
  else()
    set(headers code)
  endif()
  target_precompile_headers(${target} REUSE_FROM remuda_pch_${headers})
endfunction()

# No header may lean on what its users include before it. One with a .cc file of its own name is read first there (by
# clang-tidy, too, with nothing precompiled); this reads each of the others alone, once per folder, with what its first
# library links. A folder within it that has a CMakeLists.txt does so itself.
function(remuda_check_headers name)
  get_directory_property(checked remuda_headers_checked)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${REMUDA_ROOT} ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  file(GLOB nested CONFIGURE_DEPENDS RELATIVE ${REMUDA_ROOT} ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
  foreach(list_file ${nested})
    get_filename_component(folder ${list_file} DIRECTORY)
    list(FILTER headers EXCLUDE REGEX "^${folder}/")
  endforeach()
  foreach(header ${headers})
    string(REGEX REPLACE "h$" "cc" source ${header})
    if(EXISTS ${REMUDA_ROOT}/${source})
      list(REMOVE_ITEM headers ${header})
    endif()
  endforeach()
  if(checked OR NOT headers)
    return()
  endif()
  set_directory_properties(PROPERTIES remuda_headers_checked TRUE)
  set(sources "")
  foreach(header ${headers})
    set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${header}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"
#include \"${header}\"  // and twice
")
    list(APPEND sources ${source})
  endforeach()
  add_library(remuda_${name}_headers OBJECT ${sources})
  if("remuda_torch" IN_LIST ARGN)  # reading libtorch takes too long to do it for each
    remuda_link(remuda_${name}_headers PRIVATE ${ARGN})
  else()
    target_compile_options(remuda_${name}_headers PRIVATE -O0)
    target_link_libraries(remuda_${name}_headers PRIVATE remuda_flags ${ARGN})
  endif()
endfunction()

# remuda_library(NAME SOURCES a.cc ... DEPS other ...): the library remuda_NAME of one folder.
function(remuda_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(remuda_${name} STATIC ${ARG_SOURCES})
  remuda_link(remuda_${name} PUBLIC ${ARG_DEPS})
  remuda_check_headers(${name} ${ARG_DEPS})
endfunction()

# remuda_program(NAME SOURCES a.cc ... DEPS other ...): a program in REMUDA_BIN (build/bin in the release preset).
function(remuda_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  remuda_link(${name} PRIVATE ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${REMUDA_BIN})
endfunction()

# remuda_fuzz(NAME SOURCES a_fuzz.cc ... DEPS other ...): a libFuzzer program, run with `./dev fuzz NAME`.
function(remuda_fuzz name)
  remuda_program(${name}_fuzz ${ARGN})
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
endfunction()

# remuda_test(NAME SOURCES a_test.cc ... DEPS other ...): a GoogleTest program; each TEST is one ctest test.
# Tests are listed when ctest starts, not when the program is built: only then is their environment set.
function(remuda_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  remuda_link(${name} PRIVATE GTest::gtest_main GTest::gmock remuda_testing ${ARG_DEPS})
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
endfunction()
