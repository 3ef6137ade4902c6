#include "sql/rules.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "duckdb.hpp"
#include "sql/lexer.h"
#include "sql/session_variables.h"

namespace roost::sql {
namespace {

std::vector<std::vector<std::string>> read_tsv(const char *path) {
    std::ifstream file(path);
    std::vector<std::vector<std::string>> rows;
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
        std::vector<std::string> fields(1);
        for (const char c : line) {
            if (c == '\t')
                fields.emplace_back();
            else
                fields.back() += c;
        }
        rows.push_back(std::move(fields));
    }
    return rows;
}

FunctionKind kind_of(const std::string &name) {
    const std::vector<std::string> names = {"table",  "table_macro", "lake_macro", "catalog",   "view",
                                            "pragma", "scalar",      "macro",      "aggregate", "unregistered"};
    for (size_t i = 0; i < names.size(); ++i) {
        if (names[i] == name) return static_cast<FunctionKind>(i);
    }
    ADD_FAILURE() << "unknown kind " << name;
    return FunctionKind::unregistered;
}

TEST(Rules, functions_are_those_of_the_table) {
    const auto rows = read_tsv("sql/functions.tsv");
    ASSERT_GT(rows.size(), 1000u);
    std::set<std::string> names;
    std::set<std::tuple<std::string, FunctionKind, Verdict>> expected;
    for (const auto &row : rows) {
        const Verdict verdict = row[2] == "safe"          ? Verdict::safe
                                : row[2] == "conditional" ? Verdict::conditional
                                                          : Verdict::forbidden;
        names.insert(fold(row[0]));
        expected.insert({fold(row[0]), kind_of(row[1]), verdict});
    }
    std::set<std::tuple<std::string, FunctionKind, Verdict>> found;
    for (const std::string &name : names) {
        EXPECT_FALSE(find_functions(name).empty()) << name;
        for (const FunctionEntry &entry : find_functions(name))
            found.insert({std::string(entry.name), entry.kind, entry.verdict});
    }
    EXPECT_TRUE(found == expected) << "run sql/generate_rules.py";
    EXPECT_TRUE(find_functions("no_such_function").empty());
}

TEST(Rules, settings_are_those_of_the_table) {
    const auto rows = read_tsv("sql/settings.tsv");
    ASSERT_GT(rows.size(), 200u);
    for (const auto &row : rows) {
        const SettingEntry *entry = find_setting(fold(row[0]));
        ASSERT_NE(entry, nullptr) << row[0];
        EXPECT_EQ(entry->may_set, row[2] == "tenant") << row[0];
        EXPECT_EQ(entry->may_read, row[3] == "literal") << row[0];
    }
    EXPECT_EQ(find_setting("no_such_setting"), nullptr);
    EXPECT_EQ(setting_rule("timezone"), SettingRule::allowed);
    EXPECT_EQ(setting_rule("calendar"), SettingRule::readable);
    EXPECT_EQ(setting_rule("memory_limit"), SettingRule::forbidden);
    EXPECT_EQ(setting_rule("myapp.x"), SettingRule::unknown);
}

TEST(Rules, postgres_variables_are_found) {
    for (const char *name :
         {"application_name", "client_encoding", "datestyle", "extra_float_digits", "search_path", "timezone",
          "transaction_isolation", "xmloption", "work_mem", "enable_seqscan", "enable_async_append", "enable_tidscan",
          "standard_conforming_strings", "server_version"}) {
        EXPECT_TRUE(is_postgres_variable(name)) << name;
    }
    EXPECT_FALSE(is_postgres_variable("threads"));
}

// The engine that roost links: whatever it can call or be set to has a verdict. Fails when DuckDB is updated and the
// tables are not.
TEST(Rules, every_function_view_and_setting_of_the_engine_has_a_verdict) {
    duckdb::DuckDB engine(nullptr);
    duckdb::Connection connection(engine);
    const auto names = [&](const char *sql) {
        std::vector<std::string> out;
        const auto result = connection.Query(sql);
        EXPECT_FALSE(result->HasError()) << result->GetError();
        for (duckdb::idx_t i = 0; i < result->RowCount(); ++i) out.push_back(result->GetValue(0, i).ToString());
        return out;
    };
    const auto functions = names("SELECT DISTINCT function_name FROM duckdb_functions()");
    ASSERT_GT(functions.size(), 800u);
    for (const std::string &name : functions) EXPECT_FALSE(find_functions(fold(name)).empty()) << name;
    for (const std::string &name : names("SELECT view_name FROM duckdb_views() WHERE schema_name = 'main'")) {
        EXPECT_FALSE(find_functions(fold(name)).empty()) << name;
    }
    for (const std::string &name :
         names("SELECT schema_name || '.' || view_name FROM duckdb_views() WHERE schema_name <> 'main'")) {
        EXPECT_FALSE(find_functions(fold(name)).empty()) << name;
    }
    for (const std::string &name : names("SELECT name FROM duckdb_settings()")) {
        EXPECT_NE(find_setting(fold(name)), nullptr) << name;
    }
}

}  // namespace
}  // namespace roost::sql
