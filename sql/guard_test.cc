#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "sql/lexer.h"
#include "sql/statement.h"

namespace roost::sql {
namespace {

// The state that the corpus assumes: catalog lake with orders, customers and v_big, a session's staging prefix.
GuardPolicy corpus_policy() {
    GuardPolicy policy;
    policy.catalogs = {"lake"};
    policy.staging_prefix = "s3://lake/staging/SESSION/";
    policy.is_table = [](const TableName &name) {
        return name.table == "orders" || name.table == "customers" || name.table == "v_big" || name.table == "data.csv";
    };
    return policy;
}

Status judge(std::string_view sql, Context context, const GuardPolicy &policy) {
    const auto statements = parse(sql);
    if (!statements.ok()) return statements.status();
    return check_all(*statements, context, policy);
}

struct CorpusLine {
    std::string id, context, verdict, kind, sql, note;
};

std::vector<CorpusLine> read_corpus(const char *path) {
    std::ifstream file(path);
    std::vector<CorpusLine> lines;
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
        if (fields.size() == 6) lines.push_back({fields[0], fields[1], fields[2], fields[3], fields[4], fields[5]});
    }
    return lines;
}

// Lines that say what DuckDB's parser does with commands that roost answers itself in a session (the pgwire contract
// has them): denied in oneshot, allowed in a session.
const std::map<std::string, const char *> roost_commands = {
    {"G482", "DISCARD ALL"}, {"G483", "DECLARE … CURSOR"}, {"G488", "SET LOCAL"},
    {"G489", "RESET ALL"},   {"G515", "DEALLOCATE ALL"},
};

void expect_verdicts(const std::vector<CorpusLine> &lines) {
    const GuardPolicy policy = corpus_policy();
    for (const CorpusLine &line : lines) {
        for (const Context context : {Context::oneshot, Context::session}) {
            const char *name = context == Context::oneshot ? "oneshot" : "session";
            if (line.context != "both" && line.context != name) continue;
            const Status status = judge(line.sql, context, policy);
            bool allow = line.verdict == "allow";
            if (context == Context::session && roost_commands.count(line.id) != 0) allow = true;
            EXPECT_EQ(status.ok(), allow)
                << line.id << ' ' << name << ": " << line.sql << "\n  " << line.note << "\n  " << status.to_string();
            if (!status.ok() && status.code() == Code::not_allowed) EXPECT_NE(status.error().rule, "") << line.id;
            if (!status.ok() && line.kind != "parse") {
                EXPECT_NE(status.code(), Code::syntax_error) << line.id << ' ' << status.to_string();
            }
        }
    }
}

TEST(GuardCorpus, every_verdict_is_as_the_corpus_says) {
    const std::vector<CorpusLine> lines = read_corpus("sql/testdata/guard.tsv");
    ASSERT_EQ(lines.size(), 516u);
    expect_verdicts(lines);
}

// Statements of our own, of the corpus' classes and form: other spellings, other places of the grammar, what BI tools
// and dbt send.
TEST(GuardCorpus, every_verdict_on_its_classmates_is_as_their_file_says) {
    const std::vector<CorpusLine> lines = read_corpus("sql/testdata/classmates.tsv");
    ASSERT_GT(lines.size(), 600u);
    expect_verdicts(lines);
}

struct Verdict {
    const char *sql;
    const char *rule;  // "" for allowed
};

void expect_rules(const std::vector<Verdict> &cases, Context context, const GuardPolicy &policy) {
    for (const Verdict &expected : cases) {
        const Status status = judge(expected.sql, context, policy);
        const std::string rule = status.ok()                   ? ""
                                 : status.error().rule.empty() ? status.to_string()
                                                               : status.error().rule;
        EXPECT_EQ(rule, expected.rule) << expected.sql << "\n  " << status.to_string();
        if (!status.ok()) {
            EXPECT_NE(status.error().hint, "") << expected.sql;
            EXPECT_NE(status.error().position, 0u) << expected.sql;
        }
    }
}

TEST(Guard, calls_are_judged_wherever_the_grammar_lets_them_stand) {
    // read_text and current_setting in places that the corpus leaves out.
    const std::string call = "(SELECT content FROM read_text('x'))";
    for (const std::string &sql : std::vector<std::string>{
             "SELECT CASE " + call + " WHEN 'a' THEN 1 END",
             "SELECT CASE WHEN true THEN " + call + " ELSE '' END",
             "SELECT 1 BETWEEN 0 AND length(" + call + ")",
             "SELECT {'a': " + call + "}",
             "SELECT [" + call + "]",
             "SELECT MAP {1: " + call + "}",
             "SELECT ROW(1, " + call + ")",
             "SELECT name COLLATE nocase = " + call + " FROM customers",
             "SELECT CAST(" + call + " AS INT)",
             "SELECT TRY(" + call + ")",
             "SELECT * REPLACE (" + call + " AS name) FROM customers",
             "SELECT COLUMNS(c -> c = " + call + ") FROM customers",
             "SELECT DISTINCT ON (" + call + ") name FROM customers",
             "SELECT 1 FROM customers GROUP BY CUBE (" + call + ")",
             "SELECT count(*) OVER (PARTITION BY " + call + ") FROM customers",
             "SELECT count(*) OVER w FROM customers WINDOW w AS (ORDER BY " + call + ")",
             "SELECT lag(name, 1, " + call + ") OVER () FROM customers",
             "SELECT 1 = ANY (SELECT content FROM read_text('x'))",
             "SELECT * FROM customers JOIN orders ON name = " + call,
             "SELECT * FROM customers, LATERAL (SELECT content FROM read_text('x'))",
             "SELECT * FROM customers TABLESAMPLE 10% WHERE name = " + call,
             "SELECT * FROM unnest([" + call + "])",
             "SELECT * FROM (VALUES (" + call + "))",
             "SELECT * FROM customers PIVOT (max(" + call + ") FOR name IN ('a'))",
             "PIVOT customers ON name USING max(" + call + ")",
             "SELECT * FROM customers AT (TIMESTAMP => " + call + ")",
             "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT length(" + call + ") FROM r) FROM r",
             "WITH a AS MATERIALIZED (FROM read_text('x')) SELECT 1",
             "SELECT [x FOR x IN [1] IF x = " + call + "]",
             "SELECT list_transform([1], lambda x: " + call + ")",
             "SELECT ('x').concat(" + call + ")",
             "INSERT INTO customers (name) VALUES (" + call + ")",
             "INSERT INTO customers VALUES (1, 'a') RETURNING " + call,
             "UPDATE customers SET name = 'a' WHERE name = " + call,
             "UPDATE customers SET name = 'a' RETURNING " + call,
             "DELETE FROM customers WHERE name = " + call,
             "DELETE FROM customers RETURNING " + call,
             "MERGE INTO customers t USING orders s ON " + call + " = 'a' WHEN MATCHED THEN DELETE",
             "MERGE INTO customers t USING orders s ON true WHEN NOT MATCHED THEN INSERT VALUES (1, " + call + ")",
             "MERGE INTO customers t USING orders s ON true WHEN MATCHED THEN DELETE RETURNING " + call,
             "CREATE VIEW v AS SELECT " + call,
             "CREATE MACRO m(a, b := " + call + ") AS a",
             "CREATE TABLE t AS SELECT " + call,
             "CREATE OR REPLACE TABLE t AS FROM read_text('x')",
             "EXPLAIN SELECT " + call,
             "DESCRIBE SELECT " + call,
             "SELECT * FROM (SUMMARIZE SELECT " + call + ")",
         }) {
        const Status status = judge(sql, Context::session, corpus_policy());
        EXPECT_FALSE(status.ok()) << sql;
        EXPECT_EQ(status.ok() ? "" : status.error().rule, "function:read_text") << sql << "\n" << status.to_string();
    }
    for (const std::string &sql : {
             std::string("CREATE TABLE t (a VARCHAR DEFAULT getenv('x'))"),
             std::string("CREATE TABLE t (a INT, b VARCHAR AS (getenv('x')))"),
             std::string("CREATE TABLE t (a VARCHAR CHECK (a = getenv('x')))"),
             std::string("CREATE INDEX i ON customers ((getenv(name)))"),
             std::string("ALTER TABLE customers ADD COLUMN x VARCHAR DEFAULT getenv('x')"),
             std::string("ALTER TABLE customers ALTER name TYPE VARCHAR USING getenv(name)"),
             std::string("ALTER TABLE customers SET PARTITIONED BY (getenv(name))"),
             std::string("ALTER TABLE customers SET SORTED BY (getenv(name))"),
             std::string("SET VARIABLE x = getenv('x')"),
             std::string("EXECUTE p(getenv('x'))"),
             std::string("COPY (SELECT getenv('x')) TO STDOUT"),
             std::string("DECLARE c CURSOR FOR SELECT getenv('x')"),
         }) {
        const Status status = judge(sql, Context::session, corpus_policy());
        EXPECT_EQ(status.ok() ? "" : status.error().rule, "function:getenv") << sql << "\n" << status.to_string();
    }
}

TEST(Guard, catalogs_and_schemas) {
    expect_rules(
        {
            {"SELECT * FROM lake.orders", ""},
            {"SELECT * FROM LAKE.main.orders", ""},
            {"SELECT * FROM s.orders", ""},
            {"SELECT * FROM other.s.orders", "catalog:other"},
            {"SELECT * FROM memory.t", "catalog:memory"},
            {"SELECT * FROM system.main.duckdb_tables", "catalog:system"},
            {"SELECT * FROM information_schema.tables", ""},
            {"SELECT * FROM lake.information_schema.tables", ""},
            {"SELECT * FROM system.information_schema.tables", ""},
            {"SELECT * FROM lake.pg_catalog.pg_settings", "view:pg_catalog.pg_settings"},
            {"SELECT * FROM main.pg_settings", "view:pg_settings"},
            {"SELECT * FROM information_schema.secrets", "view:information_schema.secrets"},
            {"INSERT INTO information_schema.tables VALUES (1)", "schema:information_schema"},
            {"CREATE TABLE pg_catalog.t (a INT)", "schema:pg_catalog"},
            {"CREATE SCHEMA other.s", "catalog:other"},
            {"DROP SCHEMA __ducklake_metadata_lake.main", "catalog:metadata"},
            {"SELECT 1::__ducklake_metadata_lake.main.t", "catalog:metadata"},
            {"SELECT __ducklake_metadata_lake.main.f(1)", "catalog:metadata"},
            {"SELECT * FROM pragma_table_info('__DUCKLAKE_metadata_lake.main.t')", "catalog:metadata"},
            {"SELECT * FROM pragma_table_info('ord' || 'ers')", "function:pragma_table_info"},
            {"SELECT nextval('__ducklake_metadata_lake.main.s')", "catalog:metadata"},
            {"SELECT '__ducklake_metadata_lake' AS data", ""},
            {"SELECT * FROM ducklake_snapshots('other')", "function:ducklake_snapshots"},
            {"SELECT * FROM ducklake_snapshots('LAKE')", ""},
            {"FROM other.snapshots()", "catalog:other"},
            {"FROM snapshots()", ""},
            {"ALTER VIEW other.s.v RENAME TO w", "catalog:other"},
            {"COMMENT ON COLUMN other.s.t.c IS 'x'", "catalog:other"},
            {"CREATE INDEX i ON other.s.t (a)", "catalog:other"},
        },
        Context::session, corpus_policy());
}

TEST(Guard, names_that_look_like_files_are_tables_only_if_the_lake_has_them) {
    const GuardPolicy policy = corpus_policy();
    expect_rules({{"SELECT * FROM \"data.csv\"", ""},
                  {"INSERT INTO \"other.csv\" VALUES (1)", ""},
                  {"CREATE TABLE \"a/b\" (a INT)", ""},
                  {"SELECT * FROM \"other.csv\"", "path"},
                  {"SELECT * FROM 'x.parquet'", "path"},
                  {"SELECT * FROM \"x.json.gz\"", "path"},
                  {"SELECT * FROM \"s3://b/x\"", "path"},
                  {"SELECT * FROM \"*\"", "path"},
                  {"UPDATE 'x.csv' SET a = 1", "path"},
                  {"DELETE FROM 'x.csv'", "path"},
                  {"MERGE INTO 'x.csv' USING orders ON true WHEN MATCHED THEN DELETE", "path"},
                  {"WITH \"x.csv\" AS (SELECT 1) SELECT * FROM \"x.csv\"", ""}},
                 Context::session, policy);
}

TEST(Guard, macros_of_the_user) {
    GuardPolicy policy = corpus_policy();
    expect_rules({{"SELECT add_tax(1)", "function:add_tax"}, {"FROM my_table_macro()", "function:my_table_macro"}},
                 Context::oneshot, policy);
    EXPECT_EQ(judge("SELECT add_tax(1)", Context::oneshot, policy).sqlstate(), "42883");
    policy.is_macro = [](std::string_view name) { return name == "add_tax" || name == "read_csv"; };
    expect_rules({{"SELECT ADD_TAX(1)", ""},
                  {"SELECT lake.main.add_tax(1)", ""},
                  // A macro of another client that took a forbidden name does not open it.
                  {"FROM read_csv('x')", "function:read_csv"},
                  {"SELECT read_csv('x')", "function:read_csv"},
                  // Made by an earlier statement of the same text.
                  {"CREATE MACRO twice(x) AS x * 2; SELECT twice(1)", ""},
                  {"SELECT twice(1); CREATE MACRO twice(x) AS x * 2", "function:twice"},
                  {"CREATE MACRO lower(x) AS x", "macro:lower"},
                  {"CREATE MACRO snapshots() AS TABLE SELECT 1", "macro:snapshots"}},
                 Context::session, policy);
}

TEST(Guard, settings) {
    expect_rules({{"SET TimeZone = 'UTC'", ""},
                  {"SET search_path TO \"$user\", public", ""},
                  {"SET search_path = 'lake.main, s'", ""},
                  {"SET search_path = 'other.main'", "catalog:other"},
                  {"SET search_path = 'memory'", "catalog:memory"},
                  {"SET schema = '__ducklake_metadata_lake'", "catalog:metadata"},
                  {"SET application_name = 'x'", ""},
                  {"SET extra_float_digits = 3", ""},
                  {"SET enable_seqscan = off", ""},
                  {"SET enable_profiling = 'json'", "setting:enable_profiling"},
                  {"SET myapp.x = 1", ""},
                  {"SET nonsense = 1", "setting:nonsense"},
                  {"SET GLOBAL TimeZone = 'UTC'", "setting:global"},
                  {"SET TimeZone = getenv('TZ')", "setting_value:timezone"},
                  {"SHOW search_path", ""},
                  {"SHOW ALL", ""},
                  {"SHOW s3_secret_access_key", "setting:s3_secret_access_key"},
                  {"RESET ALL", ""},
                  {"SET TRANSACTION READ ONLY", ""},
                  {"SELECT current_setting('server_version')", ""},
                  {"SELECT current_setting('myapp.x', true)", ""},
                  {"SELECT current_setting('threads')", "setting:threads"},
                  {"SELECT current_setting('TimeZone', getvariable('x'))", "setting:computed"}},
                 Context::session, corpus_policy());
    EXPECT_EQ(judge("SET nonsense = 1", Context::session, corpus_policy()).sqlstate(), "42704");
}

TEST(Guard, copy_and_staged_files) {
    GuardPolicy policy = corpus_policy();
    policy.staged_urls = {"http://127.0.0.1:8080/staged/x.parquet?sig=abc"};
    expect_rules(
        {
            {"COPY orders TO STDOUT (FORMAT csv, HEADER)", ""},
            {"COPY orders FROM STDIN WITH CSV HEADER DELIMITER ';' NULL ''", ""},
            {"COPY orders FROM '/dev/stdin'", "path"},
            {"COPY orders TO 's3://lake/staging/SESSION/x' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (a, b))",
             ""},
            {"COPY orders TO 's3://lake/staging/SESSION/x' (FORMAT sqlite)", "copy_option:format"},
            {"COPY orders TO 's3://lake/staging/SESSION/x' (ENCRYPTION_CONFIG {footer_key: 'k'})",
             "copy_option:encryption_config"},
            {"COPY orders TO 's3://lake/staging/SESSION/x' (FILENAME_PATTERN 'a_{i}')", ""},
            {"COPY orders TO 's3://lake/staging/SESSION/x' (FILENAME_PATTERN '../a')", "copy_option:filename_pattern"},
            {"COPY orders TO 's3://lake/staging/SESSION/x' (NULL upper('a'))", "copy_option:null"},
            {"COPY orders TO 's3://lake/staging/SESSION/'", "path"},
            {"COPY orders TO 's3://lake/staging/SESSION//x'", "path"},
            {"COPY orders TO 's3://lake/staging/SESSION/a%2e'", "path"},
            {"COPY orders TO 's3://lake/staging/SESSION_2/x'", "path"},
            {"COPY orders TO ('s3://lake/staging/SESSION/' || 'x')", "path"},
            {"COPY orders TO $1", "path"},
            {"INSERT INTO orders BY NAME SELECT * FROM "
             "read_parquet('http://127.0.0.1:8080/staged/x.parquet?sig=abc', union_by_name=true)",
             ""},
            {"FROM read_csv('s3://lake/staging/SESSION/in.csv', header := true, columns := {'a': 'INT'})", ""},
            {"FROM read_parquet(['s3://lake/staging/SESSION/a', 's3://lake/staging/SESSION/b'])", ""},
            {"FROM read_parquet(['s3://lake/staging/SESSION/a', '/etc/passwd'])", "function:read_parquet"},
            {"FROM read_parquet('http://127.0.0.1:8080/staged/x.parquet?sig=abd')", "function:read_parquet"},
            {"FROM read_csv('s3://lake/staging/SESSION/in.csv', nullstr := getenv('x'))", "function:read_csv"},
            {"FROM read_text('s3://lake/staging/SESSION/in.csv')", "function:read_text"},
        },
        Context::session, policy);
    expect_rules({{"FROM read_csv('s3://lake/staging/SESSION/in.csv')", "function:read_csv"}}, Context::oneshot,
                 policy);
}

TEST(Guard, dbt_finds_its_catalog_and_nothing_more) {
    expect_rules({{"/* {\"app\": \"dbt\"} */ select database_name, type from duckdb_databases()", ""},
                  {"select type from duckdb_databases() where database_name = 'lake'", ""},
                  {"select path from duckdb_databases()", "function:duckdb_databases"},
                  {"select * from duckdb_databases()", "function:duckdb_databases"},
                  {"select database_name from duckdb_databases() where path like '/a%'", "function:duckdb_databases"},
                  {"select database_name from duckdb_databases() order by path", "function:duckdb_databases"},
                  {"select database_name from duckdb_databases() t(a, database_name)", "function:duckdb_databases"},
                  {"select columns('.*') from duckdb_databases()", "function:duckdb_databases"},
                  {"select database_name, t from duckdb_databases() t", "function:duckdb_databases"},
                  {"select database_name from duckdb_databases(), duckdb_databases() b", "function:duckdb_databases"}},
                 Context::session, corpus_policy());
}

TEST(Guard, temporary_objects_need_a_session) {
    const std::vector<const char *> statements = {"CREATE TEMP TABLE t (a INT)", "CREATE TEMP VIEW v AS SELECT 1",
                                                  "CREATE TABLE temp.t (a INT)", "CREATE TEMP MACRO m(x) AS x"};
    for (const char *sql : statements) {
        EXPECT_TRUE(judge(sql, Context::session, corpus_policy()).ok()) << sql;
        const Status status = judge(sql, Context::oneshot, corpus_policy());
        EXPECT_EQ(status.ok() ? "" : status.error().rule, "temp:oneshot") << sql;
    }
    EXPECT_TRUE(judge("PIVOT orders ON cust USING sum(amount)", Context::oneshot, corpus_policy()).ok());
}

TEST(Guard, statements_nobody_may_run) {
    expect_rules({{"EXPLAIN CALL f()", "statement:call"},
                  {"EXPLAIN SET VARIABLE x = 1", "statement:set"},
                  {"EXPLAIN EXECUTE p", "statement:execute"},
                  {"EXPLAIN PRAGMA version", "statement:pragma"},
                  {"PREPARE p AS CALL f()", "statement:call"},
                  {"PREPARE p AS VACUUM", "statement:vacuum"},
                  {"CREATE TABLE t (a INT) WITH (path = '/srv')", "table_option"},
                  {"ALTER TABLE t SET (path = '/srv')", "table_option"},
                  {"DESCRIBE TIME ZONE", "statement:show"},
                  {"PRAGMA threads = 1", "statement:pragma"},
                  {"IMPORT DATABASE 'x'", "statement:import"},
                  {"EXPORT DATABASE 'x'", "statement:export"}},
                 Context::session, corpus_policy());
}

TEST(Guard, the_verdict_is_on_the_text) {
    Statement statement = parse("SELECT 1")->at(0);
    statement.text = "ATTACH 'x'";
    EXPECT_FALSE(check(statement, Context::session, corpus_policy()).ok());
    statement.text = "SELECT 1; ATTACH 'x'";
    EXPECT_FALSE(check(statement, Context::session, corpus_policy()).ok());
    statement = parse("BEGIN")->at(0);
    statement.text = "LOAD x";
    EXPECT_FALSE(check(statement, Context::session, corpus_policy()).ok());
}

TEST(Guard, positions_are_those_of_the_original_text) {
    const auto position = [](std::string_view sql) {
        return judge(sql, Context::session, corpus_policy()).error().position;
    };
    EXPECT_EQ(position("SELECT '☃'; SELECT 'é', getenv('x')"), 25u);
    EXPECT_EQ(position("SELECT 1;  LOAD x"), 12u);
    EXPECT_EQ(position("PREPARE \"é\" AS SELECT getenv('x')"), 23u);
    EXPECT_EQ(position("SELECT 1 , getenv('x')"), 12u);
}

TEST(Guard, an_empty_policy_is_the_strictest) {
    const GuardPolicy policy;
    expect_rules({{"SELECT 1", ""},
                  {"SELECT * FROM lake.main.orders", "catalog:lake"},
                  {"FROM ducklake_snapshots('lake')", "function:ducklake_snapshots"},
                  {"COPY orders TO 's3://lake/staging/SESSION/x'", "path"},
                  {"FROM read_csv('x')", "function:read_csv"}},
                 Context::session, policy);
}

}  // namespace
}  // namespace roost::sql
