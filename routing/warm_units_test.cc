// What nodes report, against a lake's states made by hand and a directory.
#include "routing/warm_units.h"

#include <gtest/gtest.h>

namespace roost::routing {
namespace {

constexpr const char *kT = "s3://b/lake/main/t/";

std::shared_ptr<const LakeState> lake(uint64_t snapshot, const std::vector<std::pair<uint64_t, std::string>> &tables) {
    LakeState::Tables made;
    for (const auto &[id, folder] : tables) {
        auto definition = std::make_shared<TableDefinition>();
        definition->id = id;
        definition->begin_snapshot = snapshot;
        definition->schema_name = "main";
        definition->name = "t" + std::to_string(id);
        definition->data_path = folder;
        auto table = std::make_shared<TableState>();
        table->definition = definition;
        table->data = std::make_shared<TableData>();
        made.push_back(table);
    }
    LakeSnapshot at;
    at.id = snapshot;
    return std::make_shared<LakeState>(at, "", false, std::make_shared<LakeNames>(), std::move(made));
}

CacheReport report(std::vector<WarmFolder> folders, bool all = false) {
    CacheReport made;
    made.on = true;
    made.all = all;
    made.folders = std::move(folders);
    return made;
}

class WarmUnitsTest : public testing::Test {
protected:
    // Warm bytes of the table at the node, as the directory has them.
    uint64_t warm(uint64_t table, const Uuid &node) const {
        const auto *unit = directory.find({placement::catalog_id("lake"), table, 0});
        const auto *home = unit ? unit->home(node) : nullptr;
        return home ? home->warm_bytes : 0;
    }
    uint64_t epoch(uint64_t table, const Uuid &node) const {
        return directory.find({placement::catalog_id("lake"), table, 0})->home(node)->epoch;
    }

    placement::Directory directory{{}};
    WarmUnits units{&directory};
    const Uuid a = Uuid::make(), b = Uuid::make();
};

TEST_F(WarmUnitsTest, HeartbeatsSayWhereTablesAreWarm) {
    units.know("lake", lake(1, {{1, kT}, {2, "s3://b/lake/main/u"}}));
    units.report(a, 1, report({{kT, 100, 1}, {"s3://b/lake/main/u/", 7, 1}, {"s3://b/elsewhere/", 5, 1}}, true));
    EXPECT_EQ(warm(1, a), 100);
    EXPECT_EQ(warm(2, a), 7) << "with a slash or without";
    units.report(a, 1, report({{kT, 0, 0}}));
    EXPECT_EQ(warm(1, a), 0) << "evicted";
    EXPECT_EQ(warm(2, a), 7) << "not named, not changed";
    units.report(a, 1, report({}, true));
    EXPECT_EQ(warm(2, a), 0) << "all there is does not name it";
}

TEST_F(WarmUnitsTest, ATableThatTheMirrorMeetsLaterIsNotForgotten) {
    units.know("lake", lake(1, {}));
    const UnitRead written{kT, {}, 1, 100, true, {}};
    EXPECT_TRUE(units.ended(a, 1, {&written, 1}, 2).empty());
    units.report(a, 1, report({{kT, 100, 1}}));
    units.know("lake", lake(2, {{1, kT}}));
    EXPECT_EQ(warm(1, a), 100);
    EXPECT_EQ(epoch(1, a), 2) << "its writer is up to date";
}

TEST_F(WarmUnitsTest, ATableMadeAnewInTheSameFolderIsColdButAtItsWriter) {
    units.know("lake", lake(1, {{1, kT}}));
    units.report(a, 1, report({{kT, 100, 1}}, true));
    units.report(b, 1, report({{kT, 100, 1}}, true));
    const UnitRead written{kT, {}, 1, 150, true, {}};
    (void)units.ended(b, 1, {&written, 1}, 2);
    units.know("lake", lake(2, {{2, kT}}));
    EXPECT_EQ(directory.find({placement::catalog_id("lake"), 1, 0}), nullptr) << "dropped";
    EXPECT_EQ(warm(2, a), 0);
    EXPECT_EQ(warm(2, b), 150);
    ASSERT_NE(units.find(kT), nullptr);
    EXPECT_EQ(units.find(kT)->table->id, 2);
}

TEST_F(WarmUnitsTest, AChangeThatTheMirrorSeesMakesHomesStale) {
    const auto first = lake(1, {{1, kT}});
    units.know("lake", first);
    units.report(a, 1, report({{kT, 100, 1}}, true));
    const placement::UnitId unit{placement::catalog_id("lake"), 1, 0};
    directory.committed(a, 1, {&unit, 1}, 1);
    const auto fresh = [&] { return directory.find(unit)->is_fresh(*directory.find(unit)->home(a)); };
    EXPECT_TRUE(fresh());
    LakeSnapshot at;
    at.id = 2;
    units.know("lake", std::make_shared<LakeState>(*first, at, first->tables()));
    EXPECT_TRUE(fresh()) << "the commit was to another table";
    auto changed = std::make_shared<TableState>(*first->tables()[0]);
    changed->data = std::make_shared<TableData>();
    at.id = 3;
    units.know("lake", std::make_shared<LakeState>(*first, at, LakeState::Tables{changed}));
    EXPECT_FALSE(fresh());
    EXPECT_EQ(directory.find(unit)->epoch, 3);
}

TEST_F(WarmUnitsTest, ANewRunOfANodeIsColdUntilItSaysWhatItHas) {
    units.know("lake", lake(1, {{1, kT}}));
    units.report(a, 1, report({{kT, 100, 1}}, true));
    units.report(a, 2, report({}, true));
    EXPECT_TRUE(units.nodes().at(a).folders.empty());
    units.report(a, 2, report({{kT, 60, 1}}));
    EXPECT_EQ(warm(1, a), 60);
    units.forget(a);
    EXPECT_EQ(warm(1, a), 0);
    EXPECT_TRUE(units.nodes().empty());
}

TEST_F(WarmUnitsTest, WithoutADirectoryWhatIsWarmIsKnownAllTheSame) {
    WarmUnits alone(nullptr);
    alone.know("lake", lake(1, {{1, kT}}));
    alone.report(a, 1, report({{kT, 100, 1}}, true));
    EXPECT_EQ(alone.nodes().at(a).folders.at(kT).bytes, 100);
}

}  // namespace
}  // namespace roost::routing
