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
  # Paths count from the checkout, so that what one checkout has compiled is there for all others.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()

find_package(Threads REQUIRED)
find_package(tl-expected REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(GTest REQUIRED)
find_package(PkgConfig REQUIRED)
include(GoogleTest)

# Warnings are for our own code: programs that use the installed library have their own (RemudaInstall.cmake).
add_library(remuda_flags INTERFACE)
target_compile_options(remuda_flags INTERFACE
  "$<BUILD_INTERFACE:-Wall;-Wextra;-Wno-missing-field-initializers;-Werror>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 sees overlapping copies in std::string where there are none (GCC bug 105651), and unset variables where it
  # inlines much: when several files are compiled as one, or instrumented.
  target_compile_options(remuda_flags INTERFACE "$<BUILD_INTERFACE:-Wno-restrict;-Wno-maybe-uninitialized>")
else()
  # Its own std::stable_sort calls what libstdc++ 12 marks as deprecated.
  target_compile_options(remuda_flags INTERFACE "$<BUILD_INTERFACE:-Wno-deprecated-declarations>")
endif()
target_include_directories(remuda_flags INTERFACE $<BUILD_INTERFACE:${REMUDA_ROOT}>
  $<INSTALL_INTERFACE:include/remuda>)
target_compile_features(remuda_flags INTERFACE $<INSTALL_INTERFACE:cxx_std_20>)
target_link_libraries(remuda_flags INTERFACE Threads::Threads tl::expected fmt::fmt nlohmann_json::nlohmann_json)

# One code model for all objects: any of them may land in a shared library.
add_compile_options(-fPIC)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fno-semantic-interposition)
endif()

# Without the check of virtual tables: it tests by a pipe of its own whether memory is readable, and so takes each object
# for a broken one where tests leave no descriptor free.
if(REMUDA_SANITIZE)
  add_compile_options(-fsanitize=${REMUDA_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${REMUDA_SANITIZE})
endif()

# What every test finds in its environment; ctest reads this file before it starts the first one.
configure_file(${REMUDA_ROOT}/cmake/test_environment.cmake.in ${CMAKE_BINARY_DIR}/test_environment.cmake @ONLY)
set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_BINARY_DIR}/test_environment.cmake)

# Reading headers is most of what compiling takes here. So in all presets but `dev` and `lint` the files of a target are
# compiled a batch at a time, as if they were one (unity builds): two files of a folder must not use one name for two things,
# in an anonymous namespace either. Precompiled headers gain nothing beside that, and keep checkouts from sharing a cache.
function(remuda_link target scope)
  target_link_libraries(${target} ${scope} remuda_flags ${ARGN})
endfunction()

# remuda_library(NAME SOURCES a.cc ... DEPS other ...): the library remuda_NAME of one folder.
function(remuda_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(remuda_${name} STATIC ${ARG_SOURCES})
  remuda_link(remuda_${name} PUBLIC ${ARG_DEPS})
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

# Every test is labelled with its program, and ./dev finds the programs of a folder here.
set(REMUDA_TEST_PROGRAMS ${CMAKE_BINARY_DIR}/test_programs.txt)
file(WRITE ${REMUDA_TEST_PROGRAMS} "")
function(remuda_list_tests label)
  file(RELATIVE_PATH folder ${REMUDA_ROOT} ${CMAKE_CURRENT_SOURCE_DIR})
  file(APPEND ${REMUDA_TEST_PROGRAMS} "${label} ${folder}\n")
endfunction()

# remuda_test(NAME SOURCES a_test.cc ... DEPS other ...): a GoogleTest program; each TEST is one ctest test.
# Tests are listed when ctest starts, not when the program is built: only then is their environment set.
function(remuda_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  remuda_link(${name} PRIVATE GTest::gtest_main GTest::gmock remuda_testing ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 8)  # a test is changed and run again many times
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300 LABELS ${name}
    ENVIRONMENT RC_PARAMS=seed=1)
  remuda_list_tests(${name})
endfunction()

# remuda_script_tests(TARGET [DEPENDS other ...] TESTS name ...): tests made with add_test as the program TARGET, which builds
# what they start.
function(remuda_script_tests target)
  cmake_parse_arguments(ARG "" "" "DEPENDS;TESTS" ${ARGN})
  add_custom_target(${target})
  if(ARG_DEPENDS)
    add_dependencies(${target} ${ARG_DEPENDS})
  endif()
  set_tests_properties(${ARG_TESTS} PROPERTIES LABELS ${target})
  remuda_list_tests(${target})
endfunction()
