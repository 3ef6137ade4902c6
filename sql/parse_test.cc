#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "sql/statement.h"

namespace roost::sql {
namespace {

std::vector<Statement> parse_ok(std::string_view text) {
    auto statements = parse(text);
    EXPECT_TRUE(statements.ok()) << text << ": " << statements.status().to_string();
    return statements.ok() ? *statements : std::vector<Statement>(1);
}

Statement one(std::string_view text) {
    const auto statements = parse_ok(text);
    EXPECT_EQ(statements.size(), 1u) << text;
    return statements.at(0);
}

std::string names(const std::vector<TableName> &list) {
    std::string out;
    for (const TableName &name : list) {
        out += out.empty() ? "" : " ";
        if (!name.catalog.empty()) out += name.catalog + '.';
        if (!name.schema.empty()) out += name.schema + '.';
        out += name.table;
    }
    return out;
}

TEST(Split, semicolons_in_quotes_and_comments_do_not_split) {
    const auto statements = parse_ok("SELECT ';', $$;$$, E'\\';' AS \"a;b\" /* ; */ -- ;\n; SELECT 2 ;");
    ASSERT_EQ(statements.size(), 2u);
    EXPECT_EQ(statements[0].text, "SELECT ';', $$;$$, E'\\';' AS \"a;b\"");
    EXPECT_EQ(statements[1].text, "SELECT 2");
}

TEST(Split, nothing_to_run_is_one_empty_statement) {
    for (const char *text : {"", " \n\t", ";", ";;;", "-- ping", "/* nothing */", "; -- x\n ;", "\u00a0"}) {
        EXPECT_EQ(one(text).kind, Kind::empty) << text;
    }
}

TEST(Split, empty_parts_between_statements_vanish) {
    const auto statements = parse_ok(";;SELECT 1;;;/* c */;SELECT 2;;");
    ASSERT_EQ(statements.size(), 2u);
    EXPECT_EQ(statements[1].text, "SELECT 2");
}

TEST(Split, offsets_count_characters) {
    const auto statements = parse_ok("SELECT 'é☃😀';  SELECT 2;\nSELECT 3");
    ASSERT_EQ(statements.size(), 3u);
    EXPECT_EQ(statements[0].offset, 0u);
    EXPECT_EQ(statements[1].offset, 15u);
    EXPECT_EQ(statements[2].offset, 25u);
}

TEST(Split, leading_comments_stay_with_their_statement) {
    EXPECT_EQ(one("  /* {\"app\": \"dbt\"} */ SELECT 1 ; ").text, "/* {\"app\": \"dbt\"} */ SELECT 1");
    EXPECT_EQ(one("  /* {\"app\": \"dbt\"} */ SELECT 1 ; ").kind, Kind::select);
}

TEST(Kinds, of_statements) {
    const std::vector<std::pair<const char *, Kind>> cases = {
        {"SELECT 1", Kind::select},
        {"(SELECT 1) UNION SELECT 2", Kind::select},
        {"VALUES (1)", Kind::select},
        {"FROM t", Kind::select},
        {"TABLE t", Kind::select},
        {"WITH a AS (SELECT 1) FROM a", Kind::select},
        {"PIVOT t ON a USING sum(b)", Kind::select},
        {"UNPIVOT t ON a, b", Kind::select},
        {"SELECT * FROM (DESCRIBE t)", Kind::select},
        {"INSERT INTO t VALUES (1)", Kind::insert},
        {"INSERT INTO t BY NAME SELECT 1 AS a", Kind::insert},
        {"WITH a AS (SELECT 1) INSERT INTO t FROM a", Kind::insert},
        {"UPDATE t SET a = 1", Kind::update},
        {"DELETE FROM t", Kind::delete_rows},
        {"TRUNCATE t", Kind::truncate},
        {"TRUNCATE TABLE t", Kind::truncate},
        {"MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE", Kind::merge},
        {"CREATE TABLE t (a INT)", Kind::create_table},
        {"CREATE TEMP TABLE t (a INT)", Kind::create_table},
        {"CREATE TABLE t AS SELECT 1", Kind::create_table_as},
        {"CREATE TABLE t AS PIVOT u ON a USING sum(b)", Kind::create_table_as},
        {"CREATE OR REPLACE VIEW v AS SELECT 1", Kind::create_view},
        {"CREATE SCHEMA s", Kind::create_schema},
        {"CREATE MACRO m(x) AS x", Kind::create_other},
        {"CREATE SEQUENCE s", Kind::create_other},
        {"CREATE INDEX i ON t (a)", Kind::create_other},
        {"CREATE TYPE e AS ENUM ('a')", Kind::create_other},
        {"ALTER TABLE t ADD COLUMN a INT", Kind::alter},
        {"ALTER TABLE t ADD COLUMN a INT DEFAULT random()", Kind::alter},
        {"ALTER VIEW v RENAME TO w", Kind::alter},
        {"DROP TABLE t", Kind::drop},
        {"DROP SCHEMA s CASCADE", Kind::drop},
        {"COMMENT ON TABLE t IS 'x'", Kind::comment_on},
        {"EXPLAIN SELECT 1", Kind::explain},
        {"EXPLAIN ANALYZE SELECT 1", Kind::explain},
        {"DESCRIBE t", Kind::describe},
        {"DESCRIBE SELECT 1", Kind::describe},
        {"SUMMARIZE t", Kind::describe},
        {"SHOW TABLES", Kind::describe},
        {"SHOW ALL TABLES", Kind::describe},
        {"SHOW DATABASES", Kind::describe},
        {"SHOW SCHEMAS", Kind::describe},
        {"SHOW TABLES FROM s", Kind::describe},
        {"SHOW orders", Kind::describe},
        {"COPY t TO STDOUT", Kind::copy},
        {"COPY (SELECT 1) TO 'x.csv'", Kind::copy},
        {"SET VARIABLE x = 1", Kind::set_variable},
        {"RESET VARIABLE x", Kind::set_variable},
        {"ATTACH 'x'", Kind::other},
        {"CALL f()", Kind::other},
        {"PRAGMA version", Kind::other},
        {"LOAD x", Kind::other},
        {"VACUUM", Kind::other},
        {"CHECKPOINT", Kind::other},
        {"COPY FROM DATABASE a TO b", Kind::other},
        {"ALTER DATABASE a SET ALIAS TO b", Kind::other},
        {"CREATE SECRET s (TYPE s3)", Kind::other},
        {"DROP SECRET s", Kind::other},
    };
    for (const auto &[text, kind] : cases) EXPECT_EQ(kind_name(one(text).kind), kind_name(kind)) << text;
}

TEST(Kinds, tag_objects_and_returning) {
    EXPECT_EQ(one("CREATE TABLE t (a INT)").tag_object, "TABLE");
    EXPECT_EQ(one("DROP VIEW v").tag_object, "VIEW");
    EXPECT_EQ(one("CREATE SCHEMA s").tag_object, "SCHEMA");
    EXPECT_EQ(one("ALTER TABLE t RENAME TO u").tag_object, "TABLE");
    EXPECT_EQ(one("CREATE MACRO m(x) AS x").tag_object, "FUNCTION");
    EXPECT_TRUE(one("INSERT INTO t VALUES (1) RETURNING a").returning);
    EXPECT_TRUE(one("UPDATE t SET a = 1 RETURNING *").returning);
    EXPECT_FALSE(one("DELETE FROM t").returning);
}

TEST(Kinds, copy_says_direction_and_target) {
    Statement copy = one("COPY t FROM STDIN (FORMAT csv)");
    EXPECT_EQ(copy.command.options["direction"], "from");
    EXPECT_EQ(copy.command.name, "stdin");
    copy = one("COPY (SELECT 'stdin') TO stdout WITH CSV HEADER");
    EXPECT_EQ(copy.command.options["direction"], "to");
    EXPECT_EQ(copy.command.name, "stdout");
    // The path of that name is a path.
    EXPECT_EQ(one("COPY t FROM '/dev/stdin'").command.name, "/dev/stdin");
}

TEST(Tables, reads_and_writes) {
    const std::vector<std::array<const char *, 3>> cases = {
        {"SELECT * FROM a, b.c JOIN d.e.f ON true", "a b.c d.e.f", ""},
        {"SELECT (SELECT max(x) FROM a) FROM b WHERE EXISTS (FROM c) ORDER BY (SELECT 1 FROM d) LIMIT (SELECT 1 FROM "
         "e)",
         "b a c d e", ""},
        {"SELECT * FROM a UNION ALL SELECT * FROM b EXCEPT SELECT * FROM a", "a b", ""},
        {"INSERT INTO t SELECT * FROM a", "a", "t"},
        {"INSERT INTO t VALUES (1) ON CONFLICT (x) DO UPDATE SET y = (SELECT 1 FROM u)", "u", "t"},
        {"UPDATE t SET a = b.x FROM b WHERE t.id IN (SELECT id FROM c)", "b c", "t"},
        {"DELETE FROM t USING u WHERE t.a = u.a", "u", "t"},
        {"MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET a = (SELECT 1 FROM m)", "s m", "t"},
        {"CREATE TABLE t AS SELECT * FROM a", "a", "t"},
        {"CREATE VIEW v AS SELECT * FROM a", "a", "v"},
        {"CREATE MACRO m() AS TABLE SELECT * FROM a", "a", "m"},
        {"CREATE TABLE t (a INT REFERENCES u (a))", "u", "t"},
        {"DROP TABLE c.s.t", "", "c.s.t"},
        {"ALTER TABLE s.t ADD COLUMN a INT", "", "s.t"},
        {"ALTER TABLE t ADD COLUMN a INT DEFAULT random()", "", "t"},
        {"TRUNCATE t", "", "t"},
        {"EXPLAIN SELECT * FROM a", "a", ""},
        {"DESCRIBE a", "a", ""},
        {"SUMMARIZE SELECT * FROM a", "a", ""},
        {"PIVOT a ON x USING sum(y)", "a", "__pivot"},
        {"PIVOT a ON x IN (1, 2) USING sum(y)", "a", ""},
        {"SELECT * FROM a UNPIVOT (v FOR k IN (x, y))", "a", ""},
        {"COPY a TO STDOUT", "a", ""},
        {"COPY t FROM STDIN", "", "t"},
        {"COPY (SELECT * FROM a) TO STDOUT", "a", ""},
        {"PREPARE p AS INSERT INTO t SELECT * FROM a", "a", "t"},
        {"DECLARE c CURSOR FOR SELECT * FROM a", "a", ""},
        {"SELECT * FROM a AT (VERSION => 3)", "a", ""},
        {"SELECT * FROM range(3)", "", ""},
        {"SELECT 1", "", ""},
    };
    for (const auto &[text, reads, writes] : cases) {
        const Statement statement = one(text);
        EXPECT_EQ(names(statement.reads), reads) << text;
        // The types that PIVOT makes have random names.
        if (std::string_view(writes) == "__pivot")
            EXPECT_EQ(names(statement.writes).rfind("__pivot_enum_", 0), 0u) << text;
        else
            EXPECT_EQ(names(statement.writes), writes) << text;
    }
}

TEST(Tables, ctes_are_no_tables_where_they_are_in_scope) {
    EXPECT_EQ(names(one("WITH a AS (SELECT * FROM t) SELECT * FROM a").reads), "t");
    EXPECT_EQ(names(one("WITH A AS (SELECT 1) SELECT * FROM \"a\"").reads), "");
    // Its own body does not see it …
    EXPECT_EQ(names(one("WITH a AS (SELECT * FROM a) SELECT * FROM a").reads), "a");
    // … unless it is recursive.
    EXPECT_EQ(names(one("WITH RECURSIVE a AS (SELECT 1 UNION ALL SELECT * FROM a) SELECT * FROM a").reads), "");
    // Later ones see earlier ones, not the other way round.
    EXPECT_EQ(names(one("WITH a AS (FROM b), b AS (FROM a) FROM b").reads), "b");
    // A scope ends with its query.
    EXPECT_EQ(names(one("SELECT * FROM (WITH a AS (SELECT 1) FROM a), a").reads), "a");
    EXPECT_EQ(names(one("WITH a AS (SELECT 1) SELECT (SELECT x FROM a) FROM t").reads), "t");
    // A qualified name is no CTE; neither is a target.
    EXPECT_EQ(names(one("WITH a AS (SELECT 1) SELECT * FROM s.a").reads), "s.a");
    EXPECT_EQ(names(one("WITH a AS (SELECT 1) INSERT INTO a FROM a").writes), "a");
    EXPECT_EQ(names(one("WITH a AS (SELECT 1) DELETE FROM t USING a").reads), "");
}

TEST(Parameters, are_counted) {
    EXPECT_EQ(one("SELECT 1").param_count, 0u);
    EXPECT_EQ(one("SELECT ?, ?").param_count, 2u);
    EXPECT_EQ(one("SELECT $1, $1").param_count, 1u);
    EXPECT_EQ(one("SELECT $3").param_count, 3u);
    EXPECT_EQ(one("SELECT $b, $a, $b").param_count, 2u);
    EXPECT_EQ(one("SELECT '$1', \"$2\" FROM t -- $3").param_count, 0u);
    EXPECT_EQ(one("PREPARE p AS SELECT $2").param_count, 2u);
    EXPECT_EQ(one("DECLARE c CURSOR FOR SELECT $1").param_count, 1u);
}

struct ErrorCase {
    const char *text;
    uint32_t position;
    const char *message;
};

TEST(Errors, positions_count_characters_in_the_whole_text) {
    const std::vector<ErrorCase> cases = {
        {"SELEC 1", 1, "syntax error at or near \"SELEC\""},
        {"SELECT 'é☃😀' FORM t WHERE x", 19, "syntax error at or near \"t\""},
        {"SELECT 1;\nSELECT '☃'; SELEC 1", 23, "syntax error at or near \"SELEC\""},
        {"SELECT 1; SELECT 2 SELECT 3", 20, "syntax error at or near \"SELECT\""},
        {"  SELECT * FROM orders WHERE", 29, "syntax error at end of input"},
        {"SELECT 'unterminated", 8, "unterminated quoted string at or near \"'unterminated\""},
        {"SELECT\u00a0\u00a0FROM\u00a0WHERE", 14, "syntax error at or near \"WHERE\""},
        {"SELECT 1; PREPARE p AS SELEC 1", 24, "syntax error at or near \"SELEC\""},
        {"SET '☃' TO", 5, "syntax error at or near \"'☃'\""},
        {"BEGIN; COMMIT NOW", 15, "syntax error at or near \"NOW\""},
        {"DECLARE c CURSOR FOR DELETE FROM t", 22, "a cursor is declared for a query"},
        {"PREPARE p AS BEGIN", 14, "a session command cannot be prepared"},
    };
    for (const ErrorCase &expected : cases) {
        const auto result = parse(expected.text);
        ASSERT_FALSE(result.ok()) << expected.text;
        EXPECT_EQ(result.status().code(), Code::syntax_error) << expected.text;
        EXPECT_EQ(result.status().sqlstate(), "42601") << expected.text;
        EXPECT_EQ(result.status().error().position, expected.position) << expected.text;
        EXPECT_EQ(result.status().message(), expected.message) << expected.text;
    }
}

TEST(Errors, bad_encoding_and_size) {
    auto result = parse("SELECT 'é\xff'");
    EXPECT_EQ(result.status().sqlstate(), "22021");
    EXPECT_EQ(result.status().error().position, 10u);
    result = parse(std::string_view("SELECT\0 1", 9));
    EXPECT_EQ(result.status().sqlstate(), "22021");
    EXPECT_EQ(result.status().error().position, 7u);
    ParseLimits limits;
    limits.text_max_bytes = 10;
    EXPECT_EQ(parse("SELECT 12345", limits).status().sqlstate(), "54000");
    limits = ParseLimits();
    limits.statements_max = 2;
    EXPECT_TRUE(parse("SELECT 1; SELECT 2", limits).ok());
    EXPECT_EQ(parse("SELECT 1; SELECT 2; SELECT 3", limits).status().sqlstate(), "54000");
}

std::string repeat(std::string_view part, size_t times) {
    std::string out;
    for (size_t i = 0; i < times; ++i) out += part;
    return out;
}

// Texts that nest or chain one construct. Whatever the answer, it comes, and the stack holds.
TEST(Hostile, nesting_is_answered_not_recursed_into) {
    const std::vector<std::array<const char *, 4>> shapes = {
        {"SELECT ", "(", "1", ")"},
        {"SELECT ", "[", "1", "]"},
        {"SELECT ", "{'a':", "1", "}"},
        {"SELECT ", "NOT ", "true", ""},
        {"SELECT ", "- ", "1", ""},
        {"SELECT 1", "+1", "", ""},
        {"SELECT 1", "::int", "", ""},
        {"SELECT x", "[1]", " FROM t", ""},
        {"SELECT ('a')", ".upper()", "", ""},
        {"SELECT NULL::int", "[]", "", ""},
        {"SELECT ", "CASE WHEN true THEN ", "1", " END"},
        {"SELECT ", "CASE ", "1", " WHEN 1 THEN 1 WHEN 2 THEN 2 END"},
        {"SELECT ", "abs(", "1", ")"},
        {"SELECT ", "ARRAY(SELECT 1 ORDER BY ", "1", ")"},
        {"SELECT ", "EXISTS (SELECT ", "1", ")"},
        {"", "SELECT * FROM (", "SELECT 1", ")"},
        {"", "WITH a AS (", "SELECT 1", ") SELECT 1"},
        {"SELECT 1", " UNION ALL SELECT 1", "", ""},
        {"SELECT 1", " EXCEPT SELECT 1", "", ""},
        {"SELECT a", " AND a", " FROM t", ""},
        {"SELECT * FROM t", ", t", "", ""},
        {"SELECT * FROM t", " JOIN t ON true", "", ""},
        {"SELECT * FROM t", " PIVOT (sum(a) FOR b IN (1))", "", ""},
        {"SELECT 1 ", "/* ", "", " */"},
        {"", "EXPLAIN ", "SELECT 1", ""},
        {"", "PREPARE p AS ", "SELECT 1", ""},
        {"SELECT list_transform([1], ", "lambda x: ", "x", ")"},
    };
    const GuardPolicy policy;
    // The stack of a thread of the pool, not the main thread's.
    std::thread thread([&] {
        for (const auto &[before, part, middle, after] : shapes) {
            for (const size_t times : {900u, 100'000u}) {
                const std::string text = before + repeat(part, times) + middle + repeat(after, times);
                const auto statements = parse(text);
                if (!statements.ok()) {
                    EXPECT_TRUE(statements.status().code() == Code::syntax_error ||
                                statements.status().name() == "statement_too_complex" ||
                                statements.status().code() == Code::unimplemented)
                        << statements.status().to_string();
                    continue;
                }
                for (const Statement &statement : *statements) (void)check(statement, Context::session, policy).ok();
                fingerprint(text);
            }
        }
    });
    thread.join();
}

std::string list(const char *item, size_t times) {
    std::string out;
    for (size_t i = 0; i < times; ++i) out += (i == 0 ? "" : ", ") + std::string(item) + std::to_string(i);
    return out;
}

TEST(Hostile, copying_constructs_are_bounded) {
    for (const std::string &text : {
             "PIVOT t ON " + list("a", 5000),
             "UPDATE t SET (" + list("a", 20000) + ") = (" + list("1", 20000) + ")",
             "SELECT 1 FROM t GROUP BY " + list("a", 20000),
             "SELECT 1 FROM t GROUP BY ROLLUP (" + list("a", 20000) + ")",
             "SELECT 1 FROM t GROUP BY CUBE (" + list("a", 14) + "), " + list("b", 100),
             "SELECT " + repeat("sum(1) OVER w, ", 5000) + "1 FROM t WINDOW w AS (PARTITION BY " + list("a", 5000) +
                 ")",
             "SELECT a" + repeat(" AND a", 20000) + " FROM t",
         }) {
        EXPECT_EQ(parse(text).status().name(), "statement_too_complex") << text.substr(0, 60);
    }
}

TEST(Hostile, large_ordinary_statements_pass) {
    for (const std::string &text : {
             "INSERT INTO t VALUES (1, 'a', NULL)" + repeat(", (1, 'a', NULL)", 50'000),
             "SELECT * FROM t WHERE a IN (" + list("1", 50'000) + ")",
             "SELECT " + list("a", 10'000) + " FROM t",
             "SELECT 1 FROM t GROUP BY " + list("a", 1'500),
             "SELECT 1 FROM t GROUP BY GROUPING SETS ((a, b)" + repeat(", (a, c)", 100) + ")",
             "SELECT 1 FROM t GROUP BY CUBE (" + list("a", 12) + ")",
             "PIVOT t ON a, b, c USING sum(x) GROUP BY " + list("g", 100),
             "PIVOT t ON a IN (" + list("1", 1'000) + ") USING sum(x)",
             "SELECT CASE a" + repeat(" WHEN 1 THEN 2", 2'000) + " END FROM t",
             "SELECT CASE WHEN a" + repeat(" WHEN 1 THEN 2", 0) + " THEN 1 END FROM t WHERE x" +
                 repeat(" OR x = 1", 5'000),
             "SELECT " + repeat("sum(1) OVER w, ", 100) + "1 FROM t WINDOW w AS (PARTITION BY a ORDER BY b)",
             "CREATE TABLE t AS SELECT " + list("a", 5'000),
         }) {
        const auto result = parse(text);
        EXPECT_TRUE(result.ok()) << text.substr(0, 60) << ": " << result.status().to_string();
    }
}

}  // namespace
}  // namespace roost::sql
