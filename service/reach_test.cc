#include "service/reach.h"

#include <gtest/gtest.h>

namespace roost::service {
namespace {

// A lake with main.t, hr.salaries, and views: main.v over main.t, hr.w over salaries, main.x over other.main.o.
std::shared_ptr<const LakeState> make_state(const std::string &only = {}) {
    auto names = std::make_shared<LakeNames>();
    names->schemas = {{.id = 0, .uuid = "", .name = "main", .path = {}, .path_is_relative = true, .data_path = ""},
                      {.id = 1, .uuid = "", .name = "hr", .path = {}, .path_is_relative = true, .data_path = ""}};
    const auto view = [](uint64_t id, uint64_t schema, const char *name, const char *sql) {
        LakeView made;
        made.id = id;
        made.schema_id = schema;
        made.name = name;
        made.dialect = "duckdb";
        made.sql = sql;
        return made;
    };
    LakeState::Tables tables;
    const auto table = [&](uint64_t id, uint64_t schema_id, const char *schema, const char *name) {
        auto definition = std::make_shared<TableDefinition>();
        definition->id = id;
        definition->schema_id = schema_id;
        definition->schema_name = schema;
        definition->name = name;
        auto state = std::make_shared<TableState>();
        state->definition = definition;
        state->data = std::make_shared<TableData>();
        tables.push_back(state);
    };
    if (only.empty()) {
        names->views = {view(10, 0, "v", "SELECT * FROM t"), view(11, 1, "w", "SELECT * FROM salaries"),
                        view(12, 0, "x", "SELECT * FROM other.main.o"), view(13, 0, "loop_a", "SELECT * FROM loop_a")};
        table(20, 0, "main", "t");
        table(21, 1, "hr", "salaries");
    } else {
        table(30, 0, "main", only.c_str());
    }
    return std::make_shared<LakeState>(LakeSnapshot{}, "/data/", false, names, tables);
}

class ReachTest : public testing::Test {
protected:
    ReachTest() {
        states["lake"] = make_state();
        states["other"] = make_state("o");
        scope.catalog = "lake";
        scope.search_path = {"main"};
        scope.catalogs = {"lake", "other"};
    }
    static Result<std::vector<sql::Statement>> parse(const std::string &text) { return sql::parse(text); }
    Status find(const std::string &text) {
        const auto parsed = sql::parse(text);
        EXPECT_TRUE(parsed.ok()) << text << ": " << parsed.status().to_string();
        if (!parsed.ok()) return parsed.status();
        scope.rights = rights.empty() ? nullptr : &rights;
        ReachFinder finder(scope, states, parse);
        Status status = finder.find(parsed->front());
        reach = finder.reach();
        missing = finder.missing();
        return status;
    }
    std::string state_of(const std::string &text) { return std::string(find(text).sqlstate()); }

