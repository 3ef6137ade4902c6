# Flags of every preset. Only clang: g++ 12 miscompiles coroutines (docs/design.md, Compiler).
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "roost builds with clang; configure with a preset: cmake --preset release")
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(THREADS_PREFER_PTHREAD_FLAG ON)

add_compile_options(
  -Wall -Wextra -Werror
  $<$<COMPILE_LANGUAGE:CXX>:-Wthread-safety>
  -fno-omit-frame-pointer
  -fcolor-diagnostics)
add_link_options(-fuse-ld=mold)

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")
set(CMAKE_C_FLAGS_DEBUG "-O0 -g")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1")
set(CMAKE_C_FLAGS_SANITIZE "-O1 -g1")

set(ROOST_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize takes them")
option(ROOST_FUZZ "Build *_fuzz.cc as libFuzzer targets instead of corpus replay tests" OFF)
if(ROOST_SANITIZE)
  add_compile_options(-fsanitize=${ROOST_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${ROOST_SANITIZE})
  # libduckdb.so is not instrumented. What it inlines from headers is, in our code only: its containers may be
  # annotated on one side alone, and its calls through function types of its own carry no type information of ours.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=vptr,function>)
endif()
if(ROOST_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
set(ROOST_TEST_ENVIRONMENT
  "ASAN_OPTIONS=detect_container_overflow=0:detect_stack_use_after_return=1"
  "UBSAN_OPTIONS=print_stacktrace=1"
  "TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1"
  "ASAN_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-16")

# ccache, and what it needs to work with precompiled headers.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_SOURCE_DIR}/cmake/compile)
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")

# A binary finds the shared libraries beside it first (installed), then where deps/setup put them (build tree).
set(CMAKE_BUILD_RPATH "$ORIGIN")
set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/../lib")
