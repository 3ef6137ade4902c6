// For tests: random life of a lake, made by two clients: DDL, DML, transactions that commit or not, compaction, flush,
// expiry, foreign files. The same seed gives the same life.
#pragma once

#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "lake/lake_state.h"
#include "lake/test_lake.h"

namespace roost::testing {

class RandomLake {
public:
    RandomLake(TestLake &lake, uint64_t seed) : lake_(lake), random_(seed) {
        clients_.push_back(lake.client());
        clients_.push_back(lake.client());
    }
    // One step by either client. Tells what was said.
    std::string step(const LakeState &state);
    LakeClient &client(size_t which) { return *clients_[which]; }
    // Errors by their beginning, and how many statements there were.
    const std::map<std::string, int> &errors() const { return errors_; }
    int statements() const { return statements_; }
    int failed() const { return failed_; }
    uint64_t below(uint64_t limit) { return std::uniform_int_distribution<uint64_t>(0, limit - 1)(random_); }

    struct Column {
        std::string name, type;
    };
    // A literal of `type` among the values that rows get.
    std::string literal(const std::string &type);

    static std::vector<Column> columns_of(const TableDefinition &table);

private:
    bool chance(int percent) { return below(100) < static_cast<uint64_t>(percent); }
    template <class Of>
    const auto &any(const Of &of) {
        return of[below(of.size())];
    }
    std::string fresh(const std::string &prefix) { return prefix + std::to_string(++names_); }
    void say(const std::string &sql);

    std::string qualified(const TableDefinition &table) const {
        return quote_identifier(table.schema_name) + "." + quote_identifier(table.name);
    }
    std::string random_type();
    std::string expression(const std::string &type, const std::string &number);
    std::string condition(const TableDefinition &table);

    void create_table(const LakeState &state);
    void insert(const TableDefinition &table);
    void write(const TableDefinition &table);
    void alter(const TableDefinition &table);
    void partition(const TableDefinition &table);
    void names(const LakeState &state);
    void maintain();
    void add_file(const TableDefinition &table);
    void transaction(const LakeState &state);
    // Before an ALTER: without a place for rows of the new shape, the next client that keeps rows in the catalog makes
    // one under a later schema version, and DuckLake can't read them any more (docs/mirror.md).
    void keep_rows_in_catalog() {
        if (without_inlining_.erase(active_) > 0) lake_.attach_again(*active_, ", DATA_INLINING_ROW_LIMIT 10");
    }

