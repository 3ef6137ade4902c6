// The way of DuckDB instances to an object store. `StoreKeys` holds the keys: DuckDB's S3 client asks a database for
// them, so they are the settings of a small private one that runs no statement of anybody. An instance gets the client
// with a wall and these keys around it (`let_in`); its own settings and secrets are empty. Requests are bounded in time
// by those settings, and connections to the store are kept for all instances. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/file_system.h"
#include "lake/lake_location.h"

namespace duckdb {
class Connection;
class DatabaseInstance;
class DuckDB;
}  // namespace duckdb

namespace roost {

class ObjectCache;

class StoreKeys {
public:
    // Errors: as of Instance::make.
    static Result<std::shared_ptr<StoreKeys>> make(const ObjectStore &store, const std::string &extension_dir);
    ~StoreKeys();
    StoreKeys(const StoreKeys &) = delete;
    StoreKeys &operator=(const StoreKeys &) = delete;

    duckdb::DatabaseInstance &database();

private:
    StoreKeys() = default;

    std::unique_ptr<duckdb::DuckDB> database_;
};

// Loads the client into the instance of `connection` and puts the wall and the keys around it. Other schemes, of the
// web and of other stores, are refused from then on. `cache`: what the lake's objects go through, may be null. Throws
// DuckDB's exceptions.
void let_in(duckdb::Connection &connection, const std::string &extension_dir, std::shared_ptr<FileWall> wall,
            std::shared_ptr<StoreKeys> keys, std::shared_ptr<ObjectCache> cache);

// Waits until the client's uploads in the background have let go of the instance's memory, which they do within the
// bounds of their requests. Called before an instance is destroyed.
void await_uploads(duckdb::DatabaseInstance &database);

// The client's settings for this store, keys included: for `StoreKeys`, and for trusted instances of roost's own.
void configure_client(duckdb::Connection &connection, const ObjectStore &store);

}  // namespace roost
