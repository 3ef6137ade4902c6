#include "engine/foreign_files.h"

#include <gtest/gtest.h>

#include "engine/register_files.h"

namespace roost {
namespace {

using duckdb::LogicalType;

std::string common(const LogicalType &a, const LogicalType &b) {
    const auto one = common_type(a, b), other = common_type(b, a);
    EXPECT_EQ(one.has_value(), other.has_value());
    if (one && other) EXPECT_EQ(*one, *other);
    return one ? one->ToString() : "none";
}

// What DuckLake lets a file of either type be read under.
TEST(ForeignColumns, TypesGrowAsDuckLakeLetsThem) {
    EXPECT_EQ(common(LogicalType::TINYINT, LogicalType::BIGINT), "BIGINT");
    EXPECT_EQ(common(LogicalType::INTEGER, LogicalType::SMALLINT), "INTEGER");
    EXPECT_EQ(common(LogicalType::UTINYINT, LogicalType::USMALLINT), "USMALLINT");
    EXPECT_EQ(common(LogicalType::UINTEGER, LogicalType::INTEGER), "BIGINT");
    EXPECT_EQ(common(LogicalType::UTINYINT, LogicalType::TINYINT), "SMALLINT");
    EXPECT_EQ(common(LogicalType::UBIGINT, LogicalType::BIGINT), "none");
    EXPECT_EQ(common(LogicalType::FLOAT, LogicalType::DOUBLE), "DOUBLE");
    EXPECT_EQ(common(LogicalType::DECIMAL(10, 2), LogicalType::DECIMAL(8, 4)), "DECIMAL(12,4)");
    EXPECT_EQ(common(LogicalType::DECIMAL(38, 0), LogicalType::DECIMAL(38, 30)), "none");
    EXPECT_EQ(common(LogicalType::TIMESTAMP_MS, LogicalType::TIMESTAMP), "TIMESTAMP");
    EXPECT_EQ(common(LogicalType::VARCHAR, LogicalType::VARCHAR), "VARCHAR");
    for (const LogicalType &other :
         {LogicalType(LogicalType::VARCHAR), LogicalType(LogicalType::DOUBLE), LogicalType(LogicalType::BOOLEAN),
          LogicalType(LogicalType::DATE), LogicalType(LogicalType::HUGEINT), LogicalType::LIST(LogicalType::INTEGER)}) {
        EXPECT_EQ(common(LogicalType::INTEGER, other), "none") << other.ToString();
    }
    EXPECT_EQ(common(LogicalType::TIMESTAMP, LogicalType::TIMESTAMP_TZ), "none");
    EXPECT_EQ(common(LogicalType::LIST(LogicalType::INTEGER), LogicalType::LIST(LogicalType::BIGINT)), "none");
}

TEST(ForeignColumns, AreThoseOfAllFilesInTheirOrder) {
    ForeignColumns columns;
    ASSERT_TRUE(columns.add("/a", {"id", "odd \"name\""}, {LogicalType::INTEGER, LogicalType::VARCHAR}).ok());
    ASSERT_TRUE(columns.add("/b", {"late", "ID"}, {LogicalType::DATE, LogicalType::BIGINT}).ok());
    EXPECT_EQ(columns.definition(), R"(("id" BIGINT, "odd ""name""" VARCHAR, "late" DATE))");
    const Status clash = columns.add("/c", {"late"}, {LogicalType::VARCHAR});
    EXPECT_EQ(clash.sqlstate(), "42804");
    EXPECT_EQ(clash.message(), "column \"late\" is DATE in /b and VARCHAR in /c");
    // The file that made the type what it is.
    EXPECT_EQ(columns.add("/d", {"id"}, {LogicalType::DOUBLE}).message(),
              "column \"id\" is BIGINT in /b and DOUBLE in /d");
}

std::vector<ForeignFile> files(const std::vector<std::string> &paths) {
    std::vector<ForeignFile> out;
    for (const std::string &path : paths) out.push_back({path, std::nullopt});
    return out;
}

std::string partitions(const std::vector<std::string> &paths, std::optional<bool> wanted = std::nullopt) {
    ForeignColumns columns;
    EXPECT_TRUE(columns.add(paths[0], {"id", "day"}, {LogicalType::INTEGER, LogicalType::VARCHAR}).ok());
    const auto added = columns.add_partitions(files(paths), wanted);
    if (!added.ok()) return std::string(added.status().sqlstate());
    return (*added ? "yes " : "no ") + columns.definition();
}

TEST(ForeignColumns, PartitionsComeFromPaths) {
    EXPECT_EQ(partitions({"/x/y=1/a", "/x/y=2/b"}), R"(yes ("id" INTEGER, "day" VARCHAR, "y" BIGINT))");
    EXPECT_EQ(partitions({"/y=1/a", "/y=x/b"}), R"(yes ("id" INTEGER, "day" VARCHAR, "y" VARCHAR))");
    EXPECT_EQ(partitions({"/y=1/a", "/y=__HIVE_DEFAULT_PARTITION__/b"}),
              R"(yes ("id" INTEGER, "day" VARCHAR, "y" BIGINT))");
    EXPECT_EQ(partitions({"/day=2024-01-01/a", "/day=2024-02-01/b"}), R"(yes ("id" INTEGER, "day" DATE))");
    EXPECT_EQ(partitions({"/y=1/a", "/z=1/b"}), R"(no ("id" INTEGER, "day" VARCHAR))");
    EXPECT_EQ(partitions({"/y=1/a", "/z=1/b"}, true), "42804");
    EXPECT_EQ(partitions({"/y=1/a"}, false), R"(no ("id" INTEGER, "day" VARCHAR))");
    EXPECT_EQ(partitions({"/a"}), R"(no ("id" INTEGER, "day" VARCHAR))");
}

TEST(RegisterFiles, TravelAsParameters) {
    RegisterFiles request;
    request.commit = Uuid::make();
    request.schema = "it's";
    request.table = "t";
    request.patterns = {"/a/*", "s3://b/c/"};
    for (const std::optional<bool> hive : {std::optional<bool>(), std::optional(true), std::optional(false)}) {
        request.hive_partitioning = hive;
        request.skip_registered = !request.skip_registered;
        const auto back = register_files_of(parameters_of(request));
        ASSERT_TRUE(back.ok());
        EXPECT_EQ(*back, request);
    }
    request.patterns.clear();
    EXPECT_FALSE(register_files_of(parameters_of(request)).ok());
    EXPECT_FALSE(register_files_of({}).ok());
}

}  // namespace
}  // namespace roost
