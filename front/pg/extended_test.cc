// The extended protocol, end to end over a socket with a fake service.
#include <gtest/gtest.h>

#include "front/pg/test_gateway.h"

namespace roost::pg {
namespace {

using test::Client;
using test::Gateway;
using Log = std::vector<std::string>;

class PgExtended : public testing::Test {
protected:
    PgExtended() : client(gateway.port) { EXPECT_EQ(client.login(), ""); }
    test::Reply run(std::string_view sql, const std::vector<std::optional<std::string>> &values = {}) {
        return client.parse(sql).bind("", "", values).describe('P').execute().sync();
    }
    Gateway gateway;
    Client client;
};

TEST_F(PgExtended, OneGroupIsOneTripToANode) {
    const auto reply = run("SELECT 1 AS rows, $1", {"7"});
    EXPECT_EQ(reply.shape, "12TDCZ");
    EXPECT_EQ(reply.tags, Log{"SELECT 1"});
    EXPECT_EQ(reply.status, 'I');
    EXPECT_EQ(gateway.take_log(), Log{"execute SELECT 1 AS rows, $1"});
    const auto params = gateway.on_loop([&] { return gateway.service.params.back(); });
    ASSERT_EQ(params.size(), 1U);
    EXPECT_EQ(params[0].value, "7");
    EXPECT_EQ(params[0].pg_oid, 0U);
}

TEST_F(PgExtended, OneGroupInSinglePiecesIsTheSame) {
    std::string bytes;
    client.parse("SELECT 1 AS rows");
    client.flush_out();
    client.bind();
    client.flush_out();
    client.describe('P');
    client.flush_out();
    client.execute();
    client.flush_out();
    EXPECT_EQ(client.sync().shape, "12TDCZ");
    EXPECT_EQ(gateway.take_log(), Log{"execute SELECT 1 AS rows"});
}

TEST_F(PgExtended, WithoutDescribeThereIsNoRowDescription) {
    EXPECT_EQ(client.parse("SELECT 1 AS rows").bind().execute().sync().shape, "12DCZ");
    EXPECT_EQ(run("INSERT INTO t VALUES (1)").shape, "12nCZ");
    EXPECT_EQ(run("SET application_name = 'e'").shape, "12nCZ");
    EXPECT_EQ(run("SHOW application_name").value(), "e");
    for (const char *empty : {"", "-- ping", ";"}) EXPECT_EQ(run(empty).shape, "12nIZ") << empty;
}

TEST_F(PgExtended, DescribeStatementAsksTheEngine) {
    const auto reply = client.parse("SELECT 1 AS rows, $1, $2", "s", {20}).describe('S', "s").sync();
    EXPECT_EQ(reply.shape, "1tTZ");
    EXPECT_EQ(reply.param_oids, (std::vector<uint32_t>{20, 23}));
    EXPECT_EQ(gateway.take_log(), Log{"describe SELECT 1 AS rows, $1, $2"});
    EXPECT_EQ(client.describe('S', "s").sync().shape, "tTZ");
    EXPECT_EQ(gateway.take_log(), Log{}) << "known by now";
    EXPECT_EQ(client.bind("", "s", {"1", "2"}).describe('P').execute().sync().shape, "2TDCZ");
    EXPECT_EQ(gateway.on_loop([&] { return gateway.service.params.back()[1].pg_oid; }), 23U)
        << "what the client was told";
}

TEST_F(PgExtended, AParseThatNobodyExecutesIsStillChecked) {
    EXPECT_EQ(client.parse("SELECT '42P01' AS fail", "s").sync().shape, "EZ");
    EXPECT_EQ(client.bind("", "s").sync().code(), "26000");
    EXPECT_EQ(client.parse("SELECT '42P01' AS fail").flush("E").code(), "42P01");
    EXPECT_EQ(client.sync().shape, "Z");
    EXPECT_EQ(client.parse("SELECT '42P01' AS fail").describe('S').flush("E").code(), "42P01") << "before its Sync";
    EXPECT_EQ(client.sync().shape, "Z");
    EXPECT_EQ(client.parse("SELECT '42P01' AS fail").parse("SELECT 1 AS rows").sync().shape, "EZ") << "the first one";
    EXPECT_EQ(client.parse("SELECT 1 AS rows", "good").sync().shape, "1Z");
    EXPECT_EQ(gateway.take_log().size(), 5U);
}

TEST_F(PgExtended, AnErrorOfTheStatementIsAnsweredAtItsParse) {
    const auto reply = client.parse("SELECT '42703' AS fail", "s")
                           .bind("", "s")
                           .describe('P')
                           .execute()
                           .parse("SELECT 2 AS rows", "later")
                           .sync();
    EXPECT_EQ(reply.shape, "EZ");
    EXPECT_EQ(reply.code(), "42703");
    EXPECT_EQ(client.bind("", "s").sync().code(), "26000");
    EXPECT_EQ(client.bind("", "later").sync().code(), "26000");
    EXPECT_EQ(run("SELECT 3 AS rows").shape, "12TDCZ");
}

TEST_F(PgExtended, AnErrorAtRunTimeLeavesTheStatementAlone) {
    EXPECT_EQ(client.parse("SELECT '22012' AS fail", "s").bind("", "s").execute().sync().shape, "12EZ");
    EXPECT_EQ(client.bind("", "s").execute().sync().code(), "22012");
    const auto reply = client.parse("SELECT 3 AS rows, '22003' AS fail").bind().describe('P').execute().sync();
    EXPECT_EQ(reply.shape, "12TDEZ");
    EXPECT_EQ(reply.rows.size(), 3U);
}

TEST_F(PgExtended, EverythingAfterAnErrorIsDiscardedUpToSync) {
    client.parse("SELECT '42703' AS fail").bind().execute().add('Q', test::cstr("SELECT 1 AS rows")).add('H');
    EXPECT_EQ(client.sync().shape, "EZ");
    for (const char *text : {"SELECT 1 AS rows", "SELECT '42703' AS fail", "SELECT 3 AS rows"})
        client.parse(text).bind().execute().add('S');
    client.flush_out();
    EXPECT_EQ(client.until().shape, "12DCZ");
    EXPECT_EQ(client.until().shape, "EZ");
    EXPECT_EQ(client.until().shape, "12DCZ");
}

TEST_F(PgExtended, RowLimitsAtEveryBoundary) {
    client.query("BEGIN");
    for (const int rows : {0, 1, 1023, 1024, 1025, 2049, 5000}) {
        for (const int limit : {1, 2, 7, 1000, 1024, 2049, 5001}) {
            if (limit < 7 && rows > 1025) continue;
            client.parse("SELECT " + std::to_string(rows) + " AS rows, 1000 AS frame").bind("p");
            int expected = 0;
            bool ended = false;
            while (!ended) {
                const auto reply = client.execute("p", static_cast<uint32_t>(limit)).flush("CsE");
                ASSERT_EQ(reply.code(), "");
                ASSERT_LE(reply.rows.size(), static_cast<size_t>(limit));
                for (const auto &row : reply.rows) ASSERT_EQ(row[0], std::to_string(++expected));
                ended = !reply.tags.empty();
                if (ended) {
                    EXPECT_EQ(reply.tags[0], "SELECT " + std::to_string(reply.rows.size()));
                } else {
                    EXPECT_EQ(reply.rows.size(), static_cast<size_t>(limit));
                }
            }
            EXPECT_EQ(expected, rows);
            const auto reply = client.execute("p", 10).close_object('P', "p").sync();
            EXPECT_EQ(reply.shape, "C3Z");
            EXPECT_EQ(reply.tags, Log{"SELECT 0"}) << "a finished portal has no more rows";
        }
    }
}

TEST_F(PgExtended, SeveralPortalsAreReadInTurn) {
    client.query("BEGIN");
    const auto reply = client.parse("SELECT 3000 AS rows", "s")
                           .bind("a", "s")
                           .bind("b", "s")
                           .execute("a", 10)
                           .execute("b", 2000)
                           .sync();
    EXPECT_EQ(reply.shape, "122DsDsZ");
    EXPECT_EQ(client.query("SELECT 1 AS rows").shape, "TDCZ");
    const auto rest = client.execute("a", 0).sync();
    EXPECT_EQ(rest.rows.size(), 2990U);
    EXPECT_EQ(rest.value(), "11");
    EXPECT_EQ(rest.tags, Log{"SELECT 2990"});
    EXPECT_EQ(client.execute("b", 0).sync().rows.size(), 1000U);
}

TEST_F(PgExtended, PortalsEndWithTheirTransaction) {
    client.parse("SELECT 10 AS rows, 1 AS frame").bind("out").execute("out", 2).sync();
    EXPECT_TRUE(gateway.logged("dropped SELECT 10 AS rows, 1 AS frame"));
    EXPECT_EQ(client.execute("out", 2).sync().code(), "34000");
    client.query("BEGIN");
    client.parse("SELECT 10 AS rows, 1 AS frame").bind("in").execute("in", 2).sync();
    EXPECT_EQ(client.execute("in", 2).sync().value(), "3");
    gateway.take_log();
    client.query("COMMIT");
    EXPECT_EQ(gateway.take_log(), (Log{"dropped SELECT 10 AS rows, 1 AS frame", "execute COMMIT"}))
        << "before the commit";
    EXPECT_EQ(client.execute("in", 2).sync().code(), "34000");
    client.query("BEGIN");
    client.parse("SELECT 10 AS rows").bind().execute("", 2).sync();
    client.query("SELECT 1 AS rows");
    EXPECT_EQ(client.execute("", 2).sync().code(), "34000") << "a simple query drops the unnamed portal";
}

TEST_F(PgExtended, ALimitIsIgnoredWhereThereAreNoRows) {
    EXPECT_EQ(client.parse("INSERT INTO t VALUES (1)").bind().execute("", 10).sync().tags, Log{"INSERT 0 1"});
}

TEST_F(PgExtended, AGroupIsOneTransaction) {
    client.parse("INSERT INTO t VALUES (1)").bind().execute().parse("INSERT INTO t VALUES (2)").bind().execute();
    auto reply = client.sync();
    EXPECT_EQ(reply.shape, "12C12CZ");
    EXPECT_EQ(reply.status, 'I');
    EXPECT_EQ(gateway.take_log(), (Log{"execute BEGIN", "execute INSERT INTO t VALUES (1)",
                                       "execute INSERT INTO t VALUES (2)", "execute COMMIT"}));
    client.parse("INSERT INTO t VALUES (1)").bind().execute().parse("SELECT '42P01' AS fail").bind().execute();
    reply = client.sync();
    EXPECT_EQ(reply.shape, "12CEZ");
    EXPECT_EQ(reply.status, 'I');
    EXPECT_EQ(gateway.take_log().back(), "execute ROLLBACK");
    EXPECT_EQ(run("INSERT INTO t VALUES (1)").shape, "12nCZ");
    EXPECT_EQ(gateway.take_log(), Log{"execute INSERT INTO t VALUES (1)"}) << "alone it is its own transaction";
}

TEST_F(PgExtended, TransactionCommands) {
    EXPECT_EQ(run("BEGIN").status, 'T');
    EXPECT_EQ(run("SELECT '42703' AS fail").status, 'E');
    EXPECT_EQ(run("SELECT 1 AS rows").code(), "25P02");
    EXPECT_EQ(client.parse("SELECT 1 AS rows", "late").sync().code(), "25P02");
    EXPECT_EQ(client.execute("gone").sync().code(), "25P02");
    const auto reply = run("ROLLBACK");
    EXPECT_EQ(reply.tags, Log{"ROLLBACK"});
    EXPECT_EQ(reply.status, 'I');
    client.query("BEGIN");
    client.parse("SELECT 1 AS rows", "keep").sync();
    client.query("SELECT '42703' AS fail");
    client.query("ROLLBACK");
    EXPECT_EQ(client.bind("", "keep").execute().sync().shape, "2DCZ") << "statements survive";
}

TEST_F(PgExtended, NamesOfStatementsAndPortals) {
    EXPECT_EQ(client.parse("SELECT 1 AS rows", "dup").sync().shape, "1Z");
    EXPECT_EQ(client.parse("SELECT 2 AS rows", "dup").sync().code(), "42P05");
    EXPECT_EQ(client.bind("", "never").sync().code(), "26000");
    EXPECT_EQ(client.describe('S', "never").sync().code(), "26000");
    EXPECT_EQ(client.describe('P', "never").sync().code(), "34000");
    EXPECT_EQ(client.execute("never").sync().code(), "34000");
    EXPECT_EQ(client.close_object('S', "dup").close_object('S', "never").close_object('P', "never").sync().shape,
              "333Z");
    EXPECT_EQ(client.parse("SELECT 3 AS rows", "dup").sync().shape, "1Z");
    EXPECT_EQ(client.bind("p", "dup").bind("p", "dup").sync().code(), "42P03");
    EXPECT_EQ(client.bind("", "dup").bind("", "dup").execute().sync().shape, "22DCZ") << "the unnamed one is replaced";
    client.query("DEALLOCATE ALL");
    EXPECT_EQ(client.bind("", "dup").sync().code(), "26000");
    client.parse("SELECT 1 AS rows", "again").sync();
    client.query("DISCARD ALL");
    EXPECT_EQ(client.bind("", "again").sync().code(), "26000");
}

TEST_F(PgExtended, CountsAreChecked) {
    EXPECT_EQ(client.parse("SELECT 1 AS rows, $1, $2").bind("", "", {"1"}).sync().code(), "08P01");
    EXPECT_EQ(client.parse("SELECT 1 AS rows").bind("", "", {}, {1, 0}).sync().code(), "08P01");
    EXPECT_EQ(client.parse("SELECT 1 AS rows; SELECT 2 AS rows").sync().code(), "42601");
    EXPECT_EQ(client.parse("SELECT 1 AS rows;").bind().execute().sync().shape, "12DCZ");
    EXPECT_EQ(client.parse("SELECT 1 AS rows").bind("", "", {}, {1}).describe('P').execute().sync().formats,
              std::vector<int>{1});
}

TEST_F(PgExtended, ColumnsThatChangedUnderAPreparedStatement) {
    client.parse("SELECT 1 AS rows", "s").describe('S', "s").sync();
    gateway.on_loop([&] { gateway.service.column_name = "renamed"; });
    const auto reply = client.bind("", "s").describe('P').execute().sync();
    EXPECT_EQ(reply.code(), "0A000");
    EXPECT_EQ(reply.error.at('R'), "RevalidateCachedQuery");
    EXPECT_EQ(client.bind("", "s").describe('P').execute().sync().columns, Log{"renamed"}) << "told again, it goes on";
}

TEST_F(PgExtended, DescribeOfAPortalWithoutExecute) {
    EXPECT_EQ(client.parse("SELECT 1 AS rows").bind().describe('P').sync().shape, "12TZ");
    EXPECT_EQ(gateway.take_log(), Log{"describe SELECT 1 AS rows"});
    EXPECT_EQ(client.parse("SELECT 1 AS rows")
                  .bind("a")
                  .bind("b")
                  .describe('P', "a")
                  .describe('P', "b")
                  .execute("b")
                  .sync()
                  .shape,
              "122TTDCZ");
}

TEST_F(PgExtended, FlushAnswersWithoutReady) {
    const auto reply = client.parse("SELECT 1 AS rows").bind().execute().flush("C");
    EXPECT_EQ(reply.shape, "12DC");
    EXPECT_EQ(client.sync().shape, "Z");
}

TEST_F(PgExtended, PipelinedGroupsAreAnsweredInOrder) {
    for (int i = 0; i < 200; i++) {
        client.parse("SELECT " + std::to_string(i % 7) + " AS rows, $1").bind("", "", {std::to_string(i)}).execute();
        if (i % 5 == 4) client.add('S');
    }
    client.flush_out();
    std::vector<std::string> tags;
    for (int i = 0; i < 40; i++) {
        const auto reply = client.until();
        tags.insert(tags.end(), reply.tags.begin(), reply.tags.end());
    }
    ASSERT_EQ(tags.size(), 200U);
    for (int i = 0; i < 200; i++) EXPECT_EQ(tags[static_cast<size_t>(i)], "SELECT " + std::to_string(i % 7));
}

TEST_F(PgExtended, CursorsOfSql) {
    EXPECT_EQ(run("BEGIN").status, 'T');
    EXPECT_EQ(
        client.parse("DECLARE x CURSOR FOR SELECT 30 AS rows, $1", "", {0}).bind("", "", {"2"}).execute().sync().tags,
        Log{"DECLARE CURSOR"});
    auto reply = run("FETCH 20 FROM x");
    EXPECT_EQ(reply.shape, "12TDCZ");
    EXPECT_EQ(reply.tags, Log{"FETCH 20"});
    EXPECT_EQ(run("FETCH FORWARD ALL FROM x").rows.size(), 10U);
    EXPECT_EQ(run("COMMIT").status, 'I');
}

TEST_F(PgExtended, MalformedBodiesAreErrorsAndTheConnectionGoesOn) {
    EXPECT_EQ(client.add('B', std::string("\0\0\0\0\x75\x30", 6)).sync().code(), "08P01");
    EXPECT_EQ(client.add('P', "no end").sync().code(), "08P01");
    EXPECT_EQ(client.add('E', "").sync().code(), "08P01");
    EXPECT_EQ(client.add('D', "X").sync().code(), "08P01");
    EXPECT_EQ(client.add('d', "copy data outside copy is ignored").sync().shape, "Z");
    EXPECT_EQ(run("SELECT 1 AS rows").shape, "12TDCZ");
}

}  // namespace
}  // namespace roost::pg
