#include "engine/lake_statistics.h"

#include "engine/test_engine.h"

namespace roost {
namespace {

using testing::Outcome;
using testing::TestEngine;

class LakeStatisticsTest : public ::testing::Test {
protected:
    TestEngine &lake = TestEngine::get();

    void write(const std::string &sql) {
        const Outcome done = lake.run(TestEngine::write_spec(sql));
        ASSERT_TRUE(done.status.ok()) << sql << ": " << done.status.to_string();
    }
    std::string value(const std::string &sql) { return lake.read(sql).value(); }
    // In both lanes: each is an instance with statistics of its own.
    void expect(const std::string &sql, const std::string &expected) {
        for (const auto lane : {Grant::Lane::small, Grant::Lane::slot}) {
            const Grant grant{.lane = lane, .slot = 0, .bytes = testing::kSlotBytes};
            EXPECT_EQ(lake.run(TestEngine::spec(sql), grant).value(), expected) << sql;
        }
    }
};

TEST_F(LakeStatisticsTest, RowsOfAnAlteredTypeAreFound) {
    for (const auto &[before, after] : std::vector<std::pair<std::string, std::string>>{{"TINYINT", "SMALLINT"},
                                                                                        {"INTEGER", "BIGINT"},
                                                                                        {"UTINYINT", "INTEGER"},
                                                                                        {"UINTEGER", "BIGINT"},
                                                                                        {"FLOAT", "DOUBLE"}}) {
        write("CREATE OR REPLACE TABLE altered (x " + before + ", s STRUCT(x " + before + "))");
        write("INSERT INTO altered SELECT i, {'x': i} FROM range(100) r(i)");
        expect("SELECT count(*) FROM altered WHERE x >= 14 AND s.x >= 14", "86");
        write("ALTER TABLE altered ALTER x TYPE " + after);
        expect("SELECT count(*) FROM altered WHERE x >= 14", "86");
        expect("SELECT count(*) FROM altered WHERE x > 200", "0");
        expect("SELECT max(x)::INTEGER - min(x)::INTEGER FROM altered", "99");
        write("DELETE FROM altered WHERE x >= 90");
        expect("SELECT count(*) FROM altered", "90");
        write("UPDATE altered SET x = 100 WHERE x < 10");
        expect("SELECT count(*) FROM altered WHERE x = 100", "10");
        write("INSERT INTO altered VALUES (101, {'x': 101})");
        expect("SELECT count(*) FROM altered WHERE x >= 100", "11");
    }
}

// The engine can't make the filter that such a join is given; told once, it does without.
TEST_F(LakeStatisticsTest, AlteredColumnsAreJoined) {
    for (const auto &[before, after] :
         std::vector<std::pair<std::string, std::string>>{{"INTEGER", "BIGINT"}, {"FLOAT", "DOUBLE"}}) {
        const std::string table = "joined_" + after;
        write("CREATE OR REPLACE TABLE " + table + " (x " + before + ", y INTEGER)");
        write("INSERT INTO " + table + " SELECT i, i FROM range(100) r(i)");
        write("ALTER TABLE " + table + " ALTER x TYPE " + after);
        const std::string join =
            "SELECT count(*) FROM " + table + " WHERE x IN (SELECT x FROM " + table + " WHERE y < 5)";
        const Outcome first = lake.read(join);
        EXPECT_EQ(first.status.code(), Code::conflict) << first.status.to_string() << " or " << first.value();
        expect(join, "5");
        expect("SELECT count(*) FROM " + table + " a JOIN " + table + " b ON a.x = b.x WHERE a.x < 10", "10");
    }
}

TEST_F(LakeStatisticsTest, TheTimeBeforeAnAlterationIsRead) {
    write("CREATE OR REPLACE TABLE altered (x FLOAT)");
    write("INSERT INTO altered SELECT * FROM range(100)");
    const std::string before = value("SELECT max(snapshot_id) FROM lake.snapshots()");
    write("ALTER TABLE altered ALTER x TYPE DOUBLE");
    for (int i = 0; i < 2; ++i) {
        expect("SELECT count(*) FROM altered WHERE x >= 14", "86");
        expect("SELECT count(*) FROM altered AT (VERSION => " + before + ") WHERE x >= 14", "86");
    }
}

// How many rows there are is known without a scan; what is in them is not.
TEST_F(LakeStatisticsTest, CountsAreKept) {
    write("CREATE OR REPLACE TABLE kept (x INTEGER)");
    write("INSERT INTO kept SELECT * FROM range(100000)");
    const auto plan = [this](const std::string &sql) {
        const Grant grant{.lane = Grant::Lane::slot, .slot = 0, .bytes = testing::kSlotBytes};
        const Outcome got = lake.run(TestEngine::spec("EXPLAIN " + sql), grant);
        EXPECT_TRUE(got.status.ok()) << got.status.to_string();
        std::string text;
        for (const auto &row : got.rows) {
            for (const auto &cell : row) text += cell.value_or("");
        }
        return text;
    };
    EXPECT_NE(plan("SELECT count(*) FROM kept").find("COLUMN_DATA_SCAN"), std::string::npos);
    EXPECT_EQ(plan("SELECT max(x) FROM kept").find("COLUMN_DATA_SCAN"), std::string::npos);
}

}  // namespace
}  // namespace roost
