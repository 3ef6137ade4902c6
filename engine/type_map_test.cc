#include "engine/type_map.h"

#include <gtest/gtest.h>

#include "engine/test_rows.h"

namespace roost {
namespace {

struct Expected {
    const char *type;
    uint32_t oid;
    int16_t typlen;
    int32_t typmod;
};

// The wire contract's table, section 5.
TEST(TypeMap, EveryTypeHasTheContractsOid) {
    TestDb db;
    const Expected table[] = {
        {"BOOLEAN", 16, 1, -1},
        {"TINYINT", 21, 2, -1},
        {"UTINYINT", 21, 2, -1},
        {"SMALLINT", 21, 2, -1},
        {"USMALLINT", 23, 4, -1},
        {"INTEGER", 23, 4, -1},
        {"UINTEGER", 20, 8, -1},
        {"BIGINT", 20, 8, -1},
        {"UBIGINT", 1700, -1, -1},
        {"HUGEINT", 1700, -1, -1},
        {"UHUGEINT", 1700, -1, -1},
        {"BIGNUM", 1700, -1, -1},
        {"DECIMAL(15,2)", 1700, -1, ((15 << 16) | 2) + 4},
        {"FLOAT", 700, 4, -1},
        {"DOUBLE", 701, 8, -1},
        {"VARCHAR", 25, -1, -1},
        {"ENUM('a', 'b')", 25, -1, -1},
        {"BLOB", 17, -1, -1},
        {"BIT", 1562, -1, -1},
        {"DATE", 1082, 4, -1},
        {"TIME", 1083, 8, -1},
        {"TIME WITH TIME ZONE", 1266, 12, -1},
        {"TIMESTAMP", 1114, 8, -1},
        {"TIMESTAMP_S", 1114, 8, -1},
        {"TIMESTAMP_MS", 1114, 8, -1},
        {"TIMESTAMP_NS", 1114, 8, -1},
        {"TIMESTAMP WITH TIME ZONE", 1184, 8, -1},
        {"INTERVAL", 1186, 16, -1},
        {"UUID", 2950, 16, -1},
        {"JSON", 114, -1, -1},
        {"INTEGER[]", 1007, -1, -1},
        {"BIGINT[]", 1016, -1, -1},
        {"VARCHAR[]", 1009, -1, -1},
        {"DOUBLE[3]", 1022, -1, -1},
        {"JSON[]", 199, -1, -1},
        {"UUID[]", 2951, -1, -1},
        {"INTEGER[][]", 114, -1, -1},
        {"INTEGER[2][2]", 114, -1, -1},
        {"STRUCT(a INTEGER)", 114, -1, -1},
        {"STRUCT(a INTEGER)[]", 114, -1, -1},
        {"MAP(VARCHAR, INTEGER)", 114, -1, -1},
        {"UNION(a INTEGER, b VARCHAR)", 114, -1, -1},
        {"VARIANT", 114, -1, -1},
    };
    for (const auto &want : table) {
        const auto rows = db.rows(std::string("SELECT NULL::") + want.type + " AS v");
        ASSERT_EQ(rows.types.size(), 1U) << want.type;
        const Column got = describe_column("v", rows.types[0]);
        EXPECT_EQ(got.pg_oid, want.oid) << want.type;
        EXPECT_EQ(got.pg_typlen, want.typlen) << want.type;
        EXPECT_EQ(got.pg_typmod, want.typmod) << want.type;
        EXPECT_EQ(got.type, want.type);
    }
}

TEST(TypeMap, BareNullIsTextAndPrintsAsDescribeDoes) {
    const Column column = describe_column("n", duckdb::LogicalType::SQLNULL);
    EXPECT_EQ(column.pg_oid, 25U);
    EXPECT_EQ(column.type, "\"NULL\"");
}

TEST(TypeMap, DeclaredOidsComeBackAsTheSameOid) {
    for (const uint32_t oid : {16U,   17U,   20U,   21U,   23U,   25U,   114U,  700U,  701U,  1082U, 1083U, 1114U,
                               1184U, 1186U, 1266U, 1562U, 1700U, 2950U, 1007U, 1009U, 1016U, 1022U, 1231U, 2951U}) {
        EXPECT_EQ(pg_oid_of_param(type_of_pg_oid(oid)), oid);
    }
    EXPECT_EQ(type_of_pg_oid(0).id(), duckdb::LogicalTypeId::UNKNOWN);
    EXPECT_EQ(type_of_pg_oid(705).id(), duckdb::LogicalTypeId::UNKNOWN);
    EXPECT_EQ(type_of_pg_oid(999999).id(), duckdb::LogicalTypeId::UNKNOWN);
    EXPECT_EQ(pg_oid_of_param(duckdb::LogicalType::UNKNOWN), 25U);
}

TEST(TypeMap, NamesBecomeUniqueAsCreateTableAsMakesThem) {
    TestDb db;
    const std::vector<std::vector<std::string>> cases = {{"a", "a", "A", "b"},
                                                         {"a", "a_1", "a"},
                                                         {"a", "a", "a_1"},
                                                         {"x", "X", "x_1", "X_1"},
                                                         {"q", "q_1", "q", "q", "q_1"}};
    for (const auto &names : cases) {
        std::string list;
        for (const auto &name : names) list += (list.empty() ? "1 AS " : ", 1 AS ") + ("\"" + name + "\"");
        db.exec("CREATE OR REPLACE TABLE t AS SELECT " + list);
        EXPECT_EQ(unique_names(names), db.rows("FROM t").names) << list;
    }
}

}  // namespace
}  // namespace roost
