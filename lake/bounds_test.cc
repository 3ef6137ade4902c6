#include "lake/bounds.h"

#include <gtest/gtest.h>

namespace roost {
namespace {

struct File {
    std::optional<std::string_view> min, max;
    uint64_t rows = 10;
    std::optional<uint64_t> nulls = 0;
    std::optional<bool> nan = false;
    bool silent = false;  // no statistics at all
    uint64_t begin_snapshot = 5;
};

TableState table_of(const std::string &type, const std::vector<File> &files, std::optional<std::string> initial = {}) {
    auto definition = std::make_shared<TableDefinition>();
    LakeColumn column;
    column.id = 1;
    column.begin_snapshot = 3;
    column.name = "c";
    column.type = type;
    column.initial_default = std::move(initial);
    definition->columns.push_back(std::move(column));
    SegmentPacker packer;
    uint64_t id = 0, rows = 0;
    for (const File &file : files) {
        Segment segment;
        segment.data_file_id = ++id;
        segment.begin_snapshot = file.begin_snapshot;
        segment.record_count = file.rows;
        segment.path = "f" + std::to_string(id);
        segment.format = "parquet";
        packer.add_file(1, segment);
        rows += file.rows;
    }
    id = 0;
    for (const File &file : files) {
        SegmentStats stats;
        stats.column_id = 1;
        stats.null_count = file.nulls;
        stats.min = file.min;
        stats.max = file.max;
        stats.contains_nan = file.nan;
        ++id;
        if (!file.silent) packer.add_stats(id, stats);
    }
    auto data = std::make_shared<TableData>();
    data->segments = std::move(packer.take()[1]);
    data->stats.emplace();
    data->stats->record_count = rows + 1;  // a row was deleted once
    return {.definition = std::move(definition), .data = std::move(data)};
}

TableColumnStats stats_of(std::optional<std::string> min, std::optional<std::string> max) {
    TableColumnStats stats;
    stats.column_id = 1;
    stats.contains_null = stats.contains_nan = false;
    stats.min = std::move(min);
    stats.max = std::move(max);
    return stats;
}

bool bounded(const TableColumnStats &stats) {
    EXPECT_EQ(stats.min.has_value(), stats.max.has_value());
    return stats.min.has_value();
}

TEST(Bounds, ThoseThatHoldStay) {
    const TableColumnStats stats = stats_of("-5", "100");
    EXPECT_EQ(held_stats(table_of("int32", {{"-5", "9"}, {"10", "100"}}), stats), stats);
    EXPECT_EQ(held_stats(table_of("int32", {{"0", "9"}}), stats), stats) << "wider is no fault";
    EXPECT_EQ(held_stats(table_of("int32", {}), stats), stats);
    EXPECT_EQ(held_stats(table_of("varchar", {{"b", "c"}, {"a", "b"}}), stats_of("a", "c")), stats_of("a", "c"));
}

TEST(Bounds, ThoseThatLeaveOutAFileGo) {
    EXPECT_FALSE(bounded(held_stats(table_of("int32", {{"0", "99"}, {"101", "101"}}), stats_of("101", "101"))));
    EXPECT_FALSE(bounded(held_stats(table_of("int32", {{"9", "10"}}), stats_of("9", "9"))));
    EXPECT_TRUE(bounded(held_stats(table_of("int32", {{"9", "10"}}), stats_of("9", "10")))) << "as numbers";
    EXPECT_FALSE(bounded(held_stats(table_of("varchar", {{"9", "10"}}), stats_of("x", "y"))));
}

TEST(Bounds, AFileWithValuesThatSaysNothingOfThemTakesThemAway) {
    const TableColumnStats stats = stats_of("0", "9");
    EXPECT_FALSE(bounded(held_stats(table_of("int32", {{.silent = true}, {"0", "9"}}), stats)));
    EXPECT_FALSE(bounded(held_stats(table_of("int32", {{.nulls = std::nullopt}, {"0", "9"}}), stats)));
    EXPECT_TRUE(bounded(held_stats(table_of("int32", {{.rows = 10, .nulls = 10}, {"0", "9"}}), stats))) << "all NULL";
    EXPECT_TRUE(bounded(held_stats(table_of("int32", {{.rows = 0, .silent = true}, {"0", "9"}}), stats)));
}

TEST(Bounds, AColumnThatCameLaterIsNullInOlderFilesOrHasItsDefault) {
    const std::vector<File> files = {{.silent = true, .begin_snapshot = 2}, {"0", "9"}};
    const TableColumnStats held = held_stats(table_of("int32", files), stats_of("0", "9"));
    EXPECT_TRUE(bounded(held));
    EXPECT_EQ(held.contains_null, std::nullopt);
    EXPECT_FALSE(bounded(held_stats(table_of("int32", files, "17"), stats_of("0", "9"))));
}

TEST(Bounds, NoNullAndNoNanAreHeldAgainstEachFile) {
    EXPECT_EQ(held_stats(table_of("float64", {{"0", "9", 10, 1}}), stats_of("0", "9")).contains_null, std::nullopt);
    EXPECT_EQ(held_stats(table_of("float64", {{"0", "9", 10, 0, true}}), stats_of("0", "9")).contains_nan,
              std::nullopt);
    EXPECT_EQ(held_stats(table_of("float64", {{"0", "9", 10, 0}}), stats_of("0", "9")), stats_of("0", "9"));
}

// DuckLake's rule is that as many rows are there as were ever inserted.
TEST(Bounds, ThoseOfRowsThatAreGoneDoNotAnswerMinAndMax) {
    TableState table = table_of("int32", {{"3", "9"}});
    EXPECT_TRUE(bounded(held_stats(table, stats_of("0", "9"))));
    auto data = std::make_shared<TableData>(*table.data);
    data->stats->record_count = 10;
    table.data = data;
    EXPECT_FALSE(bounded(held_stats(table, stats_of("0", "9"))));
    EXPECT_TRUE(bounded(held_stats(table, stats_of("3", "9"))));
}

TEST(Bounds, WhatCannotBeComparedIsNotTold) {
    EXPECT_FALSE(bounded(held_stats(table_of("int32", {{"3", "9"}}), stats_of("x", "y"))));
    EXPECT_FALSE(bounded(held_stats(table_of("hugetype", {{"3", "9"}}), stats_of("3", "9"))));
    TableColumnStats other = stats_of("3", "9");
    other.column_id = 77;
    EXPECT_FALSE(bounded(held_stats(table_of("int32", {{"3", "9"}}), other)));
}

}  // namespace
}  // namespace roost
