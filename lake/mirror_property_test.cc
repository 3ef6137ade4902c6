// The mirror against the truth: after each step of a lake's random life the mirror that was brought forward is compared
// with one that was just loaded and with what DuckLake itself answers. ROOST_MIRROR_STEPS and ROOST_MIRROR_SEED make a
// longer or another run; the seed of a failure is in its message.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>

#include "lake/frozen_catalog.h"
#include "lake/mirror.h"
#include "lake/pruning.h"
#include "lake/test_random_lake.h"

namespace roost {
namespace {

using testing::LakeClient;
using testing::RandomLake;
using testing::TestLake;
using testing::TextRows;

CallLimits soon() { return CallLimits::in(std::chrono::seconds(60)); }

uint64_t setting(const char *name, uint64_t otherwise) {
    const char *value = getenv(name);
    return value == nullptr ? otherwise : std::stoull(value);
}

std::string text(const std::optional<uint64_t> &number) { return number ? std::to_string(*number) : "NULL"; }

TextRows sorted(TextRows rows) {
    std::sort(rows.begin(), rows.end());
    return rows;
}

// Where the time of a run went, by what was done: seconds of wall-clock, for people.
std::map<std::string, double> spent_s;

class Spent {
public:
    explicit Spent(const char *on) : on_(on), began_(std::chrono::steady_clock::now()) {}
    ~Spent() { spent_s[on_] += std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(); }
    Spent(const Spent &) = delete;
    Spent &operator=(const Spent &) = delete;

private:
    const char *on_;
    std::chrono::steady_clock::time_point began_;
};

// First place where two texts of many lines differ.
std::string difference(const std::string &a, const std::string &b) {
    size_t at = 0;
    while (at < a.size() && at < b.size() && a[at] == b[at]) at++;
    const size_t line = a.rfind('\n', at) == std::string::npos ? 0 : a.rfind('\n', at) + 1;
    const auto cut = [&](const std::string &of) {
        return line < of.size() ? of.substr(line, of.find('\n', at) - line) : "";
    };
    return "brought forward: " + cut(a) + "\nloaded:          " + cut(b);
}

// One read transaction for several questions: DuckLake looks up its snapshot, and connects to its catalog, once.
class AtOnce {
public:
    explicit AtOnce(LakeClient &client) : client_(client) { client_.must("BEGIN"); }
    ~AtOnce() { client_.run("ROLLBACK"); }  // there is nothing to commit
    AtOnce(const AtOnce &) = delete;
    AtOnce &operator=(const AtOnce &) = delete;

private:
    LakeClient &client_;
};

class Judgement {
public:
    Judgement(const LakeState &state, LakeClient &client) : state_(state), client_(client) {}

