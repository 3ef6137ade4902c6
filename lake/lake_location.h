// Where one DuckLake is: its catalog and its files. A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace roost {

// An S3-compatible store and the keys to it. They stay in the file layer of the process: no instance's settings or
// secrets hold them.
struct ObjectStore {
    std::string endpoint;                                         // http://HOST:PORT or https://…; empty: AWS
    std::string region;                                           // empty: the store's default
    std::string url_style;                                        // "path" or "vhost"
    std::string access_key_id, secret_access_key, session_token;  // empty: requests are not signed
    int64_t timeout_ms = 20'000;                                  // of one request, which is tried twice
};

struct LakeLocation {
    std::string catalog;        // the name SQL uses, e.g. "lake"
    std::string metadata_path;  // SQLite file; with `on_postgres` a libpq connection string, which may hold a password
    std::string data_path;      // of the data files, with a slash at its end: an absolute directory, or
                                // s3://BUCKET/PREFIX/ with `store`
    std::string staging_path;   // directory of uploaded files that internal statements may read
    bool on_postgres = false;   // the catalog is in Postgres: writers need no lease
    int64_t catalog_timeout_ms = 120'000;  // of one question to Postgres
    std::optional<ObjectStore> store;      // where data_path or one of `external` is in a store
    // Folders of somebody else's Parquet, which the lake reads where it lies and never writes or removes: absolute
    // directories and s3://BUCKET/PREFIX/, each with a slash at its end.
    std::vector<std::string> external;

    bool data_in_store() const { return data_path.starts_with("s3://"); }
};

}  // namespace roost
