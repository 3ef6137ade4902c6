// For tests: lakes in a temporary directory with their catalog on SQLite or Postgres, and DuckDB instances attached to
// them as any client would be.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "deps/duckdb_extensions.h"
#include "duckdb.hpp"
#include "lake/ducklake.h"
#include "lake/metadata_reader.h"
#include "lake/test_postgres.h"

namespace roost::testing {

using TextRows = std::vector<std::vector<std::string>>;

// A DuckDB instance with a lake as `lake`. Errors are values: what a random statement may not do is no failure.
class LakeClient {
public:
    explicit LakeClient(const std::string &attach) {
        duckdb::DBConfig config;
        config.SetOptionByName("allow_unsigned_extensions", duckdb::Value::BOOLEAN(true));
        config.options.maximum_threads = 1;  // what is read here is small: more threads spin while they wait
        database_ = std::make_unique<duckdb::DuckDB>(nullptr, &config);
        connection_ = std::make_unique<duckdb::Connection>(*database_);
        const std::string folder(deps::kBuildTreeExtensionDir);
        for (const char *name : {"sqlite_scanner", "postgres_scanner", "ducklake"}) {
            must("LOAD '" + folder + "/" + name + ".duckdb_extension'");
        }
        if (!attach.empty()) must(attach);
    }
    // Empty when it worked, else the error's first line.
    std::string run(const std::string &sql) {
        try {
            const auto result = connection_->Query(sql);
            return result->HasError() ? first_line(result->GetError()) : "";
        } catch (const std::exception &error) {
            return first_line(error.what());
        }
    }
    void must(const std::string &sql) {
        const std::string error = run(sql);
        EXPECT_EQ(error, "") << sql;
    }
    TextRows rows(const std::string &sql) {
        TextRows out;
        try {
            const auto result = connection_->Query(sql);
            if (result->HasError()) {
                ADD_FAILURE() << sql << "\n" << result->GetError();
                return out;
            }
            for (const auto &row : result->Collection().Rows()) {
                out.emplace_back();
                for (size_t i = 0; i < result->ColumnCount(); i++) out.back().push_back(row.GetValue(i).ToString());
            }
        } catch (const std::exception &error) {
            ADD_FAILURE() << sql << "\n" << error.what();
        }
        return out;
    }
    std::string value(const std::string &sql) {
        const TextRows all = rows(sql);
        return all.size() == 1 && all[0].size() == 1 ? all[0][0] : "<" + std::to_string(all.size()) + " rows>";
    }
    duckdb::Connection &raw() { return *connection_; }

private:
    static std::string first_line(const std::string &text) { return text.substr(0, text.find('\n')); }
    std::unique_ptr<duckdb::DuckDB> database_;
    std::unique_ptr<duckdb::Connection> connection_;
};

class TestLake {
public:
    // `server`: keeps the catalog in a database of it; null: in a SQLite file.
    explicit TestLake(TestPostgres *server = nullptr) {
        std::string name = (std::filesystem::temp_directory_path() / "roost-lake-XXXXXX").string();
        dir_ = std::filesystem::canonical(mkdtemp(name.data())).string();
        if (server == nullptr) {
            address_ = {.kind = MetadataAddress::Kind::sqlite, .where = dir_ + "/catalog.sqlite"};
        } else {
            static int count = 0;
            const std::string database = "lake_" + std::to_string(++count);
            const Status made = server->create_database(database);
            EXPECT_TRUE(made.ok()) << made.to_string();
            address_ = {.kind = MetadataAddress::Kind::postgres, .where = server->address(database)};
        }
    }
    ~TestLake() {
        std::error_code ignored;
        std::filesystem::remove_all(dir_, ignored);
    }
    const std::string &dir() const { return dir_; }
    std::string data_path() const { return dir_ + "/data/"; }
    const MetadataAddress &address() const { return address_; }
    // `options`: more of them, each with a comma before it.
    std::string attach_sql(const std::string &options = "") const {
        const bool sqlite = address_.kind == MetadataAddress::Kind::sqlite;
        return "ATTACH " + quote_literal((sqlite ? "ducklake:sqlite:" : "ducklake:postgres:") + address_.where) +
               " AS lake (DATA_PATH " + quote_literal(data_path()) +
               (sqlite ? ", META_JOURNAL_MODE 'WAL', META_BUSY_TIMEOUT 10000" : "") + options + ")";
    }
    // Forgets what `client` remembers of the lake: DuckLake looks up places of inlined rows once a schema version, and
    // does not notice when another instance's flush drops one.
    void attach_again(LakeClient &client, const std::string &options = "") const {
        client.must("USE memory");
        client.must("DETACH lake");
        client.must(attach_sql(options));
        client.must("USE lake");
    }
    std::unique_ptr<LakeClient> client() const {
        auto client = std::make_unique<LakeClient>(attach_sql());
        client->must("USE lake");
        return client;
    }

private:
    std::string dir_;
    MetadataAddress address_;
};

}  // namespace roost::testing
