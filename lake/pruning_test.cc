#include "lake/pruning.h"

#include <gtest/gtest.h>

#include "lake/stats_value.h"

namespace roost {
namespace {

struct File {
    uint64_t id;
    std::optional<std::string_view> min, max;
    uint64_t values = 10, nulls = 0;
    std::optional<bool> nan = std::nullopt;
};

TableState table_of(const std::string &type, const std::vector<File> &files) {
    auto definition = std::make_shared<TableDefinition>();
    definition->id = 1;
    definition->columns.push_back({.id = 1,
                                   .name = "c",
                                   .type = type,
                                   .initial_default = {},
                                   .default_value = {},
                                   .default_value_type = {},
                                   .default_value_dialect = {},
                                   .tags = {},
                                   .children = {}});
    SegmentPacker packer;
    for (const File &file : files) {
        Segment segment;
        segment.data_file_id = file.id;
        segment.record_count = file.values + file.nulls;
        segment.path = "f" + std::to_string(file.id);
        segment.format = "parquet";
        packer.add_file(1, segment);
    }
    for (const File &file : files) {
        packer.add_stats(file.id, {.column_id = 1,
                                   .value_count = file.values,
                                   .null_count = file.nulls,
                                   .size_bytes = 1,
                                   .min = file.min,
                                   .max = file.max,
                                   .extra = {},
                                   .contains_nan = file.nan});
    }
    auto data = std::make_shared<TableData>();
    data->segments = std::move(packer.take()[1]);
    return {.definition = std::move(definition), .data = std::move(data)};
}

using Ids = std::vector<uint64_t>;

Ids pruned(const TableState &table, Comparison comparison, const std::string &constant) {
    return prune(table, Predicate::compare(1, comparison, constant)).data_file_ids;
}

TEST(Pruning, ComparesNumbersAsNumbers) {
    const TableState table = table_of("int32", {{1, "-5", "9"}, {2, "10", "100"}, {3, "7", "7"}});
    EXPECT_EQ(pruned(table, Comparison::eq, "9"), (Ids{1}));
    EXPECT_EQ(pruned(table, Comparison::eq, "50"), (Ids{2}));
    EXPECT_EQ(pruned(table, Comparison::lt, "7"), (Ids{1}));
    EXPECT_EQ(pruned(table, Comparison::le, "7"), (Ids{1, 3}));
    EXPECT_EQ(pruned(table, Comparison::gt, "9"), (Ids{2}));
    EXPECT_EQ(pruned(table, Comparison::ge, "9"), (Ids{1, 2}));
    EXPECT_EQ(pruned(table, Comparison::ne, "7"), (Ids{1, 2}));
    EXPECT_EQ(prune(table, Predicate::in(1, {"8", "99"})).data_file_ids, (Ids{1, 2}));
    EXPECT_EQ(prune(table, Predicate::between(1, "101", "200")).data_file_ids, Ids{});
}

TEST(Pruning, ComparesEachTypeItsOwnWay) {
    EXPECT_EQ(pruned(table_of("decimal(12,2)", {{1, "9.50", "10.25"}}), Comparison::eq, "10.00"), (Ids{1}));
    EXPECT_EQ(pruned(table_of("decimal(12,2)", {{1, "9.50", "10.25"}}), Comparison::eq, "10.26"), Ids{});
    EXPECT_EQ(pruned(table_of("date", {{1, "2020-01-09", "2020-01-10"}}), Comparison::gt, "2020-01-10"), Ids{});
    EXPECT_EQ(pruned(table_of("timestamp", {{1, "2020-01-01 00:00:00", "2020-01-01 00:00:00.5"}}), Comparison::gt,
                     "2020-01-01 00:00:00.25"),
              (Ids{1}));
    EXPECT_EQ(pruned(table_of("timestamptz", {{1, "2020-01-01 00:00:00+00", "2020-01-01 10:00:00+00"}}), Comparison::gt,
                     "2020-01-01 13:00:00+04"),
              (Ids{1}));
    EXPECT_EQ(pruned(table_of("boolean", {{1, "false", "false"}, {2, "false", "true"}}), Comparison::eq, "true"),
              (Ids{2}));
    EXPECT_EQ(pruned(table_of("varchar", {{1, "a", "b"}, {2, "a10", "a9"}}), Comparison::gt, "a9"), (Ids{1}));
    EXPECT_EQ(pruned(table_of("int128", {{1, "-170141183460469231731", "99999999999999999999"}}), Comparison::gt,
                     "99999999999999999998"),
              (Ids{1}));
}

TEST(Pruning, NaNIsAboveEverything) {
    const TableState table = table_of(
        "float64", {{1, "0.0", "4.0", 10, 0, false}, {2, "0.0", "1.0", 10, 0, true}, {3, {}, {}, 10, 0, true}});
    EXPECT_EQ(pruned(table, Comparison::gt, "100"), (Ids{2, 3}));
    EXPECT_EQ(pruned(table, Comparison::eq, "nan"), (Ids{2, 3}));
    EXPECT_EQ(pruned(table, Comparison::lt, "nan"), (Ids{1, 2, 3}));
    EXPECT_EQ(pruned(table, Comparison::eq, "2"), (Ids{1, 3}));
}

TEST(Pruning, NullsAndUnknownsAreKeptWhereTheyMayMatch) {
    const TableState table = table_of("int32", {{1, {}, {}, 0, 5}, {2, "1", "2", 5, 0}, {3, "broken", "2", 5, 1}});
    EXPECT_EQ(pruned(table, Comparison::eq, "1"), (Ids{2, 3}));
    EXPECT_EQ(pruned(table, Comparison::eq, "no number"), (Ids{1, 2, 3}));
    EXPECT_EQ(prune(table, Predicate::is_null(1)).data_file_ids, (Ids{1, 3}));
    EXPECT_EQ(prune(table, Predicate::is_not_null(1)).data_file_ids, (Ids{2, 3}));
    EXPECT_EQ(prune(table, Predicate::any_of({Predicate::compare(1, Comparison::gt, "100"), Predicate::is_null(1)}))
                  .data_file_ids,
              (Ids{1, 3}));
    EXPECT_EQ(pruned(table_of("blob", {{1, "a", "b"}}), Comparison::eq, "z"), (Ids{1}));
    // Another column has no statistics here, as in a file from before it was added.
    EXPECT_EQ(prune(table, Predicate::compare(2, Comparison::eq, "1")).data_file_ids, (Ids{1, 2, 3}));
}

TEST(Pruning, CombinesPredicates) {
    const TableState table = table_of("int32", {{1, "0", "9"}, {2, "10", "19"}, {3, "20", "29"}});
    const auto less = Predicate::compare(1, Comparison::lt, "5"), more = Predicate::compare(1, Comparison::gt, "25");
    EXPECT_EQ(prune(table, Predicate::any_of({less, more})).data_file_ids, (Ids{1, 3}));
    EXPECT_EQ(prune(table, Predicate::all_of({less, more})).data_file_ids, Ids{});
    EXPECT_EQ(prune(table, Predicate::all_of({})).data_file_ids, (Ids{1, 2, 3}));
    EXPECT_EQ(prune(table, Predicate::any_of({})).data_file_ids, Ids{});
    EXPECT_EQ(prune(table, Predicate::any_of({less, Predicate::compare(2, Comparison::eq, "1")})).data_file_ids,
              (Ids{1, 2, 3}));
    const PrunedSegments some = prune(table, less);
    EXPECT_EQ(some.record_count, 10u);
}

// Values of the Iceberg specification, appendix B.
TEST(Bucket, HashesAsIcebergDoes) {
    constexpr uint32_t kMost = 0x7fffffff;
    EXPECT_EQ(bucket_of("int32", "34", kMost), 2017239379u);
    EXPECT_EQ(bucket_of("int64", "34", kMost), 2017239379u);
    EXPECT_EQ(bucket_of("decimal(9,2)", "0.34", kMost), 2017239379u);
    EXPECT_EQ(bucket_of("varchar", "iceberg", kMost), 1210000089u);
    EXPECT_EQ(bucket_of("date", "2017-11-16", kMost), static_cast<uint32_t>(-653330422) & kMost);
    EXPECT_EQ(bucket_of("timestamp", "2017-11-16 22:31:08", kMost), static_cast<uint32_t>(-2047944441) & kMost);
    EXPECT_EQ(bucket_of("blob", "x", kMost), std::nullopt);
}

}  // namespace
}  // namespace roost