    ReachFinder::States states;
    ReachScope scope;
    Rights rights;
    Reach reach;
    std::set<std::string> missing;
};

using Names = std::vector<std::string>;

TEST_F(ReachTest, CatalogsAreThoseThatAreNamedOrReadThroughViews) {
    EXPECT_TRUE(find("SELECT * FROM t").ok());
    EXPECT_EQ(reach.catalogs, Names());
    EXPECT_TRUE(find("SELECT * FROM t, other.main.o").ok());
    EXPECT_EQ(reach.catalogs, Names{"other"});
    EXPECT_TRUE(find("SELECT * FROM OTHER.o").ok());
    EXPECT_EQ(reach.catalogs, Names{"other"});
    EXPECT_TRUE(find("SELECT * FROM x").ok());
    EXPECT_EQ(reach.catalogs, Names{"other"});
    EXPECT_TRUE(find("SELECT * FROM loop_a").ok());  // the engine says what is wrong with it
}

TEST_F(ReachTest, TheCatalogThatIsWrittenIsTheOneThatIsNamed) {
    EXPECT_TRUE(find("INSERT INTO other.main.o SELECT * FROM t").ok());
    EXPECT_EQ(reach.write_catalog, "other");
    EXPECT_TRUE(find("INSERT INTO other.o SELECT * FROM t").ok());
    EXPECT_EQ(reach.write_catalog, "other");
    EXPECT_TRUE(find("CREATE TABLE other.made AS SELECT * FROM t").ok());
    EXPECT_EQ(reach.write_catalog, "other");
    EXPECT_TRUE(find("CREATE SCHEMA other.s").ok());
    EXPECT_EQ(reach.write_catalog, "other");
    EXPECT_TRUE(find("CREATE TABLE hr.made (x INTEGER)").ok());
    EXPECT_EQ(reach.write_catalog, "");
    EXPECT_TRUE(find("INSERT INTO t SELECT * FROM other.main.o").ok());
    EXPECT_EQ(reach.write_catalog, "");
    EXPECT_EQ(reach.catalogs, Names{"other"});
}

TEST_F(ReachTest, WhatIsMissingIsAskedFor) {
    states.erase("other");
    EXPECT_TRUE(find("SELECT * FROM x").ok());
    EXPECT_EQ(missing, std::set<std::string>{"other"});
}

TEST_F(ReachTest, ReadingTakesAReaderOfTableAndView) {
    rights["lake"].add("main", "v", Privilege::reader);
    EXPECT_EQ(state_of("SELECT * FROM v"), "42P01");  // its table is hidden
    rights["lake"].add("main", "t", Privilege::metadata);
    EXPECT_EQ(state_of("SELECT * FROM v"), "42501");
    rights["lake"].add("main", "t", Privilege::reader);
    EXPECT_TRUE(find("SELECT * FROM v").ok());
    EXPECT_EQ(state_of("SELECT * FROM hr.salaries"), "42P01");
    EXPECT_EQ(state_of("SELECT * FROM lake.hr.salaries"), "42P01");
    EXPECT_EQ(state_of("SELECT * FROM HR.SALARIES"), "42P01");
    EXPECT_EQ(state_of("SELECT * FROM other.main.o"), "42P01");
    EXPECT_EQ(state_of("SELECT * FROM x"), "42P01");
    rights["lake"].add("hr", "w", Privilege::reader);
    EXPECT_EQ(state_of("SELECT * FROM hr.w"), "42P01");
}

TEST_F(ReachTest, DescribingTakesMetadataOnly) {
    rights["lake"].add("main", "t", Privilege::metadata);
    EXPECT_TRUE(find("DESCRIBE t").ok());
    EXPECT_EQ(state_of("SUMMARIZE t"), "42501");
    EXPECT_EQ(state_of("DESCRIBE hr.salaries"), "42P01");
}

TEST_F(ReachTest, ChangingRowsTakesAWriterOfTheTableAndChangingTheTableOneOfItsSchema) {
    rights["lake"].add("main", "t", Privilege::reader);
    EXPECT_EQ(state_of("INSERT INTO t VALUES (1)"), "42501");
    rights["lake"].add("main", "t", Privilege::writer);
    EXPECT_TRUE(find("INSERT INTO t VALUES (1)").ok());
    EXPECT_TRUE(find("DELETE FROM t").ok());
    EXPECT_TRUE(find("TRUNCATE t").ok());
    EXPECT_EQ(state_of("DROP TABLE t"), "42501");
    EXPECT_EQ(state_of("ALTER TABLE t ADD COLUMN y INTEGER"), "42501");
    EXPECT_EQ(state_of("CREATE TABLE made (x INTEGER)"), "42501");
    EXPECT_EQ(state_of("CREATE VIEW made AS SELECT * FROM t"), "42501");
    EXPECT_EQ(state_of("DROP TABLE hr.salaries"), "42P01");
    EXPECT_EQ(state_of("CREATE SCHEMA made"), "42501");
    EXPECT_EQ(state_of("DROP SCHEMA hr"), "42501");
    rights["lake"].add("main", "", Privilege::writer);
    EXPECT_TRUE(find("DROP TABLE t").ok());
    EXPECT_TRUE(find("CREATE TABLE made (x INTEGER)").ok());
    EXPECT_EQ(state_of("CREATE SCHEMA made"), "42501");
    EXPECT_EQ(state_of("CREATE TABLE made AS SELECT * FROM hr.salaries"), "42P01");
    rights["lake"].add("", "", Privilege::writer);
    EXPECT_TRUE(find("CREATE SCHEMA made").ok());
}

TEST_F(ReachTest, CommonTableExpressionsAndSystemTablesAreNobodys) {
    rights["lake"].add("main", "t", Privilege::reader);
    EXPECT_TRUE(find("WITH salaries AS (SELECT * FROM t) SELECT * FROM salaries").ok());
    EXPECT_TRUE(find("SELECT * FROM information_schema.tables").ok());
    EXPECT_TRUE(find("SELECT 1").ok());
    EXPECT_EQ(state_of("WITH a AS (SELECT * FROM hr.salaries) SELECT * FROM a"), "42P01");
}

}  // namespace
}  // namespace roost::service
