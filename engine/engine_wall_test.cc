// The walls, each tried: what the gateway would refuse is sent to the engine as if the gateway were not there.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "engine/test_engine.h"

namespace roost {
namespace {

namespace fs = std::filesystem;
using testing::Outcome;
using testing::TestEngine;

class EngineWall : public ::testing::Test {
protected:
    TestEngine &lake = TestEngine::get();
    std::string secret_file() {
        const std::string path = lake.dir() + "/secret.csv";
        std::ofstream(path) << "planted\nmark4711\n";
        return path;
    }
    // Sent as a read and as a write, in each lane, and never with a result, the planted text or a path of the node.
    void expect_refused(const std::string &sql) {
        for (const bool writes : {false, true}) {
            StatementSpec spec = writes ? TestEngine::write_spec(sql) : TestEngine::spec(sql);
            for (const auto lane : {Grant::Lane::small, Grant::Lane::slot}) {
                const Outcome got = lake.run(spec, Grant{.lane = lane, .slot = 0, .bytes = testing::kSlotBytes});
                EXPECT_FALSE(got.status.ok()) << sql;
                EXPECT_TRUE(got.rows.empty()) << sql;
                EXPECT_NE(got.status.code(), Code::internal) << sql << ": " << got.status.to_string();
                if (got.status.ok()) continue;
                const Error &error = got.status.error();
                EXPECT_EQ((error.message + error.detail + error.hint).find("mark4711"), std::string::npos) << sql;
            }
        }
        ASSERT_EQ(lake.read("SELECT 1").value(), "1") << "after " << sql;
    }
};

TEST_F(EngineWall, FilesOutsideTheLakeCannotBeRead) {
    const std::string file = secret_file();
    for (const std::string &path :
         {std::string("/etc/passwd"), file, "file://" + file, lake.lake().data_path + "../../secret.csv"}) {
        expect_refused("SELECT * FROM read_csv('" + path + "')");
        expect_refused("SELECT * FROM read_text('" + path + "')");
        expect_refused("SELECT * FROM read_blob('" + path + "')");
        expect_refused("SELECT * FROM read_json('" + path + "')");
        expect_refused("SELECT * FROM read_parquet('" + path + "')");
        expect_refused("SELECT * FROM parquet_scan('" + path + "')");
        expect_refused("SELECT * FROM parquet_metadata('" + path + "')");
        expect_refused("SELECT * FROM sniff_csv('" + path + "')");
        expect_refused("SELECT * FROM glob('" + path + "')");
        expect_refused("SELECT * FROM '" + path + "'");
        expect_refused("SELECT * FROM \"" + path + "\"");
        expect_refused("SELECT * FROM query('FROM ''" + path + "''')");
        expect_refused("SELECT * FROM query_table('" + path + "')");
    }
}

// The lake's own files are within reach of the filesystem: the bound plan is where reading past the tables ends,
// whoever wrote the view or macro that does it.
TEST_F(EngineWall, TheLakesFilesAreReadAsTablesOnly) {
    ASSERT_TRUE(lake.write("CREATE OR REPLACE TABLE walled AS SELECT range AS i FROM range(1000)").status.ok());
    std::string file;
    for (const auto &entry : fs::recursive_directory_iterator(lake.lake().data_path)) {
        if (entry.path().string().find("walled") != std::string::npos && entry.path().extension() == ".parquet") {
            file = entry.path().string();
        }
    }
    ASSERT_FALSE(file.empty());
    const std::string scan = "SELECT * FROM parquet_scan('" + file + "')";
    expect_refused(scan);
    EXPECT_EQ(lake.read(scan).status.error().rule, "function:parquet_scan");
    EXPECT_EQ(lake.read("SELECT count(*) FROM range(3) WHERE 5 IN (SELECT i FROM parquet_scan('" + file + "'))")
                  .status.error()
                  .rule,
              "function:parquet_scan");
    // Whoever makes the view or the macro: binding it is refused as well, so nothing of the file is opened.
    expect_refused("CREATE OR REPLACE VIEW walled_view AS " + scan);
    expect_refused("DESCRIBE " + scan);
    expect_refused("CREATE OR REPLACE MACRO walled_macro() AS TABLE " + scan);
    EXPECT_EQ(lake.read("SELECT count(*) FROM walled").value(), "1000");
}

// What an instance has to keep for the lake's sake is refused by its bound plan, wherever it stands.
TEST_F(EngineWall, TheBoundPlanShowsWhatViewsAndMacrosBring) {
    const std::string call = "FROM ducklake_set_commit_message('lake', 'me', 'forged')";
    expect_refused(call);
    EXPECT_EQ(lake.read(call).status.error().rule, "plan:ducklake_set_commit_message");
    ASSERT_TRUE(lake.write("CREATE OR REPLACE TABLE planned AS SELECT 1 AS i").status.ok());
    ASSERT_TRUE(lake.write("CREATE OR REPLACE VIEW planned_view AS SELECT 1 AS i " + call).status.ok());
    expect_refused("SELECT * FROM planned_view");
    expect_refused("CREATE TABLE stolen AS SELECT * FROM planned_view");
    expect_refused("INSERT INTO planned SELECT * FROM planned_view");
    expect_refused("EXPLAIN ANALYZE SELECT * FROM planned_view");
    expect_refused("SELECT (SELECT max(i) FROM planned_view)");
    // Its first part, which makes a type of the view's values, runs by itself.
    expect_refused("PIVOT planned_view ON i USING count(*)");
    EXPECT_EQ(lake.read("PIVOT planned_view ON i USING count(*)").status.error().rule,
              "plan:ducklake_set_commit_message");
    ASSERT_TRUE(lake.write("CREATE OR REPLACE MACRO planned_macro() AS TABLE " + call).status.ok());
    expect_refused("SELECT * FROM planned_macro()");
    EXPECT_EQ(lake.read("SELECT count(*) FROM planned").value(), "1");
}

// Folded while binding, so no plan shows it.
TEST_F(EngineWall, SettingsAreReadByNameOnlyAndOnlyTheHarmlessOnes) {
    for (const char *name :
         {"temp_directory", "s3_secret_access_key", "allowed_directories", "memory_limit", "nothing"}) {
        expect_refused("SELECT current_setting('" + std::string(name) + "')");
        EXPECT_EQ(lake.read("SELECT current_setting(upper('" + std::string(name) + "'))").status.error().rule,
                  "function:current_setting");
    }
    ASSERT_TRUE(lake.write("CREATE OR REPLACE MACRO walled_setting(p) AS current_setting(p)").status.ok());
    expect_refused("SELECT walled_setting('temp_directory')");
    expect_refused("SELECT DATE '2024-01-01' + length(current_setting('temp_directory'))::INT");
    EXPECT_EQ(lake.read("SELECT current_setting('default_null_order') IS NOT NULL").value(), "t");
}

TEST_F(EngineWall, NothingIsWrittenOutside) {
    const std::string target = lake.dir() + "/written.csv";
    expect_refused("COPY (SELECT 1) TO '" + target + "'");
    expect_refused("EXPORT DATABASE '" + lake.dir() + "/export'");
    expect_refused("COPY (SELECT 1) TO '" + lake.lake().data_path + "mine.csv'");
    EXPECT_FALSE(fs::exists(target));
    EXPECT_FALSE(fs::exists(lake.dir() + "/export"));
}

TEST_F(EngineWall, NoOtherDatabaseIsOpened) {
    const std::string catalog = lake.lake().metadata_path;
    expect_refused("ATTACH '" + catalog + "' AS other (TYPE sqlite)");
    expect_refused("ATTACH ':memory:' AS other");
    expect_refused("ATTACH 'ducklake:sqlite:" + catalog + "' AS other");
    expect_refused("SELECT * FROM sqlite_scan('" + catalog + "', 'ducklake_snapshot')");
    expect_refused("SELECT * FROM sqlite_query('__ducklake_metadata_lake', 'SELECT 1')");
    expect_refused("CALL sqlite_attach('" + catalog + "')");
    expect_refused("DETACH lake");
    expect_refused("USE memory");
    expect_refused("COPY FROM DATABASE lake TO memory");
    expect_refused("ALTER DATABASE lake SET ALIAS TO other");
    expect_refused("SELECT * FROM read_duckdb('" + catalog + "')");
}

TEST_F(EngineWall, SettingsSecretsAndExtensionsStayAsTheyAre) {
    expect_refused("SET memory_limit = '10GB'");
    expect_refused("SET lock_configuration = false");
    expect_refused("RESET ALL");
    expect_refused("SET TimeZone = 'UTC'");
    expect_refused("PRAGMA enable_profiling");
    expect_refused("PRAGMA disable_optimizer");
    expect_refused("CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')");
    expect_refused("DROP SECRET s");
    expect_refused("LOAD httpfs");
    expect_refused("INSTALL httpfs");
    expect_refused("SELECT * FROM duckdb_settings()");
    expect_refused("SELECT * FROM duckdb_secrets()");
    expect_refused("SELECT * FROM duckdb_extensions()");
    expect_refused("SELECT * FROM enable_logging('QueryLog')");
    expect_refused("SELECT * FROM enable_profiling(save_location := '" + lake.dir() + "/p.txt')");
    expect_refused("SELECT write_log('x')");
    expect_refused("CHECKPOINT");
    expect_refused("VACUUM");
    expect_refused("BEGIN");
    expect_refused("PREPARE p AS SELECT 1");
    expect_refused("EXPLAIN ATTACH ':memory:' AS x");
}

// SHOW DATABASES and dbt ask for them; the engine's own answer tells where they are.
TEST_F(EngineWall, CatalogsAreNamedWithoutTheirPlaces) {
    EXPECT_EQ(
        lake.read("SELECT string_agg(database_name || ' ' || type, ',') FROM duckdb_databases() WHERE NOT internal")
            .value(),
        "lake ducklake");
    EXPECT_EQ(lake.read("SELECT count(*) FROM duckdb_databases() WHERE path IS NOT NULL OR tags <> MAP {}").value(),
              "0");
    EXPECT_EQ(lake.read("SHOW DATABASES").value(), "lake");
    const Outcome schemas = lake.read("SHOW SCHEMAS");
    ASSERT_TRUE(schemas.status.ok()) << schemas.status.to_string();
    const auto is_main = [](const testing::Row &row) { return row[1] == "main" && row[0] == "lake"; };
    EXPECT_TRUE(std::ranges::any_of(schemas.rows, is_main));
}

TEST_F(EngineWall, NoCallEndsTheEngine) { expect_refused("SELECT txid_current()"); }

TEST_F(EngineWall, LakeMaintenanceIsNotAStatement) {
    expect_refused("CALL lake.set_option('data_inlining_row_limit', 5)");
    expect_refused("SELECT * FROM ducklake_set_option('lake', 'data_inlining_row_limit', 5)");
    expect_refused("CALL ducklake_expire_snapshots('lake', older_than => now())");
    expect_refused("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)");
    expect_refused("CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)");
    expect_refused("CALL ducklake_merge_adjacent_files('lake')");
    expect_refused("CALL lake.merge_adjacent_files()");
    expect_refused("SELECT * FROM ducklake_list_files('lake', 'w1')");
    expect_refused("SELECT * FROM ducklake_options('lake')");
    expect_refused("SELECT * FROM lake.options()");
    expect_refused("SELECT * FROM ducklake_add_data_files('lake', 't', '/etc/passwd')");
    expect_refused("SELECT * FROM ducklake_scan('x')");
}

TEST_F(EngineWall, ALinkInsideTheDataPathLeadsNowhere) {
    const std::string file = secret_file();
    const std::string link = lake.lake().data_path + "link.parquet";
    const std::string dir_link = lake.lake().data_path + "outside";
    fs::create_symlink(file, link);
    fs::create_directory_symlink(lake.dir(), dir_link);
    for (const std::string &path : {link, dir_link + "/secret.csv"}) {
        const Outcome got = lake.read("SELECT * FROM parquet_scan('" + path + "')");
        EXPECT_EQ(got.status.sqlstate(), "42501") << got.status.to_string();
    }
    fs::remove(link);
    fs::remove(dir_link);
}

TEST_F(EngineWall, MessagesDoNotTellWhereTheNodeKeepsThings) {
    const Outcome got = lake.read("SELECT * FROM parquet_scan('" + lake.lake().data_path + "absent.parquet')");
    ASSERT_FALSE(got.status.ok());
    EXPECT_EQ(got.status.message().find(lake.dir()), std::string::npos) << got.status.message();
}

}  // namespace
}  // namespace roost