    void table_info() {
        TextRows mine;
        for (const auto &table : state_.tables()) {
            const SegmentList &segments = table->data->segments;
            mine.push_back({table->definition->name, std::to_string(table->definition->schema_id),
                            std::to_string(table->id()), table->definition->uuid, std::to_string(segments.size()),
                            std::to_string(segments.file_size_bytes())});
        }
        mine = sorted(std::move(mine));
        TextRows theirs = sorted(client_.rows("FROM ducklake_table_info('lake')"));
        // DuckLake counts delete files there whose data file has ended as well; files() compares those that matter.
        for (TextRows *rows : {&mine, &theirs}) {
            for (auto &row : *rows) row.resize(6);
        }
        EXPECT_EQ(mine, theirs);
    }
    void snapshot() {
        const TextRows theirs = client_.rows(
            "SELECT snapshot_id, epoch_us(snapshot_time), schema_version FROM ducklake_snapshots('lake') ORDER BY "
            "snapshot_id DESC LIMIT 1");
        const LakeSnapshot &mine = state_.snapshot();
        EXPECT_EQ(
            theirs,
            (TextRows{{std::to_string(mine.id), std::to_string(mine.time_us), std::to_string(mine.schema_version)}}));
    }
    void names() {
        TextRows columns, views, macros;
        for (const auto &table : state_.tables()) {
            for (const LakeColumn &column : table->definition->columns) {
                columns.push_back({table->definition->schema_name, table->definition->name, column.name,
                                   column.nulls_allowed ? "true" : "false"});
            }
        }
        for (const LakeView &view : state_.names().views)
            views.push_back({state_.schema(view.schema_id)->name, view.name});
        for (const LakeMacro &macro : state_.names().macros)
            macros.push_back({state_.schema(macro.schema_id)->name, macro.name});
        EXPECT_EQ(
            sorted(columns),
            sorted(client_.rows("SELECT schema_name, table_name, column_name, is_nullable FROM duckdb_columns() JOIN "
                                "duckdb_tables() USING (database_name, schema_name, table_name) WHERE "
                                "database_name = 'lake'")));
        EXPECT_EQ(sorted(views), sorted(client_.rows("SELECT schema_name, view_name FROM duckdb_views() WHERE "
                                                     "database_name = 'lake' AND NOT internal")));
        EXPECT_EQ(sorted(macros),
                  sorted(client_.rows("SELECT DISTINCT schema_name, function_name FROM duckdb_functions() "
                                      "WHERE database_name = 'lake' AND NOT internal")));
    }
    // False when DuckLake lists a file of the past twice.
    bool files(const TableState &table, const std::string &at = "") {
        TextRows mine;
        table.data->segments.for_each([&](const Segment &segment, const SegmentDeletes *deletes) {
            const DeleteFile *file = deletes != nullptr && deletes->file ? &*deletes->file : nullptr;
            mine.push_back(
                {table.resolve(segment.path, segment.path_is_relative), std::to_string(segment.file_size_bytes),
                 text(segment.footer_size_bytes), file ? table.resolve(file->path, file->path_is_relative) : "NULL",
                 file ? std::to_string(file->file_size_bytes) : "NULL", file ? text(file->footer_size_bytes) : "NULL"});
        });
        TextRows theirs = client_.rows(
            "SELECT data_file, data_file_size_bytes, data_file_footer_size, delete_file, delete_file_size_bytes, "
            "delete_file_footer_size FROM ducklake_list_files('lake', " +
            quote_literal(table.definition->name) + ", schema => " + quote_literal(table.definition->schema_name) + at +
            ")");
        const size_t listed = theirs.size();
        if (!at.empty()) leave_out_doubled(mine, theirs);
        EXPECT_EQ(sorted(mine), sorted(theirs)) << table.definition->name << at;
        return theirs.size() == listed;
    }
    void rows(const TableState &table) {
        EXPECT_EQ(std::to_string(table.data->live_rows()), client_.value("SELECT count(*) FROM " + name(table)))
            << name(table);
    }
    // A comparison with one column: as many files as DuckLake reads, and all that hold matching rows.
    void pruning(const TableState &table, const LakeColumn &column, const std::string &literal, uint64_t which) {
        static constexpr std::pair<const char *, Comparison> kComparisons[] = {
            {" = ", Comparison::eq}, {" < ", Comparison::lt},  {" <= ", Comparison::le},
            {" > ", Comparison::gt}, {" >= ", Comparison::ge}, {" <> ", Comparison::ne}};
        const auto &[sql, comparison] = kComparisons[which % 6];
        const std::string constant = client_.value("SELECT (" + literal + ")::VARCHAR");
        if (constant == "NULL") return;
        const std::string where = name(table) + " WHERE " + quote_identifier(column.name) + sql + literal;
        const PrunedSegments pruned = prune(table, Predicate::compare(column.id, comparison, constant));
        std::set<std::string> paths;
        for (const uint64_t id : pruned.data_file_ids) {
            const auto segment = table.data->segments.find(id);
            paths.insert(table.resolve(segment->path, segment->path_is_relative));
        }
        for (const auto &row : client_.rows("SELECT DISTINCT filename FROM " + where)) {
            if (row[0].ends_with(".parquet")) EXPECT_TRUE(paths.contains(row[0])) << where << "\n" << row[0];
        }
        const TextRows profile = client_.rows("EXPLAIN ANALYZE SELECT * FROM " + where);
        if (profile.empty()) return;  // it has failed, and that is noted
        const auto read = files_read(profile[0][1]);
        // Nothing was scanned: the statistics of the whole table had the answer.
        if (!read) return;
        if (loses_rows(table) || widened(table, column)) {
            EXPECT_GE(pruned.data_file_ids.size(), *read) << where;
        } else {
            EXPECT_EQ(pruned.data_file_ids.size(), *read) << where << "\n" << profile[0][1] << "\n" << describe(table);
        }
        compared_pruning++;
    }
    static inline int compared_pruning = 0;

