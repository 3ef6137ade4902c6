#include "engine/duckdb_errors.h"

#include <gtest/gtest.h>

#include "duckdb/common/error_data.hpp"

namespace roost {
namespace {

using duckdb::ErrorData;
using duckdb::ExceptionType;

std::string_view state(ExceptionType type, const std::string &message) {
    static Status status;
    status = status_of(ErrorData(type, message), "", {});
    return status.sqlstate();
}

TEST(DuckdbErrors, ClassesAndMessagesHaveTheirSqlstate) {
    EXPECT_EQ(state(ExceptionType::PARSER, "syntax error at or near \"x\""), "42601");
    EXPECT_EQ(state(ExceptionType::CATALOG, "Table with name x does not exist!"), "42P01");
    EXPECT_EQ(state(ExceptionType::CATALOG, "Table Function with name f does not exist!"), "42883");
    EXPECT_EQ(state(ExceptionType::CATALOG, "Type with name t does not exist!"), "42704");
    EXPECT_EQ(state(ExceptionType::CATALOG, "Schema with name s does not exist!"), "3F000");
    EXPECT_EQ(state(ExceptionType::CATALOG, "Table with name \"t\" already exists!"), "42P07");
    EXPECT_EQ(state(ExceptionType::BINDER, "Referenced column \"x\" not found in FROM clause!"), "42703");
    EXPECT_EQ(state(ExceptionType::BINDER, "Ambiguous reference to column name \"i\""), "42702");
    EXPECT_EQ(state(ExceptionType::CONVERSION, "Could not convert string 'x' to INT32"), "22P02");
    EXPECT_EQ(state(ExceptionType::OUT_OF_RANGE, "Overflow in multiplication of INT32"), "22003");
    EXPECT_EQ(state(ExceptionType::CONSTRAINT, "NOT NULL constraint failed: t.i"), "23502");
    EXPECT_EQ(state(ExceptionType::OUT_OF_MEMORY, "could not allocate block of size 256.0 KiB"), "53200");
    EXPECT_EQ(state(ExceptionType::PERMISSION, "Access refused (rule files.parent)"), "42501");
    EXPECT_EQ(state(ExceptionType::NOT_IMPLEMENTED, "no"), "0A000");
    EXPECT_EQ(state(ExceptionType::IO, "Could not read"), "58030");
    EXPECT_EQ(state(ExceptionType::INTERNAL, "Assertion"), "XX000");
    EXPECT_EQ(state(ExceptionType::TRANSACTION,
                    "Cannot write to database \"lake\" - transaction is launched in read-only mode"),
              "25006");
}

TEST(DuckdbErrors, ALostRaceForTheCatalogMayBeRunAgain) {
    for (const char *message : {"Failed to commit: Failed to commit DuckLake transaction.\nFailed to flush changes "
                                "into DuckLake: database is locked",
                                "Failed to commit: Failed to commit DuckLake transaction.\nTransaction conflict - "
                                "attempting to insert into table with index \"1\""}) {
        const Status status = status_of(ErrorData(ExceptionType::TRANSACTION, message), "", {});
        EXPECT_EQ(status.sqlstate(), "40001") << message;
        EXPECT_TRUE(status.retryable());
    }
    // The word alone, in a person's data, is no conflict.
    EXPECT_EQ(state(ExceptionType::CONVERSION, "Could not convert string 'conflict' to INT32"), "22P02");
}

TEST(DuckdbErrors, WhatACommitMeetsKeepsItsClass) {
    const std::string commit = "Failed to commit: Failed to commit DuckLake transaction.\n";
    for (const char *words : {"Failed to get table information from DuckLake: failed to allocate data of size 2.0 MiB "
                              "(36.3 MiB/40.2 MiB used)",
                              "failed to pin block of size 256.0 KiB (40.1 MiB/40.2 MiB used)",
                              "could not allocate block of size 256.0 KiB (40.1 MiB/40.2 MiB used)"}) {
        const Status status = status_of(ErrorData(ExceptionType::TRANSACTION, commit + words), "", {});
        EXPECT_EQ(status.sqlstate(), "53200") << words;
        EXPECT_EQ(status.code(), Code::resource_exhausted);
    }
    EXPECT_EQ(state(ExceptionType::TRANSACTION, commit + "failed to offload data block of size 256.0 KiB"), "53100");
    EXPECT_EQ(status_of(ErrorData(ExceptionType::TRANSACTION, commit + "Interrupted!"), "", {}).code(),
              Code::cancelled);
    EXPECT_EQ(state(ExceptionType::TRANSACTION, "cannot start a transaction within a transaction"), "25000");
    // In a person's own words it is what he made of it.
    EXPECT_NE(state(ExceptionType::CONVERSION, "Could not convert string 'failed to allocate data of size' to INT32"),
              "53200");
}

TEST(DuckdbErrors, TheFirstLineIsTheMessageAndTheRestIsSorted) {
    const ErrorData error(
        ExceptionType::CATALOG,
        "Table with name ordres does not exist!\nDid you mean \"orders\"?\n\nLINE 1: SELECT * FROM ordres\n        ^");
    const Status status = status_of(error, "SELECT * FROM ordres", {});
    EXPECT_EQ(status.message(), "Catalog Error: Table with name ordres does not exist!");
    EXPECT_EQ(status.error().hint, "Did you mean \"orders\"?");
    EXPECT_EQ(status.error().detail, "");
}

TEST(DuckdbErrors, PathsAndInternalsStayHere) {
    const Redactions redactions{{"/srv/roost/lake/data", "lake:data"}, {"/srv/roost", "node"}};
    const Status io =
        status_of(ErrorData(ExceptionType::IO, "Cannot open file \"/srv/roost/lake/data/a.parquet\": /srv/roost/x"), "",
                  redactions);
    EXPECT_EQ(io.message(), "IO Error: Cannot open file \"lake:data/a.parquet\": node/x");
    const Status internal =
        status_of(ErrorData(ExceptionType::INTERNAL, "Attempted to access index 3\n\nStack Trace: …"), "", {});
    EXPECT_EQ(internal.to_string().find("index 3"), std::string::npos);
    EXPECT_TRUE(breaks_instance(ErrorData(ExceptionType::FATAL, "x")));
    EXPECT_FALSE(breaks_instance(ErrorData(ExceptionType::BINDER, "x")));
}

TEST(DuckdbErrors, RowsThatAnotherClientMovedAreAConflictHoweverTheEngineSaysIt) {
    const std::string in_reader =
        "\n\nStack Trace:\n\nx(_ZN6duckdb25DuckLakeInlinedDataReader17TryInitializeScanE+0x1) [0x2]";
    const std::string index = "Attempted to access index 0 within vector of size 0";
    for (const auto &[type, text, stale] : std::vector<std::tuple<ExceptionType, std::string, bool>>{
             {ExceptionType::CATALOG, "Table with name ducklake_inlined_data_1_2 does not exist!", true},
             {ExceptionType::INTERNAL, index + in_reader, true},
             {ExceptionType::INTERNAL, index + "\n\nStack Trace:\n\nx(_ZN6duckdb4Scan)", false},
             {ExceptionType::INTERNAL, "Attempted to access index 1 within vector of size 1" + in_reader, false},
             {ExceptionType::BINDER, index + in_reader, false}}) {
        EXPECT_EQ(is_stale_catalog(ErrorData(type, text)), stale) << text;
        if (stale) EXPECT_EQ(status_of(ErrorData(type, text), "", {}).code(), Code::conflict) << text;
    }
}

TEST(DuckdbErrors, AWallsRuleIsNamed) {
    const Status status = status_of(
        ErrorData(ExceptionType::PERMISSION, "Access to \"/x\" is refused: outside (rule files.outside_lake)"), "", {});
    EXPECT_EQ(status.code(), Code::not_allowed);
    EXPECT_EQ(status.error().rule, "files.outside_lake");
}

}  // namespace
}  // namespace roost
