// Grants as the node holds them against bound plans and lists of names, as if the gateway had let everything through.
#include "engine/test_engine.h"

namespace roost {
namespace {

using testing::Outcome;
using testing::TestEngine;

class EngineGrants : public ::testing::Test {
protected:
    EngineGrants() {
        for (const char *sql : {"CREATE SCHEMA IF NOT EXISTS open", "CREATE SCHEMA IF NOT EXISTS closed",
                                "CREATE TABLE IF NOT EXISTS open.t AS SELECT 1 AS x",
                                "CREATE TABLE IF NOT EXISTS closed.s AS SELECT 7 AS hidden_column",
                                "CREATE OR REPLACE VIEW open.through AS SELECT * FROM closed.s",
                                "CREATE OR REPLACE MACRO open.peek() AS TABLE SELECT * FROM closed.s"}) {
            EXPECT_TRUE(lake.write(sql).status.ok()) << sql;
        }
    }

    static Rights rights(Privilege on_open) {
        Rights rights;
        rights["lake"].add("open", "", on_open);
        return rights;
    }
    Outcome run(const std::string &sql, Privilege on_open, bool writes = false) {
        StatementSpec spec = writes ? TestEngine::write_spec(sql) : TestEngine::spec(sql);
        spec.rights = rights(on_open);
        return lake.run(std::move(spec));
    }
    void expect_refused(const std::string &sql, Privilege on_open, bool writes = false) {
        const Outcome got = run(sql, on_open, writes);
        ASSERT_FALSE(got.status.ok()) << sql;
        EXPECT_TRUE(got.rows.empty()) << sql;
        EXPECT_NE(got.status.code(), Code::internal) << sql << ": " << got.status.to_string();
        const Error &error = got.status.error();
        EXPECT_EQ((error.message + error.detail + error.hint).find("hidden_column"), std::string::npos)
            << sql << ": " << got.status.to_string();
    }

    TestEngine &lake = TestEngine::get();
};

TEST_F(EngineGrants, ReadsGoByTheTablesThatAreBound) {
    EXPECT_EQ(run("SELECT x FROM open.t", Privilege::reader).value(), "1");
    for (const char *sql : {"SELECT * FROM closed.s", "SELECT count(*) FROM closed.s", "SELECT * FROM open.through",
                            "SELECT * FROM open.peek()", "SELECT (SELECT max(hidden_column) FROM closed.s)",
                            "SELECT x FROM open.t WHERE x IN (FROM closed.s)", "EXPLAIN SELECT * FROM closed.s",
                            "SELECT * FROM ducklake_snapshots('lake')",
                            "SELECT * FROM ducklake_table_insertions('lake', 'closed', 's', 0, 1)"}) {
        expect_refused(sql, Privilege::writer);
    }
    expect_refused("SELECT x FROM open.t", Privilege::metadata);
    EXPECT_EQ(run("SELECT x FROM open.t", Privilege::metadata).status.sqlstate(), "42501");
    EXPECT_EQ(run("SELECT * FROM closed.s", Privilege::writer).status.sqlstate(), "42P01");
}

TEST_F(EngineGrants, ChangesTakeAWriter) {
    for (const char *sql : {"INSERT INTO open.t VALUES (2)", "UPDATE open.t SET x = 3", "DELETE FROM open.t",
                            "CREATE TABLE open.made (y INTEGER)", "DROP TABLE open.t", "CREATE VIEW open.v AS SELECT 1",
                            "ALTER TABLE open.t ADD COLUMN z INTEGER"}) {
        expect_refused(sql, Privilege::reader, true);
    }
    for (const char *sql :
         {"INSERT INTO closed.s VALUES (2)", "CREATE TABLE closed.made (y INTEGER)", "DROP TABLE closed.s",
          "CREATE SCHEMA more", "DROP SCHEMA closed CASCADE", "CREATE TABLE open.made AS SELECT * FROM closed.s"}) {
        expect_refused(sql, Privilege::writer, true);
    }
    EXPECT_TRUE(run("CREATE TABLE open.made AS SELECT 1 AS y", Privilege::writer, true).status.ok());
    EXPECT_TRUE(run("DROP TABLE open.made", Privilege::writer, true).status.ok());
    EXPECT_EQ(lake.read("SELECT sum(hidden_column) FROM closed.s").value(), "7");
    EXPECT_EQ(lake.read("SELECT sum(x) FROM open.t").value(), "1");
}

TEST_F(EngineGrants, WhatTheEngineSuggestsIsNotTold) {
    expect_refused("SELECT hidden_colum FROM closed.s", Privilege::reader);
    const Outcome table = run("SELECT * FROM closed.ss", Privilege::reader);
    EXPECT_EQ(table.status.error().hint, "") << table.status.to_string();
    EXPECT_NE(lake.read("SELECT hidden_colum FROM closed.s").status.error().hint, "");
}

// The functions that are wrapped, by what the engine says of them: the columns that name an object are where
// visible_names.cc takes them from.
TEST_F(EngineGrants, ListsOfNamesShowWhatMayBeSeen) {
    struct List {
        std::string function, name;
    };
    for (const List &list : std::vector<List>{{"duckdb_tables", "table_name"},
                                              {"duckdb_columns", "table_name"},
                                              {"duckdb_views", "view_name"},
                                              {"duckdb_schemas", "schema_name"},
                                              {"duckdb_functions", "function_name"}}) {
        const auto count = [&list](const std::string &where) {
            return "SELECT count(DISTINCT " + list.name + ") FROM " + list.function + "() WHERE " + where;
        };
        for (const auto &[where, expected] : std::vector<std::pair<std::string, bool>>{
                 {"schema_name = 'closed'", false}, {"schema_name = 'open'", true}}) {
            const Outcome got = run(count(where), Privilege::metadata);
            ASSERT_TRUE(got.status.ok()) << got.status.to_string();
            EXPECT_EQ(got.value() != "0", expected) << list.function << " " << where;
        }
        EXPECT_NE(lake.read(count("schema_name = 'open'")).value(), "0") << list.function;
        EXPECT_EQ(lake.read(count("database_name LIKE '__ducklake%'")).value(), "0") << list.function;
    }
    for (const char *function :
         {"duckdb_tables", "duckdb_columns", "duckdb_views", "duckdb_schemas", "duckdb_constraints", "duckdb_indexes",
          "duckdb_sequences", "duckdb_types", "duckdb_functions"}) {
        // DuckLake's own catalog is nobody's business, whatever the rights.
        EXPECT_EQ(
            lake.read("SELECT count(*) FROM " + std::string(function) + "() WHERE database_name LIKE '__ducklake%'")
                .value(),
            "0")
            << function;
    }
    EXPECT_EQ(run("SELECT string_agg(table_name, ',') FROM information_schema.tables WHERE table_catalog = 'lake'",
                  Privilege::metadata)
                  .value()
                  .find("s,"),
              std::string::npos);
    EXPECT_EQ(run("SELECT count(*) FROM duckdb_tables() WHERE table_name = 's'", Privilege::reader).value(), "0");
    EXPECT_EQ(
        run("SELECT count(*) FROM duckdb_tables() WHERE table_name = 't' AND schema_name = 'open'", Privilege::reader)
            .value(),
        "1");
}

}  // namespace
}  // namespace roost