    static std::string name(const TableState &table) {
        return "lake." + quote_identifier(table.definition->schema_name) + "." +
               quote_identifier(table.definition->name);
    }

private:
    // After a flush DuckLake may know two delete files of one data file for a snapshot of the past, and then lists (and
    // reads) that file twice. The mirror has one of them.
    static void leave_out_doubled(TextRows &mine, TextRows &theirs) {
        std::map<std::string, int> seen;
        for (const auto &row : theirs) seen[row[0]]++;
        for (TextRows *rows : {&mine, &theirs}) {
            std::erase_if(*rows, [&](const auto &row) { return seen[row[0]] > 1; });
        }
    }
    static std::optional<size_t> files_read(const std::string &profile) {
        std::optional<size_t> files;
        for (const char *what : {"Total Files Read:", "Total Files Skipped:"}) {
            const size_t at = profile.find(what);
            if (at == std::string::npos) continue;
            // The number may stand on the next line of the box.
            files = files.value_or(0) + std::stoull(profile.substr(profile.find_first_of("0123456789", at)));
        }
        return files;
    }
    // DuckLake's bucket pruning leaves out files that are older than the partitioning.
    static bool loses_rows(const TableState &table) {
        if (!table.definition->partition) return false;
        bool older = false;
        table.data->segments.for_each([&](const Segment &segment, const SegmentDeletes *) {
            older = older || segment.partition_id != table.definition->partition->id;
        });
        return older;
    }

    // A FLOAT column became DOUBLE after files were written: `prune` does not trust the bounds of theirs, DuckLake
    // does.
    static bool widened(const TableState &table, const LakeColumn &column) {
        if (!column.type.starts_with("float")) return false;
        bool older = false;
        table.data->segments.for_each([&](const Segment &segment, const SegmentDeletes *) {
            older = older || segment.begin_snapshot < column.begin_snapshot;
        });
        return older;
    }

    const LakeState &state_;
    LakeClient &client_;
};

class Property {
public:
    Property(testing::TestPostgres *server, uint64_t seed)
        : lake_(server), life_(lake_, seed), mirror_(lake_.address()), judge_(lake_.client()) {
        auto writer = FrozenCatalogWriter::open(
            {.address = lake_.address(), .extension_dir = std::string(deps::kBuildTreeExtensionDir)});
        EXPECT_TRUE(writer.ok()) << writer.status().to_string();
        frozen_ = std::move(writer).value();
    }

    void run(uint64_t steps) {
        auto state = mirror_.refresh(soon());
        ASSERT_TRUE(state.ok()) << state.status().to_string();
        for (uint64_t i = 0; i < steps && !::testing::Test::HasFailure(); i++) {
            if (i > 0 && i % 100 == 0) progress(i, **state);
            const std::string said = [&] {
                const Spent spent("the life");
                return life_.step(**state);
            }();
            SCOPED_TRACE("step " + std::to_string(i) + ": " + said.substr(0, 1500));
            const StatePtr before = *state;
            state = [&] {
                const Spent spent("the mirror");
                return mirror_.refresh(soon());
            }();
            ASSERT_TRUE(state.ok()) << state.status().to_string();
            check(*before, **state, said);
        }
    }
    void print() {
        const MirrorCounts counts = mirror_.counts();
        std::cout << life_.statements() << " statements, " << life_.failed() << " refused; " << counts.checks
                  << " checks, " << counts.advances << " brought forward, " << counts.loads << " loaded, "
                  << counts.past_loads << " of the past, " << Judgement::compared_pruning << " prunings compared, "
                  << frozen_count_ << " frozen catalogs; " << stale_judge_
                  << " answers of the past that DuckLake itself gave differently when attached again; "
                  << wrong_statistics_ << " tables whose bounds DuckLake has wrong\n";
        if (getenv("ROOST_MIRROR_ERRORS") == nullptr) return;
        for (const auto &[error, count] : life_.errors()) std::cout << count << "  " << error << "\n";
    }
    const RandomLake &life() const { return life_; }
    MirrorCounts counts() const { return mirror_.counts(); }

private:
    using StatePtr = std::shared_ptr<const LakeState>;

