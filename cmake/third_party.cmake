# One target third_NAME for each library that roost uses; deps/ says which version and why.
set(ROOST_DEPS "${CMAKE_SOURCE_DIR}/.deps")
if(NOT EXISTS "${ROOST_DEPS}/.stamp")
  message(FATAL_ERROR "The dependencies are not installed: run ./dev setup")
endif()

find_package(Threads REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(PostgreSQL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED COMPONENTS core)

add_library(third_openssl INTERFACE)
target_link_libraries(third_openssl INTERFACE OpenSSL::SSL OpenSSL::Crypto)
add_library(third_sqlite INTERFACE)
target_link_libraries(third_sqlite INTERFACE SQLite::SQLite3)
add_library(third_libpq INTERFACE)
target_link_libraries(third_libpq INTERFACE PostgreSQL::PostgreSQL)
add_library(third_zlib INTERFACE)
target_link_libraries(third_zlib INTERFACE ZLIB::ZLIB)
add_library(third_spdlog INTERFACE)
target_link_libraries(third_spdlog INTERFACE spdlog::spdlog)
add_library(third_json INTERFACE)
target_link_libraries(third_json INTERFACE nlohmann_json::nlohmann_json)
add_library(third_cli11 INTERFACE)
target_link_libraries(third_cli11 INTERFACE CLI11::CLI11)
# The definitions are those that Debian compiled the library with: they change the layout of its classes.
add_library(third_httplib INTERFACE)
target_link_libraries(third_httplib INTERFACE cpp-httplib)
target_compile_definitions(third_httplib INTERFACE
  CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_ZLIB_SUPPORT CPPHTTPLIB_BROTLI_SUPPORT)
add_library(third_prometheus INTERFACE)
target_link_libraries(third_prometheus INTERFACE prometheus-cpp::core)
add_library(third_toml INTERFACE)  # header only, in the system's include path

# Boost is header only here. Asio and Beast are compiled once, in net/asio_impl.cc and net/beast_impl.cc; the
# definitions are global, for two objects of one binary must not differ in them.
find_package(Boost 1.81 REQUIRED)
add_compile_definitions(BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED BOOST_BEAST_SEPARATE_COMPILATION)
add_library(third_asio INTERFACE)
target_link_libraries(third_asio INTERFACE Boost::headers Threads::Threads)

# DuckDB: headers of the source distribution, library of the npm package. The library is a release build; its headers
# change layouts only under DEBUG and DUCKDB_DEBUG_*, which nothing here may define. third_party/ serves the internal
# headers; it holds a fmt of DuckDB's own, so a file that includes DuckDB must not include spdlog.
set(duckdb_dir "${ROOST_DEPS}/duckdb")
add_library(third_duckdb SHARED IMPORTED GLOBAL)
set_target_properties(third_duckdb PROPERTIES IMPORTED_LOCATION "${duckdb_dir}/lib/libduckdb.so")
target_include_directories(third_duckdb SYSTEM INTERFACE
  "${duckdb_dir}/include"
  "${duckdb_dir}/third_party/concurrentqueue"
  "${duckdb_dir}/third_party/fast_float"
  "${duckdb_dir}/third_party/fastpforlib"
  "${duckdb_dir}/third_party/fmt/include"
  "${duckdb_dir}/third_party/fsst"
  "${duckdb_dir}/third_party/libpg_query/include"
  "${duckdb_dir}/third_party/re2"
  "${duckdb_dir}/third_party/utf8proc/include"
  "${duckdb_dir}/third_party/yyjson/include")

# Arrow C++ of the pyarrow wheel: there is no libarrow.so link, so the versioned file is named.
foreach(name arrow arrow_flight)
  file(GLOB shared_object "${ROOST_DEPS}/arrow/lib${name}.so.*")
  add_library(third_${name} SHARED IMPORTED GLOBAL)
  set_target_properties(third_${name} PROPERTIES IMPORTED_LOCATION "${shared_object}")
  target_include_directories(third_${name} SYSTEM INTERFACE "${ROOST_DEPS}/arrow/include")
endforeach()
target_link_libraries(third_arrow_flight INTERFACE third_arrow)

# deps/duckdb_extensions.h: the engine checks each extension file against this before it loads it unsigned.
file(STRINGS "${duckdb_dir}/extensions/SHA256SUMS" sums)
set(entries "")
foreach(line IN LISTS sums)
  string(REGEX MATCH "^([0-9a-f]+)  (.+)\\.duckdb_extension$" _ "${line}")
  string(APPEND entries "    {\"${CMAKE_MATCH_2}\", \"${CMAKE_MATCH_1}\"},\n")
endforeach()
set(ROOST_GENERATED "${CMAKE_BINARY_DIR}/generated")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${duckdb_dir}/extensions/SHA256SUMS")
configure_file(cmake/duckdb_extensions.h.in "${ROOST_GENERATED}/deps/duckdb_extensions.h" @ONLY)
configure_file(cmake/version.h.in "${ROOST_GENERATED}/deps/version.h" @ONLY)