    TestLake &lake_;
    std::mt19937_64 random_;
    std::vector<std::unique_ptr<LakeClient>> clients_;
    LakeClient *active_ = nullptr;
    std::string said_;
    int names_ = 0;
    int statements_ = 0;
    int failed_ = 0;
    std::set<const LakeClient *> without_inlining_;  // clients that keep no rows in the catalog
    std::map<std::string, int> errors_;
};

inline void RandomLake::say(const std::string &sql) {
    const std::string error = active_->run(sql);
    statements_++;
    said_ += (said_.empty() ? "" : "; ") + sql;
    if (error.empty()) return;
    failed_++;
    said_ += " -- " + error;
    errors_[sql.substr(0, sql.find(' ')) + ": " + error.substr(0, 90)]++;
}

inline std::vector<RandomLake::Column> RandomLake::columns_of(const TableDefinition &table) {
    static const std::map<std::string, std::string> kNames = {
        {"int32", "INTEGER"},           {"int64", "BIGINT"},  {"varchar", "VARCHAR"},
        {"float64", "DOUBLE"},          {"date", "DATE"},     {"timestamp", "TIMESTAMP"},
        {"boolean", "BOOLEAN"},         {"blob", "BLOB"},     {"int128", "HUGEINT"},
        {"uint32", "UINTEGER"},         {"float32", "FLOAT"}, {"uuid", "UUID"},
        {"timestamptz", "TIMESTAMPTZ"}, {"time", "TIME"},     {"int8", "TINYINT"}};
    std::vector<Column> out;
    for (const LakeColumn &column : table.columns) {
        const auto known = kNames.find(column.type);
        std::string type = known == kNames.end() ? column.type : known->second;
        if (column.type.starts_with("decimal")) type = "DECIMAL" + column.type.substr(7);
        if (column.type == "struct") type = "STRUCT(a INTEGER, b VARCHAR)";
        if (column.type == "list") type = "INTEGER[]";
        out.push_back({.name = column.name, .type = type});
    }
    return out;
}

inline std::string RandomLake::random_type() {
    static const std::vector<std::string> kTypes = {"INTEGER",
                                                    "INTEGER",
                                                    "BIGINT",
                                                    "VARCHAR",
                                                    "VARCHAR",
                                                    "DOUBLE",
                                                    "DATE",
                                                    "TIMESTAMP",
                                                    "DECIMAL(12,2)",
                                                    "BOOLEAN",
                                                    "BLOB",
                                                    "HUGEINT",
                                                    "UINTEGER",
                                                    "FLOAT",
                                                    "UUID",
                                                    "TIMESTAMPTZ",
                                                    "STRUCT(a INTEGER, b VARCHAR)",
                                                    "INTEGER[]",
                                                    "TINYINT"};
    return any(kTypes);
}

// SQL that makes a value of `type` from a number; every few rows a NULL.
inline std::string RandomLake::expression(const std::string &type, const std::string &n) {
    std::string made = "(" + n + ")::" + type;
    if (type == "VARCHAR")
        made = "'v' || lpad((" + n + ")::VARCHAR, 6, '0') || CASE WHEN (" + n + ") % 11 = 0 THEN 'é''x' ELSE '' END";
    if (type == "DOUBLE" || type == "FLOAT")
        made = "CASE WHEN (" + n + ") % 97 = 0 THEN 'nan'::" + type + " ELSE ((" + n + ") / 8.0)::" + type + " END";
    if (type == "DATE") made = "DATE '2020-01-01' + (" + n + ")::INTEGER";
    if (type == "TIMESTAMP") made = "TIMESTAMP '2020-01-01 10:00:00' + INTERVAL 1 HOUR * (" + n + ")";
    if (type == "TIMESTAMPTZ") made = "TIMESTAMPTZ '2020-01-01 10:00:00+00' + INTERVAL 1 HOUR * (" + n + ")";
    if (type == "BOOLEAN") made = "(" + n + ") % 2 = 0";
    if (type == "BLOB") made = "encode('b' || (" + n + ")::VARCHAR)";
    if (type == "UUID") made = "('00000000-0000-0000-0000-' || lpad((" + n + ")::VARCHAR, 12, '0'))::UUID";
    if (type == "TINYINT") made = "((" + n + ") % 100)::TINYINT";
    if (type.starts_with("STRUCT")) made = "{'a': (" + n + ")::INTEGER, 'b': 's' || (" + n + ")::VARCHAR}";
    if (type == "INTEGER[]") made = "[(" + n + ")::INTEGER, 7]";
    return "CASE WHEN (" + n + ") % 13 = 5 THEN NULL ELSE " + made + " END";
}

inline std::string RandomLake::literal(const std::string &type) {
    const std::string n = std::to_string(below(3000));
    if (type == "VARCHAR") return "'v" + std::string(6 - n.size(), '0') + n + "'";
    return "(" + expression(type, n == "5" ? "6" : n) + ")";
}

inline std::string RandomLake::condition(const TableDefinition &table) {
    const auto columns = columns_of(table);
    const Column &column = any(columns);
    const std::string name = quote_identifier(column.name);
    switch (below(5)) {
        case 0:
            return name + " IS NULL";
        case 1:
            return "true";
        default:
            if (column.type.starts_with("STRUCT") || column.type == "INTEGER[]") return name + " IS NOT NULL";
            return name + (chance(50) ? " < " : " > ") + literal(column.type);
    }
}

inline void RandomLake::create_table(const LakeState &state) {
    std::string schema = "main";
    if (chance(30)) schema = any(state.names().schemas).name;
    const std::string name =
        quote_identifier(schema) + "." + quote_identifier(chance(20) ? fresh("Tab le,") : fresh("t"));
    std::string columns = "k INTEGER";
    const uint64_t count = 1 + below(4);
    for (uint64_t i = 0; i < count; i++) {
        const std::string type = random_type();
        columns += ", c" + std::to_string(i) + " " + type;
        if (chance(20) && type == "INTEGER") columns += " DEFAULT 42";
    }
    if (chance(25)) {
        say("CREATE TABLE " + name +
            " AS SELECT i::INTEGER AS k, 'v' || i AS c0, DATE '2020-01-01' + i::INTEGER AS c1 FROM range(" +
            std::to_string(below(200)) + ") r(i)");
    } else {
        say("CREATE TABLE " + name + " (" + columns + ")");
    }
}

inline void RandomLake::insert(const TableDefinition &table) {
    // Few rows stay in the catalog when inlining is on; many become a file, or several by partition.
    const uint64_t rows = chance(60) ? 1 + below(8) : 40 + below(400);
    const std::string base = std::to_string(below(3000));
    std::string list;
    for (const Column &column : columns_of(table)) {
        list += (list.empty() ? "" : ", ") + expression(column.type, "i + " + base);
    }
    say("INSERT INTO " + qualified(table) + " SELECT " + list + " FROM range(" + std::to_string(rows) + ") r(i)");
}

inline void RandomLake::write(const TableDefinition &table) {
    const auto columns = columns_of(table);
    switch (below(10)) {
        case 0:
        case 1:
        case 2:
        case 3:
        case 4:
            return insert(table);
        case 5:
        case 6:
            return say("DELETE FROM " + qualified(table) + " WHERE " + condition(table));
        case 7: {
            const Column &column = any(columns);
            return say("UPDATE " + qualified(table) + " SET " + quote_identifier(column.name) + " = " +
                       expression(column.type, std::to_string(below(3000))) + " WHERE " + condition(table));
        }
        case 8:
            return say("DELETE FROM " + qualified(table) + " WHERE rowid % 7 = " + std::to_string(below(7)));
        default:
            return say("DELETE FROM " + qualified(table) +
                       (chance(30) ? "" : " WHERE rowid < " + std::to_string(below(100))));
    }
}

inline void RandomLake::alter(const TableDefinition &table) {
    const auto columns = columns_of(table);
    const std::string name = qualified(table);
    const Column &column = any(columns);
    const std::string quoted = quote_identifier(column.name);
    switch (below(9)) {
        case 0:
            return say("ALTER TABLE " + name + " RENAME TO " + fresh("r"));
        case 1:
            return say("ALTER TABLE " + name + " RENAME COLUMN " + quoted + " TO " + fresh("n"));
        case 2:
        case 3: {
            const std::string type = random_type();
            std::string added = "ALTER TABLE " + name + " ADD COLUMN " + fresh("a") + " " + type;
            if (chance(60) && (type == "INTEGER" || type == "BIGINT")) added += " DEFAULT 17";
            if (chance(60) && type == "VARCHAR") added += " DEFAULT 'dé''f'";
            return say(added);
        }
        case 4:
            if (columns.size() > 2) return say("ALTER TABLE " + name + " DROP COLUMN " + quoted);
            return say("COMMENT ON TABLE " + name + " IS 'it''s " + fresh("comment") + "'");
        case 5:
            if (column.type == "INTEGER")
                return say("ALTER TABLE " + name + " ALTER COLUMN " + quoted + " SET DATA TYPE BIGINT");
            if (column.type == "FLOAT")
                return say("ALTER TABLE " + name + " ALTER COLUMN " + quoted + " SET DATA TYPE DOUBLE");
            return say("COMMENT ON COLUMN " + name + "." + quoted + " IS '" + fresh("comment") + "'");
        case 6:
            if (column.type == "INTEGER")
                return say("ALTER TABLE " + name + " ALTER COLUMN " + quoted + " SET DEFAULT 5");
            return say("ALTER TABLE " + name + " ALTER COLUMN " + quoted + " DROP DEFAULT");
        default:
            return partition(table);
    }
}

inline void RandomLake::partition(const TableDefinition &table) {
    const auto columns = columns_of(table);
    const Column &column = any(columns);
    const std::string quoted = quote_identifier(column.name);
    if (chance(25)) return say("ALTER TABLE " + qualified(table) + " RESET PARTITIONED BY");
    std::string by = "bucket(4, " + quoted + ")";
    if (column.type == "DATE" || column.type == "TIMESTAMP") {
        by = chance(50) ? "year(" + quoted + ")" : "year(" + quoted + "), month(" + quoted + ")";
    } else if (column.type == "BOOLEAN") {
        by = quoted;
    }
    say("ALTER TABLE " + qualified(table) + " SET PARTITIONED BY (" + by + ")");
}

inline void RandomLake::names(const LakeState &state) {
    switch (below(9)) {
        case 0:
            return say("CREATE SCHEMA " + quote_identifier(fresh("s,\"")));
        case 1:
            // Never main.
            if (state.names().schemas.size() > 1) {
                return say("DROP SCHEMA " + quote_identifier(state.names().schemas.back().name) +
                           (chance(50) ? " CASCADE" : ""));
            }
            return;
        case 2:
        case 3:
            if (!state.tables().empty()) {
                const TableDefinition &table = *any(state.tables())->definition;
                return say("CREATE OR REPLACE VIEW v" + std::to_string(below(4)) + " AS SELECT count(*) AS n, " +
                           std::to_string(below(100)) + " AS x FROM " + qualified(table));
            }
            return;
        case 4:
            if (!state.names().views.empty())
                return say("DROP VIEW " + quote_identifier(any(state.names().views).name));
            return;
        case 5:
            if (!state.names().views.empty()) {
                return say("ALTER VIEW " + quote_identifier(any(state.names().views).name) + " RENAME TO " +
                           fresh("w"));
            }
            return;
        case 6:
            return say("CREATE OR REPLACE MACRO m" + std::to_string(below(3)) + "(a, b := 7) AS a + b + " +
                       std::to_string(below(9)));
        case 7:
            return say("CREATE OR REPLACE MACRO tm" + std::to_string(below(3)) +
                       "(n) AS TABLE SELECT i FROM range(n) r(i)");
        default:
            if (!state.names().macros.empty()) {
                const LakeMacro &macro = any(state.names().macros);
                const bool of_table = !macro.implementations.empty() && macro.implementations[0].type == "table";
                return say(std::string("DROP MACRO ") + (of_table ? "TABLE " : "") + quote_identifier(macro.name));
            }
    }
}

inline void RandomLake::maintain() {
    switch (below(8)) {
        case 0:
        case 1:
            return say("CALL ducklake_merge_adjacent_files('lake')");
        case 2:
            return say("CALL ducklake_rewrite_data_files('lake', delete_threshold => 0.01)");
        case 3:
        case 4:
            say("CALL ducklake_flush_inlined_data('lake')");
            for (const auto &client : clients_) lake_.attach_again(*client);
            without_inlining_.clear();
            return;
        case 5: {
            const std::string version = active_->value("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')");
            const uint64_t newest = std::stoull(version);
            if (chance(50)) return say("CALL ducklake_expire_snapshots('lake', older_than => now())");
            return say("CALL ducklake_expire_snapshots('lake', versions => [" + std::to_string(below(newest + 1)) +
                       ", " + std::to_string(below(newest + 1)) + "])");
        }
        case 6:
            return say("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)");
        default:
            // Not by set_option('data_inlining_row_limit'), which crashes where a lake has a view.
            if (chance(50)) {
                lake_.attach_again(*active_, ", DATA_INLINING_ROW_LIMIT 0");
                without_inlining_.insert(active_);
            } else {
                keep_rows_in_catalog();
            }
    }
}

inline void RandomLake::add_file(const TableDefinition &table) {
    const std::string path = lake_.dir() + "/" + fresh("foreign") + ".parquet";
    std::string list;
    for (const Column &column : columns_of(table)) {
        list +=
            (list.empty() ? "" : ", ") + expression(column.type, "i + 100") + " AS " + quote_identifier(column.name);
    }
    say("COPY (SELECT " + list + " FROM range(" + std::to_string(1 + below(50)) + ") r(i)) TO '" + path +
        "' (FORMAT parquet)");
    say("CALL ducklake_add_data_files('lake', " + quote_literal(table.name) + ", '" + path + "', schema => " +
        quote_literal(table.schema_name) + ")");
}

inline void RandomLake::transaction(const LakeState &state) {
    say("BEGIN");
    const uint64_t count = 1 + below(4);
    size_t chosen = 0;
    for (uint64_t i = 0; i < count; i++) {
        // Often the same again: what a transaction does to its own rows is where changes are easily missed.
        if (i == 0 || chance(50)) chosen = below(state.tables().size());
        const TableDefinition &table = *state.tables()[chosen]->definition;
        const uint64_t kind = below(10);
        if (kind < 7) {
            write(table);
        } else if (kind < 8) {
            create_table(state);
        } else if (i == 0 && !without_inlining_.contains(active_)) {
            // Nothing else: a write that makes a place for rows in the catalog counts the schema version up once more,
            // and the place of the altered table is lost to DuckLake. Neither two ALTER, of which SET PARTITIONED BY
            // and RENAME leave DuckLake with two of the table.
            alter(table);
            break;
        }
        // Another client commits meanwhile; on SQLite it would have to wait for this one.
        if (chance(10) && lake_.address().kind == MetadataAddress::Kind::postgres) {
            LakeClient *mine = active_;
            active_ = clients_[0].get() == mine ? clients_[1].get() : clients_[0].get();
            insert(*any(state.tables())->definition);
            active_ = mine;
        }
    }
    say(chance(75) ? "COMMIT" : "ROLLBACK");
    active_->run("ROLLBACK");  // what a failed statement left open
}

inline std::string RandomLake::step(const LakeState &state) {
    said_.clear();
    active_ = clients_[below(clients_.size())].get();
    const size_t tables = state.tables().size();
    const uint64_t kind = below(100);
    if (tables < 2 || (kind < 5 && tables < 12)) {
        create_table(state);
    } else if (kind < 8) {
        say("DROP TABLE " + qualified(*any(state.tables())->definition));
    } else if (kind < 50) {
        write(*any(state.tables())->definition);
    } else if (kind < 62) {
        keep_rows_in_catalog();
        alter(*any(state.tables())->definition);
    } else if (kind < 72) {
        names(state);
    } else if (kind < 86) {
        maintain();
    } else if (kind < 89) {
        add_file(*any(state.tables())->definition);
    } else {
        transaction(state);
    }
    return said_;
}

}  // namespace roost::testing