    // How fast it goes, and how large the lake is: a run that slows down shows why.
    void progress(uint64_t steps, const LakeState &state) {
        size_t segments = 0;
        for (const auto &table : state.tables()) segments += table->data->segments.size();
        std::cout << steps << " steps; " << state.tables().size() << " tables, " << segments << " segments, snapshot "
                  << state.snapshot().id << ", " << describe(state).size();
        for (const auto &[on, seconds] : spent_s) std::cout << "; " << on << " " << static_cast<int>(seconds) << " s";
        std::cout << std::endl;
    }
    void check(const LakeState &before, const LakeState &state, const std::string &said) {
        check_loaded(state);
        LakeClient &client = *judge_;
        // DuckLake's client keeps bounds of the type that the column had, and fails on them or answers by them.
        if (said.find("SET DATA TYPE") != std::string::npos) lake_.attach_again(client);
        check_answers(before, state, client, said);
        if (!state.tables().empty()) check_pruning(state, client);
        if (life_.below(4) == 0) check_past(client);
        if (life_.below(6) == 0) check_frozen(state, client);
    }
    void check_loaded(const LakeState &state) {
        const Spent spent("loading anew");
        LakeMirror fresh(lake_.address());
        const auto loaded = fresh.refresh(soon());
        ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
        const std::string mine = describe(state), theirs = describe(**loaded);
        ASSERT_EQ(mine == theirs, true) << difference(mine, theirs);
    }
    void check_answers(const LakeState &before, const LakeState &state, LakeClient &client, const std::string &said) {
        const Spent spent("DuckLake's answers");
        if (said.find("flush") != std::string::npos) lake_.attach_again(client);
        const AtOnce once(client);
        Judgement judgement(state, client);
        judgement.snapshot();
        judgement.table_info();
        if (before.snapshot().schema_version != state.snapshot().schema_version) judgement.names();
        for (const auto &table : state.tables()) {
            if (before.table(table->id()) == table) continue;
            judgement.files(*table);
            judgement.rows(*table);
        }
    }
    static std::string sum(const std::string &table) {
        return "SELECT count(*), sum(hash(COLUMNS(*))::HUGEINT) FROM " + table;
    }
    static std::string bounds(const std::string &table) {
        return "SELECT min(COLUMNS(*)), max(COLUMNS(*)) FROM " + table;
    }
    // DuckLake answers these from the statistics of the whole table where it can, and a frozen catalog has the same.
    // They were narrower than the rows before now: then both are wrong alike, and that is told.
    TextRows bounds_of_statistics(const std::string &table, const TextRows &said, const TextRows &rows) {
        wrong_statistics_++;
        std::cout << "DuckLake's own statistics of " << table << " are not those of its rows:";
        for (size_t i = 0; said.size() == 1 && rows.size() == 1 && i < std::min(said[0].size(), rows[0].size()); i++) {
            if (said[0][i] != rows[0][i]) std::cout << " [" << said[0][i] << "] for [" << rows[0][i] << "] of " << i;
        }
        std::cout << std::endl;
        const auto anew = lake_.client();
        return anew->rows(bounds(table));
    }
    // What DuckLake says of the rows of `table`: sum() and bounds() in one scan, so that no statistics answer it.
    std::pair<TextRows, TextRows> truth(const std::string &table, LakeClient &client) {
        TextRows both = client.rows(
            "SELECT count(*), sum(hash(COLUMNS(*))::HUGEINT), min(COLUMNS(*)), max(COLUMNS(*)) FROM " + table);
        if (both.size() != 1) return {};
        const auto middle = both[0].begin() + static_cast<long>((both[0].size() - 1) / 3 + 1);
        return {{{both[0].begin(), middle}}, {{middle, both[0].end()}}};
    }
    void check_frozen(const LakeState &state, LakeClient &client) {
        const Spent spent("frozen catalogs");
        const std::string path = lake_.dir() + "/frozen.ducklake";
        const auto written = frozen_->write(state, std::nullopt, path, soon());
        ASSERT_TRUE(written.ok()) << written.status().to_string();
        EXPECT_EQ(written->tables, state.tables().size());
        std::vector<std::pair<TextRows, TextRows>> truths;
        {
            const AtOnce once(client);
            for (const auto &table : state.tables()) truths.push_back(truth(Judgement::name(*table), client));
        }
        client.must("ATTACH 'ducklake:" + path + "' AS frozen (READ_ONLY)");
        {
            const AtOnce once(client);
            for (size_t i = 0; i < truths.size(); i++) {
                const std::string name = Judgement::name(*state.tables()[i]), twin = "frozen" + name.substr(4);
                EXPECT_EQ(client.rows(sum(twin)), truths[i].first) << name;
                const TextRows ends = client.rows(bounds(twin));
                if (ends != truths[i].second) {
                    EXPECT_EQ(ends, bounds_of_statistics(name, ends, truths[i].second)) << name;
                }
            }
        }
        for (const LakeView &view : state.names().views) check_view(quote_identifier(view.name), client);
        const std::string macros =
            "SELECT DISTINCT schema_name, function_name FROM duckdb_functions() WHERE NOT internal AND database_name "
            "= ";
        EXPECT_EQ(sorted(client.rows(macros + "'frozen'")), sorted(client.rows(macros + "'lake'")));
        client.must("DETACH frozen");
        if (!state.tables().empty()) check_parts(*state.tables()[life_.below(state.tables().size())], state, client);
        frozen_count_++;
    }
    // A view may name what was dropped since: then it fails in both.
    void check_view(const std::string &view, LakeClient &client) {
        const std::string live = client.run("SELECT * FROM lake.main." + view);
        client.must("USE frozen");
        const std::string frozen = client.run("SELECT * FROM frozen.main." + view);
        client.must("USE lake");
        EXPECT_EQ(live.empty(), frozen.empty()) << view << "\n" << live << "\n" << frozen;
    }
    // Two halves of a table's segments, the rows of the catalog in one of them, sum up to the whole.
    void check_parts(const TableState &table, const LakeState &state, LakeClient &client) {
        std::vector<FrozenTable> halves(2, {.table_id = table.id(), .data_file_ids = std::vector<uint64_t>()});
        size_t count = 0;
        table.data->segments.for_each([&](const Segment &segment, const SegmentDeletes *) {
            halves[count++ % 2].data_file_ids->push_back(segment.data_file_id);
        });
        halves[1].inlined_rows = false;
        const std::string name = Judgement::name(table);
        std::string parts;
        for (size_t i = 0; i < 2; i++) {
            const std::string half = "half" + std::to_string(i), path = lake_.dir() + "/" + half + ".ducklake";
            const auto written = frozen_->write(state, std::vector{halves[i]}, path, soon());
            ASSERT_TRUE(written.ok()) << written.status().to_string();
            EXPECT_EQ(written->segments, halves[i].data_file_ids->size());
            client.must("ATTACH 'ducklake:" + path + "' AS " + half + " (READ_ONLY)");
            parts += (i == 0 ? "(SELECT * FROM " : " UNION ALL SELECT * FROM ") + half + name.substr(4);
        }
        parts += ") parts";
        const auto [sums, ends] = truth(name, client);
        EXPECT_EQ(client.rows(sum(parts)), sums) << name;
        EXPECT_EQ(client.rows(bounds(parts)), ends) << name;
        client.must("DETACH half0");
        client.must("DETACH half1");
    }
    void check_pruning(const LakeState &state, LakeClient &client) {
        const Spent spent("pruning");
        const TableState &table = *state.tables()[life_.below(state.tables().size())];
        if (table.data->segments.size() == 0) return;
        const auto columns = RandomLake::columns_of(*table.definition);
        const uint64_t which = life_.below(columns.size());
        const std::string &type = columns[which].type;
        if (type.starts_with("STRUCT") || type == "INTEGER[]" || type == "BLOB") return;
        Judgement(state, client).pruning(table, table.definition->columns[which], life_.literal(type), life_.below(6));
    }
    void check_past(LakeClient &client) {
        const Spent spent("the past");
        const TextRows snapshots =
            client.rows("SELECT snapshot_id, epoch_us(snapshot_time) FROM ducklake_snapshots('lake')");
        const auto &chosen = snapshots[life_.below(snapshots.size())];
        const uint64_t id = std::stoull(chosen[0]);
        const auto names = mirror_.at(id, {}, soon());
        ASSERT_TRUE(names.ok()) << names.status().to_string();
        if ((*names)->tables().empty()) return;
        const TableDefinition &table = *(*names)->tables()[life_.below((*names)->tables().size())]->definition;
        const std::vector<TableName> wanted{{.schema = table.schema_name, .name = table.name}};
        const auto state = mirror_.at_time(std::stoll(chosen[1]), wanted, soon());
        ASSERT_TRUE(state.ok()) << state.status().to_string();
        ASSERT_EQ((*state)->snapshot().id, id);
        const TableState &past = *(*state)->table(table.id);
        if (!Judgement(**state, client).files(past, ", snapshot_version => " + chosen[0])) return;
        const std::string path = lake_.dir() + "/past.ducklake";
        const auto written = frozen_->write(
            **state, std::vector<FrozenTable>{{.table_id = table.id, .data_file_ids = {}}}, path, soon());
        ASSERT_TRUE(written.ok()) << written.status().to_string();
        client.must("ATTACH 'ducklake:" + path + "' AS past (READ_ONLY)");
        const std::string name = Judgement::name(past), then = sum(name + " AT (VERSION => " + chosen[0] + ")");
        const TextRows mine = client.rows(sum("past" + name.substr(4)));
        TextRows theirs = client.rows(then);
        if (mine != theirs) {
            // Shapes of the past stay in an instance's memory, and not always rightly: one that reads anew has the
            // word.
            lake_.attach_again(client);
            theirs = client.rows(then);
            stale_judge_++;
        }
        EXPECT_EQ(mine, theirs) << name << " at " << chosen[0];
        client.must("DETACH past");
    }

