# roost_folder(FOLDER [DEPS FOLDER…] [THIRD NAME…] [PCH std|asio|duckdb])
#
# Makes, from what FOLDER holds (roost_front_http for front/http):
#   roost_FOLDER     library   every .cc that is none of the following
#   FOLDER_test      ctest     all *_test.cc in one executable
#   FOLDER_bench     program   all *_bench.cc in one executable
#   NAME_fuzz        program   NAME_fuzz.cc under libFuzzer, in the fuzz preset
#   NAME_replay      ctest     NAME_fuzz.cc run once over FOLDER/corpus/NAME/, in all other presets
# A folder that does not exist, or has no sources yet, is skipped, also as a DEP of others.
#
# roost_binary(app …) does the same and makes the program roost of app/main.cc.

# Precompiled headers, one for each of the heavy sets of headers; folders reuse them, so each is compiled once.
foreach(kind std asio duckdb)
  add_library(roost_pch_${kind} OBJECT cmake/pch/pch.cc)
  target_precompile_headers(roost_pch_${kind} PRIVATE cmake/pch/${kind}.h)
  target_include_directories(roost_pch_${kind} PRIVATE "${CMAKE_SOURCE_DIR}" "${ROOST_GENERATED}")
endforeach()
target_link_libraries(roost_pch_asio PRIVATE third_asio third_openssl)
target_link_libraries(roost_pch_duckdb PRIVATE third_duckdb)

add_custom_target(unit_tests)   # everything that ctest runs
add_custom_target(lower_tests)  # of these, from engine/ down (ctest -L lower): the ordinary tests run them sanitized too
add_custom_target(benchmarks)
add_custom_target(fuzz_targets)
file(WRITE "${CMAKE_BINARY_DIR}/fuzz_targets.txt" "")   # for ./dev fuzz: a line NAME CORPUS_FOLDER for each

# Sets OUT to the library targets of the folders that exist.
function(roost_libraries out)
  set(found "")
  foreach(folder IN LISTS ARGN)
    string(REPLACE "/" "_" name "${folder}")
    if(TARGET roost_${name})
      list(APPEND found roost_${name})
    endif()
  endforeach()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# Include paths, precompiled header and libraries that every target of a folder has.
function(roost_target target visibility)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "PCH" "DEPS;THIRD")
  roost_libraries(libraries ${arg_DEPS})
  list(TRANSFORM arg_THIRD PREPEND third_)
  target_include_directories(${target} PRIVATE "${CMAKE_SOURCE_DIR}" "${ROOST_GENERATED}")
  # Third-party libraries are private: a folder above links them but does not see their headers by accident.
  target_link_libraries(${target} ${visibility} ${libraries} PRIVATE ${arg_THIRD} Threads::Threads)
  if(arg_PCH)
    target_precompile_headers(${target} REUSE_FROM roost_pch_${arg_PCH})
  endif()
endfunction()

# Registers a test program of a folder with ctest.
function(roost_ctest folder name command)
  add_dependencies(unit_tests ${command})
  add_test(NAME ${name} COMMAND ${command} ${ARGN} WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 ENVIRONMENT "${ROOST_TEST_ENVIRONMENT}")
  if(NOT folder MATCHES "^(app|front/.*|service|routing|cluster|sim)$")
    add_dependencies(lower_tests ${command})
    set_tests_properties(${name} PROPERTIES LABELS lower)
  endif()
endfunction()

function(roost_fuzz source folder)
  get_filename_component(fuzz "${source}" NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" name "${fuzz}")
  if(ROOST_FUZZ)
    add_executable(${fuzz} EXCLUDE_FROM_ALL "${source}")
    target_link_options(${fuzz} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${fuzz} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/fuzz")
    add_dependencies(fuzz_targets ${fuzz})
    file(APPEND "${CMAKE_BINARY_DIR}/fuzz_targets.txt" "${name} ${folder}/corpus/${name}\n")
    roost_target(${fuzz} PRIVATE ${ARGN})
  else()
    add_executable(${name}_replay "${source}" cmake/fuzz_replay_main.cc)
    roost_ctest(${folder} ${name}_replay ${name}_replay "${folder}/corpus/${name}")
    roost_target(${name}_replay PRIVATE ${ARGN})
  endif()
endfunction()

function(roost_folder folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PCH" "DEPS;THIRD")
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cc")
  if(NOT sources)
    # A folder of nothing but headers, or none: those above still get what it would have passed on.
    roost_libraries(libraries ${arg_DEPS})
    string(REPLACE "/" "_" name "${folder}")
    add_library(roost_${name} INTERFACE)
    target_link_libraries(roost_${name} INTERFACE ${libraries})
    return()
  endif()
  if(NOT arg_PCH)
    set(arg_PCH std)
  endif()
  string(REPLACE "/" "_" name "${folder}")
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  set(benches ${sources})
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")
  set(fuzzers ${sources})
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|_bench|_fuzz|/app/main)\\.cc$")
  set(options PCH ${arg_PCH} THIRD ${arg_THIRD})

  if(sources)
    add_library(roost_${name} STATIC ${sources})
    roost_target(roost_${name} PUBLIC ${options} DEPS ${arg_DEPS})
  else()
    roost_libraries(libraries ${arg_DEPS})
    add_library(roost_${name} INTERFACE)
    target_link_libraries(roost_${name} INTERFACE ${libraries})
  endif()
  if(tests)
    add_executable(${name}_test ${tests})
    roost_target(${name}_test PRIVATE ${options} DEPS ${folder})
    target_link_libraries(${name}_test PRIVATE GTest::gtest GTest::gtest_main)
    roost_ctest(${folder} ${name} ${name}_test)
  endif()
  if(benches)
    add_executable(${name}_bench EXCLUDE_FROM_ALL ${benches})
    roost_target(${name}_bench PRIVATE ${options} DEPS ${folder})
    # gtest: benchmarks set up what they measure with the helpers of the tests.
    target_link_libraries(${name}_bench PRIVATE benchmark::benchmark benchmark::benchmark_main GTest::gtest)
    add_dependencies(benchmarks ${name}_bench)
  endif()
  foreach(source IN LISTS fuzzers)
    roost_fuzz("${source}" "${folder}" ${options} DEPS ${folder})
  endforeach()
endfunction()

function(roost_binary folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PCH" "DEPS;THIRD")
  roost_folder(${ARGV})
  if(NOT EXISTS "${CMAKE_SOURCE_DIR}/${folder}/main.cc")
    return()
  endif()
  add_executable(roost ${folder}/main.cc)
  roost_target(roost PRIVATE PCH ${arg_PCH} THIRD ${arg_THIRD} DEPS ${folder})
  # For the canary tests: the same program with walls that can be taken away (base/wall.h). Nothing but a link: its own
  # definition of stands() comes before the one in roost_base.
  add_executable(roost_switched_walls EXCLUDE_FROM_ALL ${folder}/main.cc tests/walls/switched_walls.cc)
  roost_target(roost_switched_walls PRIVATE PCH ${arg_PCH} THIRD ${arg_THIRD} DEPS ${folder})
  install(TARGETS roost DESTINATION bin)
  install(DIRECTORY "${ROOST_DEPS}/duckdb/extensions" DESTINATION bin)
  foreach(library duckdb arrow)
    install(FILES "$<TARGET_FILE:third_${library}>" DESTINATION bin)
  endforeach()
endfunction()
