#include "engine/outages.h"

#include <gtest/gtest.h>

#include "duckdb/common/error_data.hpp"
#include "duckdb/common/exception.hpp"

namespace roost {
namespace {

using duckdb::ErrorData;
using duckdb::ExceptionType;

std::string sqlstate_of(const ErrorData &error) {
    const auto outage = outage_of(error);
    return outage ? std::string(outage->sqlstate()) : "none";
}

ErrorData http_error(int status, const std::string &body = "") {
    return ErrorData(duckdb::Exception({{"status_code", std::to_string(status)}, {"response_body", body}},
                                       ExceptionType::HTTP, "HTTP GET error reading 's3://bucket/key'"));
}

TEST(Outages, AreToldApart) {
    const auto of = [](ExceptionType type, const char *text) { return sqlstate_of(ErrorData(type, text)); };
    EXPECT_EQ(of(ExceptionType::IO, "Unable to connect to Postgres at \"host=x\": connection refused"), "57P03");
    EXPECT_EQ(of(ExceptionType::INVALID,
                 "Failed to query: Failed to execute query \"COMMIT\": server closed the connection unexpectedly"),
              "57P03");
    EXPECT_EQ(of(ExceptionType::IO, "Unable to connect to Postgres at \"x\": FATAL:  sorry, too many clients already"),
              "53300");
    EXPECT_EQ(of(ExceptionType::INVALID, "Connection pool timeout: all 8 connections are in use"), "53300");
    EXPECT_EQ(of(ExceptionType::IO, "Unable to connect to Postgres at \"x\": password authentication failed"), "58030");
    EXPECT_EQ(of(ExceptionType::INVALID, "Failed to execute query \"X\": canceling statement due to lock timeout"),
              "40001");
    EXPECT_EQ(of(ExceptionType::INVALID, "Failed to execute query \"SELECT x\": relation does not exist"), "58030");
    EXPECT_EQ(of(ExceptionType::IO, "Could not connect to server error for HTTP GET to 'http://x'"), "58030");
    EXPECT_EQ(sqlstate_of(http_error(503)), "58030");
    EXPECT_EQ(sqlstate_of(http_error(403)), "58030");
}

TEST(Outages, SayWhetherToTryAgain) {
    EXPECT_TRUE(outage_of(http_error(503))->retryable());
    EXPECT_TRUE(outage_of(http_error(429))->retryable());
    EXPECT_FALSE(outage_of(http_error(403))->retryable());
    EXPECT_FALSE(outage_of(http_error(404))->retryable());
    EXPECT_NE(outage_of(http_error(404, "<Code>NoSuchBucket</Code>"))->message().find("bucket does not exist"),
              std::string::npos);
}

TEST(Outages, NameTheObjectAndNoAddress) {
    EXPECT_TRUE(outage_of(http_error(503))->message().starts_with("key: the lake's store does not answer"));
    const auto of = [](const char *text) { return outage_of(ErrorData(ExceptionType::IO, text))->message(); };
    EXPECT_EQ(of("Could not connect to server error for HTTP GET to 'http://host:9000/bucket/lake/t/a-1.parquet?x=y'"),
              "a-1.parquet: the lake's store can't be reached, or breaks off");
    EXPECT_EQ(of("Connection error for HTTP GET to \"https://host/b/c%20d.parquet\""),
              "c%20d.parquet: the lake's store can't be reached, or breaks off");
    for (const char *text : {"error for HTTP ", "error for HTTP GET to 'http://host'",
                             "error for HTTP GET to http://host/x", "error for HTTP GET to 'http://host/'"}) {
        EXPECT_EQ(of(text), "the lake's store can't be reached, or breaks off") << text;
    }
}

TEST(Outages, WhatTheStatementSaysIsNone) {
    for (const auto type : {ExceptionType::CONVERSION, ExceptionType::INVALID_INPUT, ExceptionType::CATALOG,
                            ExceptionType::BINDER, ExceptionType::PARSER}) {
        EXPECT_EQ(sqlstate_of(ErrorData(type, "Could not convert string 'Unable to connect to Postgres' to INT32")),
                  "none");
    }
    EXPECT_EQ(sqlstate_of(ErrorData(ExceptionType::IO, "No space left on device")), "none");
}

}  // namespace
}  // namespace roost
