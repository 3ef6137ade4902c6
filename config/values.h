// How settings are written: byte sizes, durations, addresses, store and database locations. Pure functions; a parser
// answers with a value or with invalid_argument that says what it wanted. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace roost::config {

// "2GiB", "512MB", "1.5 GiB", "65536". Powers of 1024: KiB MiB GiB TiB (or K M G T), of 1000: KB MB GB TB. Case is
// ignored.
Result<uint64_t> parse_bytes(std::string_view text);
// Exact: the largest power of 1024 that divides it ("2GiB", "1536MiB"), else plain bytes.
std::string format_bytes(uint64_t bytes);

// "500ms", "30s", "1.5m", "24h", "7d". A plain number is milliseconds.
Result<int64_t> parse_duration_ms(std::string_view text);
std::string format_duration(int64_t duration_ms);

// 0.25, 1, 1e3: finite.
Result<double> parse_number(std::string_view text);
std::string format_number(double value);
Result<int64_t> parse_integer(std::string_view text, int64_t min, int64_t max);

// A place to listen at or connect to: a host and port, or a Unix socket.
struct Address {
    std::string host;       // without brackets; empty for a Unix socket
    uint16_t port = 0;      // 0: any free one, when listening
    std::string unix_path;  // empty for TCP

    bool is_unix() const { return !unix_path.empty(); }
    std::string to_string() const;  // what parse_address accepts
    bool operator==(const Address &) const = default;
};

enum class UnixSocket : bool { refused, allowed };
// "127.0.0.1:8080", "localhost:0", "[::1]:8080"; where allowed "unix:PATH".
Result<Address> parse_address(std::string_view text, UnixSocket unix_socket);
// "http://HOST:PORT" or "unix:PATH": where a node finds its gateway.
Result<Address> parse_join_url(std::string_view text);

// Where the lake's files are.
struct StoreLocation {
    bool is_s3 = false;
    std::string path;            // a directory, when local
    std::string bucket, prefix;  // prefix without slashes around it, may be empty

    std::string to_string() const;
    bool operator==(const StoreLocation &) const = default;
};
// The place `name` in it.
StoreLocation store_below(StoreLocation store, const std::string &name);
// They are one place, or one lies in the other. A relative directory is the working directory's.
bool overlap(const StoreLocation &one, const StoreLocation &other);
// A directory, or "s3://bucket" with an optional "/prefix".
Result<StoreLocation> parse_store(std::string_view text);
// Several of them with commas between; empty: none. No location holds a comma.
Result<std::vector<StoreLocation>> parse_stores(std::string_view text);
std::string format_stores(const std::vector<StoreLocation> &stores);

// Where a catalog or the meta store is.
struct DatabaseLocation {
    enum class Kind : uint8_t { sqlite, postgres } kind = Kind::sqlite;
    std::string place;  // a path, or a libpq connection string

    std::string to_string() const;
    bool operator==(const DatabaseLocation &) const = default;
};
// "sqlite:PATH" or "postgres:DSN".
Result<DatabaseLocation> parse_database(std::string_view text);
// The text with the password of a connection string, of either form, replaced by ***.
std::string mask_password(std::string_view text);

// What fills an empty lake.
struct Sample {
    double tpch_scale_factor = 0;  // 0: nothing

    bool none() const { return tpch_scale_factor == 0; }
    std::string to_string() const;
    bool operator==(const Sample &) const = default;
};
// "tpch:0.1" or "none".
Result<Sample> parse_sample(std::string_view text);

// `text` itself when it is one of `choices`, else an error that names them.
Result<std::string> parse_choice(std::string_view text, const std::vector<std::string_view> &choices);

// The candidate that `text` is probably a slip of the pen for; empty when none is near.
std::string_view nearest(std::string_view text, const std::vector<std::string_view> &candidates);

}  // namespace roost::config