    TestLake lake_;
    RandomLake life_;
    LakeMirror mirror_;
    std::unique_ptr<LakeClient> judge_;
    std::unique_ptr<FrozenCatalogWriter> frozen_;
    int frozen_count_ = 0;
    int stale_judge_ = 0;
    int wrong_statistics_ = 0;
};

void run(testing::TestPostgres *server, uint64_t steps) {
    const uint64_t seed = setting("ROOST_MIRROR_SEED", 1);
    steps = setting("ROOST_MIRROR_STEPS", steps);
    SCOPED_TRACE("ROOST_MIRROR_SEED=" + std::to_string(seed));
    Property property(server, seed);
    property.run(steps);
    property.print();
    // A life in which little works, or a mirror that never brings itself forward, would show nothing.
    EXPECT_LT(property.life().failed() * 4, property.life().statements());
    EXPECT_GT(property.counts().advances, property.counts().loads * 2);
}

TEST(MirrorProperty, IsRightAfterEachStepOnSqlite) { run(nullptr, 36); }

TEST(MirrorProperty, IsRightAfterEachStepOnPostgres) {
    const auto server = testing::TestPostgres::start();
    if (!server) GTEST_SKIP() << "no Postgres on this machine";
    run(server.get(), 18);
}

}  // namespace
}  // namespace roost
