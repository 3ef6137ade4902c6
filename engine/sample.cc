#include "engine/sample.h"

#include <array>
#include <filesystem>

#include "base/ids.h"
#include "duckdb/main/config.hpp"
#include "duckdb/main/connection.hpp"
#include "duckdb/main/database.hpp"
#include "engine/duckdb_errors.h"
#include "engine/instance.h"
#include "engine/lake_redactions.h"
#include "engine/object_store.h"
#include "engine/outages.h"
#include "lake/ducklake.h"

namespace roost {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 8> kTables = {"region", "nation",   "supplier", "customer",
                                                     "part",   "partsupp", "orders",   "lineitem"};
// One part of a generation is held in memory while it is made: about this much of the scale factor.
constexpr double kPartScale = 0.25;

// A DuckDB with everything allowed, for roost's own work.
class TrustedInstance {
public:
    TrustedInstance(const SampleOptions &options, const LakeLocation &lake, bool create, bool tpch)
        : scratch_(options.spill_dir + "/sample-" + random_hex(8)) {
        fs::create_directories(scratch_);
        duckdb::DBConfig config;
        config.options.maximum_threads = options.threads;
        config.options.maximum_memory = options.memory_bytes;
        config.options.temporary_directory = scratch_ + "/spill";
        config.SetOptionByName("allow_unsigned_extensions", duckdb::Value::BOOLEAN(true));
        config.SetOptionByName("autoload_known_extensions", duckdb::Value::BOOLEAN(false));
        config.SetOptionByName("autoinstall_known_extensions", duckdb::Value::BOOLEAN(false));
        config.SetOptionByName("preserve_insertion_order", duckdb::Value::BOOLEAN(false));
        database_ = std::make_unique<duckdb::DuckDB>(nullptr, &config);
        connection_ = std::make_unique<duckdb::Connection>(*database_);
        load(options, lake.on_postgres ? "postgres_scanner" : "sqlite_scanner");
        load(options, "ducklake");
        if (lake.store) {
            load(options, "httpfs");
            configure_client(*connection_, *lake.store);
        }
        if (tpch) load(options, "tpch");
        // Before there is a catalog that speaks of it.
        if (create && lake.data_in_store()) run("FROM glob(" + quote_literal(lake.data_path + "*") + ")");
        run(attach_sql(lake, {.create = create}));
    }
    ~TrustedInstance() {
        connection_.reset();
        database_.reset();
        std::error_code ignored;  // scratch: whoever starts next clears the spill directory
        fs::remove_all(scratch_, ignored);
    }
    TrustedInstance(const TrustedInstance &) = delete;
    TrustedInstance &operator=(const TrustedInstance &) = delete;

    void run(const std::string &sql) {
        auto result = connection_->Query(sql);
        if (result->HasError()) result->ThrowError();
    }
    bool has_rows(const std::string &sql) {
        auto result = connection_->Query(sql);
        if (result->HasError()) result->ThrowError();
        return result->RowCount() > 0;
    }
    const std::string &scratch() const { return scratch_; }

private:
    void load(const SampleOptions &options, const std::string &name) {
        run("LOAD " + quote_literal(options.extension_dir + "/" + name + ".duckdb_extension"));
    }

    const std::string scratch_;
    std::unique_ptr<duckdb::DuckDB> database_;
    std::unique_ptr<duckdb::Connection> connection_;
};

// Whoever starts a pool may know what the database or the store said, but for the secrets in it.
Status failure(const std::exception &error, const LakeLocation &lake) {
    const Redactions redactions = redactions_of(lake);
    const duckdb::ErrorData data(error);
    Status status = status_of(data, "", redactions);
    if (!outage_of(data)) return status;
    return std::move(status).with_detail(redact(data.Message(), redactions));
}

std::string dbgen_sql(double scale_factor, uint32_t part, uint32_t parts) {
    std::string call = "CALL dbgen(catalog = 'generated', sf = " + std::to_string(scale_factor);
    if (parts > 1) call += ", children = " + std::to_string(parts) + ", step = " + std::to_string(part);
    return call + ")";
}

}  // namespace

Status create_lake(const LakeLocation &lake, const SampleOptions &options) {
    try {
        if (!lake.data_in_store()) fs::create_directories(lake.data_path);
        if (!lake.on_postgres) fs::create_directories(fs::path(lake.metadata_path).parent_path());
        TrustedInstance instance(options, lake, true, false);
        return Status();
    } catch (const std::exception &error) {
        return failure(error, lake);
    }
}

Status fill_tpch(const LakeLocation &lake, double scale_factor, const SampleOptions &options,
                 const SampleProgress &progress) {
    if (!(scale_factor > 0 && scale_factor <= 1'000)) {
        return Status(Code::invalid_argument, "a TPC-H scale factor is above 0 and at most 1000");
    }
    try {
        TrustedInstance instance(options, lake, false, true);
        const std::string schema = quote_identifier(lake.catalog) + ".main.";
        if (instance.has_rows("SELECT 1 FROM duckdb_tables() WHERE database_name = " + quote_literal(lake.catalog))) {
            return Status();
        }
        const auto parts = static_cast<uint32_t>(std::max(1.0, scale_factor / kPartScale));
        const uint32_t steps = parts + kTables.size() + 1;
        uint32_t done = 0;
        // Generated into a file, so that memory bounds it; then the lake gets it in one transaction.
        instance.run("ATTACH " + quote_literal(instance.scratch() + "/tpch.db") + " AS generated");
        for (uint32_t part = 0; part < parts; part++) {
            progress("generating", done++, steps);
            instance.run(dbgen_sql(scale_factor, part, parts));
        }
        instance.run("BEGIN");
        for (const auto table : kTables) {
            progress(std::string(table), done++, steps);
            instance.run("CREATE TABLE " + schema + std::string(table) + " AS FROM generated.main." +
                         std::string(table));
        }
        progress("commit", done++, steps);
        instance.run("CALL ducklake_set_commit_message(" + quote_literal(lake.catalog) + ", 'roost', 'TPC-H sample')");
        instance.run("COMMIT");
        progress("done", steps, steps);
        return Status();
    } catch (const std::exception &error) {
        return failure(error, lake);
    }
}

}  // namespace roost
