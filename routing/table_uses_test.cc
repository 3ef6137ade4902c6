// Names to tables: against a lake's state made by hand and DuckDB's parser.
#include "routing/table_uses.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace roost::routing {
namespace {

std::shared_ptr<const TableState> table(uint64_t id, const std::string &schema, const std::string &name,
                                        std::vector<uint64_t> segments_bytes) {
    auto definition = std::make_shared<TableDefinition>();
    definition->id = id;
    definition->schema_id = schema == "main" ? 0 : 1;
    definition->schema_name = schema;
    definition->name = name;
    auto data = std::make_shared<TableData>();
    SegmentPacker packer;
    for (size_t i = 0; i < segments_bytes.size(); ++i) {
        Segment segment;
        segment.data_file_id = 100 * id + i;
        segment.file_size_bytes = segments_bytes[i];
        segment.path = "f.parquet";
        segment.format = "parquet";
        packer.add_file(id, segment);
    }
    data->segments = packer.take()[id];
    auto state = std::make_shared<TableState>();
    state->definition = definition;
    state->data = data;
    return state;
}

LakeState::Tables some_tables() {
    return {table(1, "main", "orders", {100, 200}), table(2, "main", "lines", {50}), table(3, "sales", "orders", {7})};
}

std::shared_ptr<const LakeState> lake(uint64_t snapshot, LakeState::Tables tables) {
    auto names = std::make_shared<LakeNames>();
    names->schemas = {{0, "", "main", {}, true, ""}, {1, "", "sales", {}, true, ""}};
    const auto view = [&](uint64_t id, uint64_t schema, const std::string &name, const std::string &sql) {
        LakeView made;
        made.id = id;
        made.schema_id = schema;
        made.name = name;
        made.dialect = "duckdb";
        made.sql = sql;
        names->views.push_back(made);
    };
    view(10, 0, "joined", "SELECT * FROM orders JOIN lines USING (id)");
    view(11, 1, "inner_orders", "SELECT * FROM orders");
    view(12, 0, "loop", "SELECT * FROM loop");
    view(13, 0, "outer_view", "SELECT * FROM joined, sales.inner_orders");
    const auto macro = [&](const std::string &name, const std::string &type, std::vector<std::string> texts) {
        LakeMacro made;
        made.id = 20 + names->macros.size();
        made.name = name;
        for (std::string &text : texts) made.implementations.push_back({"duckdb", std::move(text), type, {}});
        names->macros.push_back(made);
    };
    macro("largest", "scalar", {"((SELECT max(id) FROM orders) + x)"});
    macro("few", "table", {"SELECT * FROM lines WHERE (id > x)"});
    macro("either", "scalar", {"(x + 1)", "(largest(x) + (SELECT count(*) FROM joined))"});
    macro("round_about", "scalar", {"(round_about(x) + round_about(x + 1))"});
    LakeSnapshot at;
    at.id = snapshot;
    return std::make_shared<LakeState>(at, "", false, names, std::move(tables));
}

class TableUses : public testing::Test {
protected:
    std::vector<uint64_t> ids(const std::string &text, NameScope scope = {"lake", {}}) {
        const auto parsed = sql::parse(text);
        EXPECT_TRUE(parsed.ok()) << parsed.status().message();
        found = find_table_uses(
            parsed->front(), scope, states, [](const std::string &view) { return sql::parse(view); }, epochs);
        std::vector<uint64_t> tables;
        for (const auto &use : found.uses) tables.push_back(use.table);
        std::ranges::sort(tables);
        return tables;
    }
    LakeStates states{{"lake", lake(5, some_tables())}, {"other", lake(2, {table(9, "main", "orders", {1})})}};
    TableEpochs epochs;
    FoundTables found;
};

using Ids = std::vector<uint64_t>;

TEST_F(TableUses, NamesAreResolvedAsTheEngineDoes) {
    EXPECT_EQ(ids("SELECT * FROM orders"), Ids{1});
    EXPECT_EQ(ids("SELECT * FROM ORDERS"), Ids{1});
    EXPECT_EQ(ids("SELECT * FROM public.orders"), Ids{1});
    EXPECT_EQ(ids("SELECT * FROM sales.orders"), Ids{3});
    EXPECT_EQ(ids("SELECT * FROM orders", {"lake", {"sales", "main"}}), Ids{3});
    EXPECT_EQ(ids("SELECT * FROM lines", {"lake", {"sales", "main"}}), Ids{2});
    EXPECT_EQ(ids("SELECT * FROM other.orders"), Ids{9});
    EXPECT_EQ(ids("SELECT * FROM other.main.orders"), Ids{9});
    EXPECT_EQ(ids("SELECT * FROM nowhere, range(3), nowhere.at.all"), Ids{});
    EXPECT_EQ(ids("SELECT 1"), Ids{});
}

TEST_F(TableUses, ViewsAreExpandedWhereTheyAre) {
    EXPECT_EQ(ids("SELECT * FROM joined"), (Ids{1, 2}));
    EXPECT_EQ(ids("SELECT * FROM sales.inner_orders"), Ids{3});
    EXPECT_EQ(ids("SELECT * FROM outer_view JOIN orders USING (id)"), (Ids{1, 2, 3})) << "each table once";
    EXPECT_EQ(ids("SELECT * FROM loop"), Ids{});
}

TEST_F(TableUses, MacrosAreExpandedToo) {
    EXPECT_EQ(ids("SELECT largest(3)"), Ids{1});
    EXPECT_EQ(ids("SELECT * FROM lines WHERE id = MAIN.Largest(3)"), (Ids{1, 2}));
    EXPECT_EQ(ids("SELECT * FROM few(1)"), Ids{2});
    EXPECT_EQ(ids("SELECT lake.main.either(1, 2)"), (Ids{1, 2})) << "and what they call";
    EXPECT_EQ(ids("SELECT sales.largest(3), nowhere.largest(3), no_such(1)"), Ids{});
    EXPECT_EQ(ids("SELECT largest(3)", {"other", {}}), Ids{9}) << "its own macro, its own table";
    EXPECT_EQ(ids("INSERT INTO lines SELECT largest(3)"), (Ids{1, 2}));
    for (const auto &use : found.uses) EXPECT_EQ(use.written, use.table == 2);
    EXPECT_EQ(ids("SELECT round_about(1)"), Ids{}) << "it ends";
}

TEST_F(TableUses, WhatIsWrittenIsSaid) {
    EXPECT_EQ(ids("INSERT INTO lines SELECT id FROM orders"), (Ids{1, 2}));
    for (const auto &use : found.uses) EXPECT_EQ(use.written, use.table == 2);
}

TEST_F(TableUses, SizesAndSegmentsAreTheMirrors) {
    ids("SELECT * FROM orders");
    ASSERT_EQ(found.uses.size(), 1u);
    EXPECT_EQ(found.uses[0].bytes, 300u);
    EXPECT_EQ(found.uses[0].catalog, placement::catalog_id("lake"));
    std::vector<uint64_t> segments;
    (*found.uses[0].segments)([&](const placement::SegmentBytes &each) {
        segments.push_back(each.segment);
        segments.push_back(each.bytes);
    });
    EXPECT_EQ(segments, (Ids{100, 100, 101, 200}));
}

TEST_F(TableUses, ATableChangesWhenItsContentsDo) {
    const auto epoch = [&](const std::string &text) {
        ids(text);
        return found.uses.at(0).epoch;
    };
    EXPECT_EQ(epoch("SELECT * FROM orders"), 5u);
    EXPECT_EQ(epoch("SELECT * FROM lines"), 5u);
    LakeState::Tables tables = states["lake"]->tables();
    tables[1] = table(2, "main", "lines", {50, 60});
    states["lake"] = lake(8, tables);
    EXPECT_EQ(epoch("SELECT * FROM orders"), 5u) << "the commit left it alone";
    EXPECT_EQ(epoch("SELECT * FROM lines"), 8u);
    EXPECT_EQ(epoch("SELECT * FROM lines"), 8u);
}

}  // namespace
}  // namespace roost::routing
