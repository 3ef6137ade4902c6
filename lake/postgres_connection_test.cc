#include "lake/postgres_connection.h"

#include <gtest/gtest.h>

#include <thread>

#include "lake/test_postgres.h"

namespace roost {
namespace {

CallLimits soon() { return CallLimits::in(std::chrono::seconds(30)); }
const PostgresConnection::RowFunction kIgnore = [](const PostgresRow &) { return Status(); };

TEST(WithoutPassword, HidesItInEveryFormOfAConnectionString) {
    EXPECT_EQ(without_password("host=a password=geheim dbname=b"), "host=a password=*** dbname=b");
    EXPECT_EQ(without_password("password = 'ge\\' heim' dbname=b"), "password = *** dbname=b");
    EXPECT_EQ(without_password("postgresql://me:ge@heim@host/db?x=1"), "postgresql://me:***@host/db?x=1");
    EXPECT_EQ(without_password("postgresql://host/db?user=a&password=geheim&x=1"),
              "postgresql://host/db?user=a&password=***&x=1");
    EXPECT_EQ(without_password("no secret here: password"), "no secret here: password");
}

TEST(PostgresConnectionErrors, NameNoSecret) {
    PostgresConnection unparsable("geheim host");
    const Status unread = unparsable.execute("SELECT 1", soon());
    EXPECT_EQ(unread.code(), Code::invalid_argument);
    EXPECT_EQ(unread.to_string().find("geheim"), std::string::npos) << unread.to_string();
    PostgresConnection nobody("host=/nonexistent user=u password=geheim dbname=d");
    const Status lost = nobody.execute("SELECT 1", soon());
    EXPECT_EQ(lost.code(), Code::unavailable);
    EXPECT_TRUE(lost.retryable());
    EXPECT_EQ(lost.to_string().find("geheim"), std::string::npos) << lost.to_string();
}

class Postgres : public ::testing::Test {
protected:
    static void SetUpTestSuite() { server_ = testing::TestPostgres::start(); }
    static void TearDownTestSuite() { server_.reset(); }
    void SetUp() override {
        if (!server_) GTEST_SKIP() << "no Postgres on this machine";
        ASSERT_TRUE(server_->start_again());
        connection_ = std::make_unique<PostgresConnection>(server_->address());
    }
    std::string one(const std::string &sql) {
        std::string value = "no row";
        const Status status = connection_->query(
            sql,
            [&](const PostgresRow &row) {
                value = row.is_null(0) ? "NULL" : std::string(row.text(0));
                return Status();
            },
            soon());
        return status.ok() ? value : status.to_string();
    }

    static std::unique_ptr<testing::TestPostgres> server_;
    std::unique_ptr<PostgresConnection> connection_;
};
std::unique_ptr<testing::TestPostgres> Postgres::server_;

TEST_F(Postgres, GivesRowsAsTextNumbersAndTruthValues) {
    const std::vector<std::optional<std::string>> parameters{"it's", std::nullopt};
    int rows = 0;
    ASSERT_TRUE(connection_
                    ->query(
                        "SELECT $1::text, $2::text IS NULL, i, NULL::int FROM generate_series(1, 3) i", parameters,
                        [&](const PostgresRow &row) {
                            rows++;
                            EXPECT_EQ(row.text(0), "it's");
                            EXPECT_TRUE(row.boolean(1));
                            EXPECT_EQ(row.integer(2), rows);
                            EXPECT_TRUE(row.is_null(3));
                            return Status();
                        },
                        soon())
                    .ok());
    EXPECT_EQ(rows, 3);
    EXPECT_EQ(one("SELECT '2026-01-02 03:04:05+02'::timestamptz"), "2026-01-02 01:04:05+00");
}

TEST_F(Postgres, ARefusalIsAnErrorWithItsSqlstateAndTheConnectionGoesOn) {
    const Status refused = connection_->execute("SELECT nothing FROM nowhere", soon());
    EXPECT_EQ(refused.code(), Code::io_error);
    EXPECT_EQ(refused.error().detail, "42P01");
    EXPECT_EQ(one("SELECT 1"), "1");
    EXPECT_EQ(connection_->generation(), 1u);
}

TEST_F(Postgres, ADeadlineAndACancellationEndAQuery) {
    const Status late = connection_->execute("SELECT pg_sleep(60)", CallLimits::in(std::chrono::milliseconds(50)));
    EXPECT_EQ(late.code(), Code::timeout);
    std::stop_source source;
    std::thread other([&] {
        // Only once the query runs: the second connection sees it.
        PostgresConnection watcher(server_->address());
        int64_t running = 0;
        while (running == 0) {
            const Status looked = watcher.query(
                "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(61)' AND state = 'active'",
                [&](const PostgresRow &row) {
                    running = row.integer(0);
                    return Status();
                },
                soon());
            if (!looked.ok()) break;
        }
        source.request_stop();
    });
    const Status stopped =
        connection_->execute("SELECT pg_sleep(61)", CallLimits::in(std::chrono::seconds(60), source.get_token()));
    other.join();
    EXPECT_EQ(stopped.code(), Code::cancelled);
    EXPECT_EQ(one("SELECT 1"), "1");
}

TEST_F(Postgres, ATransactionReadsOneState) {
    ASSERT_TRUE(connection_->execute("CREATE TABLE IF NOT EXISTS states (i int)", soon()).ok());
    ASSERT_TRUE(connection_->begin_read(soon()).ok());
    EXPECT_EQ(one("SELECT count(*) FROM states"), "0");
    PostgresConnection other(server_->address());
    ASSERT_TRUE(other.execute("INSERT INTO states VALUES (1)", soon()).ok());
    EXPECT_EQ(one("SELECT count(*) FROM states"), "0");
    EXPECT_EQ(connection_->execute("INSERT INTO states VALUES (2)", soon()).error().detail, "25006");
    connection_->end_read();
    EXPECT_EQ(one("SELECT count(*) FROM states"), "1");
}

TEST_F(Postgres, ARestartOfTheServerCostsAnOpenTransactionAndNothingElse) {
    EXPECT_EQ(one("SELECT 1"), "1");
    ASSERT_TRUE(connection_->begin_read(soon()).ok());
    server_->stop();
    ASSERT_TRUE(server_->start_again());
    EXPECT_EQ(connection_->execute("SELECT 1", soon()).code(), Code::unavailable);
    EXPECT_EQ(one("SELECT 1"), "1");
    EXPECT_EQ(connection_->generation(), 2u);
    server_->stop();
    EXPECT_EQ(connection_->execute("SELECT 1", soon()).code(), Code::unavailable);
    ASSERT_TRUE(server_->start_again());
    ASSERT_TRUE(connection_->begin_read(soon()).ok());
    EXPECT_EQ(one("SELECT 1"), "1");
}

TEST_F(Postgres, ARowFunctionMayEndTheQuery) {
    int rows = 0;
    const Status ended = connection_->query(
        "SELECT * FROM generate_series(1, 1000000)",
        [&](const PostgresRow &) { return ++rows == 10 ? Status(Code::resource_exhausted, "enough") : Status(); },
        soon());
    EXPECT_EQ(ended.code(), Code::resource_exhausted);
    EXPECT_EQ(rows, 10);
    EXPECT_EQ(one("SELECT 1"), "1");
}

}  // namespace
}  // namespace roost
