// The simple protocol, end to end over a socket with a fake service.
#include <gtest/gtest.h>

#include "front/pg/test_gateway.h"

namespace roost::pg {
namespace {

using test::Client;
using test::Gateway;
using Log = std::vector<std::string>;

class PgSimple : public testing::Test {
protected:
    PgSimple() : client(gateway.port) { EXPECT_EQ(client.login(), ""); }
    Gateway gateway;
    Client client;
};

TEST_F(PgSimple, ASelect) {
    const auto reply = client.query("SELECT 2 AS rows");
    EXPECT_EQ(reply.shape, "TDCZ");
    EXPECT_EQ(reply.tags, Log{"SELECT 2"});
    EXPECT_EQ(reply.columns, Log{"n"});
    EXPECT_EQ(reply.rows[1][0], "2");
    EXPECT_EQ(reply.status, 'I');
    EXPECT_EQ(client.query("SELECT 0 AS rows").shape, "TCZ") << "a description for no rows too";
}

TEST_F(PgSimple, EmptyTexts) {
    for (const char *text : {"", ";", "-- ping", "  \n ", "/* hello */", ";;"})
        EXPECT_EQ(client.query(text).shape, "IZ") << text;
    EXPECT_EQ(client.query("SELECT 1 AS rows;;").shape, "TDCZ");
}

TEST_F(PgSimple, ManyRowsInOddFramesArriveExactly) {
    for (const int rows : {1, 1023, 1024, 1025, 2048, 100'000}) {
        const auto reply = client.query("SELECT " + std::to_string(rows) + " AS rows, 777 AS frame");
        ASSERT_EQ(reply.rows.size(), static_cast<size_t>(rows));
        EXPECT_EQ(reply.rows.back()[0], std::to_string(rows));
        EXPECT_EQ(reply.tags, Log{"SELECT " + std::to_string(rows)});
    }
}

TEST_F(PgSimple, ASyntaxErrorAnywhereRunsNothing) {
    const auto reply = client.query("INSERT INTO t VALUES (1); SELEC 2");
    EXPECT_EQ(reply.shape, "EZ");
    EXPECT_EQ(reply.code(), "42601");
    EXPECT_TRUE(reply.error.contains('P'));
    EXPECT_EQ(gateway.take_log(), Log{});
}

TEST_F(PgSimple, ReadsAloneNeedNoTransaction) {
    EXPECT_EQ(client.query("SELECT 1 AS rows; SELECT 2 AS rows").shape, "TDCTDCZ");
    EXPECT_EQ(gateway.take_log(), (Log{"execute SELECT 1 AS rows", "execute SELECT 2 AS rows"}));
    EXPECT_EQ(client.query("INSERT INTO t VALUES (1)").tags, Log{"INSERT 0 1"});
    EXPECT_EQ(gateway.take_log(), Log{"execute INSERT INTO t VALUES (1)"});
}

TEST_F(PgSimple, SeveralStatementsWithAWriteAreOneTransaction) {
    const auto reply = client.query("INSERT INTO t VALUES (1); SELECT 1 AS rows");
    EXPECT_EQ(reply.shape, "CTDCZ");
    EXPECT_EQ(reply.status, 'I');
    EXPECT_EQ(gateway.take_log(),
              (Log{"execute BEGIN", "execute INSERT INTO t VALUES (1)", "execute SELECT 1 AS rows", "execute COMMIT"}));
}

TEST_F(PgSimple, AnErrorRollsBackWhatTheMessageDid) {
    const auto reply = client.query("INSERT INTO t VALUES (1); SELECT '42703' AS fail; INSERT INTO t VALUES (2)");
    EXPECT_EQ(reply.shape, "CEZ");
    EXPECT_EQ(reply.code(), "42703");
    EXPECT_EQ(reply.status, 'I');
    EXPECT_EQ(reply.error.at('P'), std::to_string(8 + 26)) << "counted from the start of the text";
    EXPECT_EQ(gateway.take_log(), (Log{"execute BEGIN", "execute INSERT INTO t VALUES (1)",
                                       "execute SELECT '42703' AS fail", "execute ROLLBACK"}));
}

TEST_F(PgSimple, ACommitInsideEndsTheImplicitTransaction) {
    const auto reply = client.query(
        "INSERT INTO t VALUES (1); BEGIN; INSERT INTO t VALUES (2); COMMIT; INSERT INTO t VALUES (3); "
        "SELECT '42P01' AS fail");
    EXPECT_EQ(reply.code(), "42P01");
    EXPECT_EQ(reply.status, 'I');
    EXPECT_EQ(gateway.take_log(),
              (Log{"execute BEGIN", "execute INSERT INTO t VALUES (1)", "execute INSERT INTO t VALUES (2)",
                   "execute COMMIT", "execute BEGIN", "execute INSERT INTO t VALUES (3)",
                   "execute SELECT '42P01' AS fail", "execute ROLLBACK"}));
}

TEST_F(PgSimple, ACommitThatFailsIsAnError) {
    gateway.on_loop([&] { gateway.service.commit_error = Status(Code::conflict, "somebody was faster"); });
    const auto reply = client.query("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)");
    EXPECT_EQ(reply.shape, "CCEZ");
    EXPECT_EQ(reply.code(), "40001");
    EXPECT_EQ(reply.status, 'I');
}

TEST_F(PgSimple, TransactionStatusLetters) {
    std::string letters;
    for (const char *text :
         {"SELECT 1 AS rows", "BEGIN", "SELECT 1 AS rows", "SELECT '42703' AS fail", "SELECT 1 AS rows", "ROLLBACK"}) {
        letters.push_back(client.query(text).status);
    }
    EXPECT_EQ(letters, "ITTEEI");
    EXPECT_EQ(client.query("BEGIN; SELEC 1").status, 'I') << "nothing of it ran";
    client.query("BEGIN");
    EXPECT_EQ(client.query("SELEC 1").status, 'E') << "an error found here fails the transaction too";
    EXPECT_EQ(client.query("SELECT 1 AS rows").code(), "25P02");
    const auto reply = client.query("COMMIT");
    EXPECT_EQ(reply.tags, Log{"ROLLBACK"});
    EXPECT_EQ(reply.status, 'I');
}

TEST_F(PgSimple, BeginTwiceAndEndsOutsideOnlyWarn) {
    EXPECT_EQ(client.query("COMMIT").notice['C'], "25P01");
    EXPECT_EQ(client.query("ROLLBACK").notice['C'], "25P01");
    EXPECT_EQ(client.query("START TRANSACTION").tags, Log{"START TRANSACTION"});
    const auto reply = client.query("BEGIN");
    EXPECT_EQ(reply.notice.at('C'), "25001");
    EXPECT_EQ(reply.status, 'T');
}

TEST_F(PgSimple, SavepointsAreHonest) {
    client.query("BEGIN");
    EXPECT_EQ(client.query("SAVEPOINT s").code(), "0A000");
    EXPECT_EQ(client.query("ROLLBACK TO SAVEPOINT s").code(), "3B001");
    EXPECT_EQ(client.query("ROLLBACK").status, 'I');
}

TEST_F(PgSimple, VariablesFollowTransactions) {
    EXPECT_EQ(client.query("SET application_name = 'before'").parameter_status["application_name"], "before");
    const auto reply = client.query("BEGIN; SET application_name = 'inside'; ROLLBACK");
    EXPECT_EQ(reply.tags, (Log{"BEGIN", "SET", "ROLLBACK"}));
    EXPECT_EQ(client.query("SHOW application_name").value(), "before");
    client.query("BEGIN; SET LOCAL application_name = 'local'");
    EXPECT_EQ(client.query("SHOW application_name").value(), "local");
    EXPECT_EQ(client.query("COMMIT").parameter_status["application_name"], "before");
    EXPECT_EQ(client.query("SET application_name = 'undone'; SELECT '42703' AS fail").status, 'I');
    EXPECT_EQ(client.query("SHOW application_name").value(), "before");
    EXPECT_EQ(client.query("SET LOCAL application_name = 'x'").notice['C'], "25P01");
}

TEST_F(PgSimple, VariablesReachTheSession) {
    client.query(
        "SET search_path TO public, s2; SET TIME ZONE 'Asia/Kolkata'; SET statement_timeout = '2s'; SET "
        "default_transaction_read_only = on");
    const auto session = gateway.on_loop([&] { return *gateway.service.last_session; });
    EXPECT_EQ(session.settings.search_path, (Log{"main", "s2"}));
    EXPECT_EQ(session.settings.time_zone, "Asia/Kolkata");
    EXPECT_EQ(session.statement_timeout_ms, 2000);
    EXPECT_TRUE(session.default_read_only);
}

TEST_F(PgSimple, CommandsAndTheirTags) {
    for (const auto &[text, tag] :
         std::vector<std::pair<std::string, std::string>>{{"SHOW search_path", "SHOW"},
                                                          {"DISCARD ALL", "DISCARD ALL"},
                                                          {"DISCARD TEMP", "DISCARD TEMP"},
                                                          {"DEALLOCATE ALL", "DEALLOCATE ALL"},
                                                          {"RESET ALL", "RESET"},
                                                          {"RESET TimeZone", "RESET"},
                                                          {"LISTEN c", "LISTEN"},
                                                          {"UNLISTEN *", "UNLISTEN"},
                                                          {"CLOSE ALL", "CLOSE CURSOR ALL"},
                                                          {"SET CONSTRAINTS ALL DEFERRED", "SET CONSTRAINTS"},
                                                          {"CREATE TABLE t (a integer)", "CREATE TABLE"}}) {
        EXPECT_EQ(client.query(text).tags, Log{tag}) << text;
    }
    EXPECT_EQ(client.query("NOTIFY c").code(), "0A000");
    EXPECT_EQ(client.query("SHOW ALL").columns, (Log{"name", "setting", "description"}));
    EXPECT_EQ(client.query("SHOW TRANSACTION ISOLATION LEVEL").columns, Log{"transaction_isolation"});
    EXPECT_EQ(client.query("SHOW no_such_variable").code(), "42704");
    EXPECT_EQ(client.query("DESCRIBE no_such_table").code(), "42P01");
    EXPECT_EQ(client.query("SET threads = 8").code(), "42501");
    client.query("BEGIN");
    EXPECT_EQ(client.query("DISCARD ALL").code(), "25001");
}

TEST_F(PgSimple, IsolationLevelsAreShownAsAskedFor) {
    client.query("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY");
    EXPECT_EQ(client.query("SHOW transaction_isolation").value(), "serializable");
    EXPECT_EQ(client.query("SHOW transaction_read_only").value(), "on");
    client.query("COMMIT");
    EXPECT_EQ(client.query("SHOW transaction_isolation").value(), "read committed");
    client.query("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY");
    EXPECT_EQ(client.query("SHOW transaction_isolation").value(), "repeatable read");
    EXPECT_TRUE(gateway.on_loop([&] { return gateway.service.last_session->default_read_only; }));
}

TEST_F(PgSimple, PreparedStatementsOfSql) {
    EXPECT_EQ(client.query("PREPARE ps (integer, text) AS SELECT 1 AS rows, $1, $2").tags, Log{"PREPARE"});
    EXPECT_EQ(client.query("PREPARE ps AS SELECT 1 AS rows").code(), "42P05");
    EXPECT_EQ(client.query("EXECUTE ps (-41, 'it''s')").shape, "TDCZ");
    const auto params = gateway.on_loop([&] { return gateway.service.params.back(); });
    ASSERT_EQ(params.size(), 2U);
    EXPECT_EQ(params[0].value, "-41");
    EXPECT_EQ(params[0].pg_oid, 23U);
    EXPECT_EQ(params[1].value, "it's");
    EXPECT_EQ(client.query("EXECUTE ps (1)").code(), "42601");
    EXPECT_EQ(client.query("EXECUTE ps (1 + 1, 'x')").code(), "0A000");
    EXPECT_EQ(client.query("PREPARE bad AS SELECT '42P01' AS fail").code(), "42P01");
    EXPECT_EQ(client.query("DEALLOCATE ps").tags, Log{"DEALLOCATE"});
    EXPECT_EQ(client.query("EXECUTE ps (1, 'x')").code(), "26000");
    EXPECT_EQ(client.query("DEALLOCATE ps").code(), "26000");
}

TEST_F(PgSimple, CursorsReadForwards) {
    EXPECT_EQ(client.query("DECLARE c CURSOR FOR SELECT 1 AS rows").code(), "25P01");
    client.query("BEGIN");
    EXPECT_EQ(client.query("DECLARE c CURSOR FOR SELECT 30 AS rows, 7 AS frame").tags, Log{"DECLARE CURSOR"});
    auto reply = client.query("FETCH 10 FROM c");
    EXPECT_EQ(reply.tags, Log{"FETCH 10"});
    EXPECT_EQ(reply.rows.back()[0], "10");
    EXPECT_EQ(client.query("FETCH c").value(), "11");
    EXPECT_EQ(client.query("MOVE 5 IN c").tags, Log{"MOVE 5"});
    EXPECT_EQ(client.query("FETCH FORWARD ALL FROM c").rows.size(), 14U);
    reply = client.query("FETCH 5 FROM c");
    EXPECT_EQ(reply.shape, "TCZ");
    EXPECT_EQ(reply.tags, Log{"FETCH 0"});
    EXPECT_EQ(client.query("CLOSE c").tags, Log{"CLOSE CURSOR"});
    EXPECT_EQ(client.query("FETCH 1 FROM c").code(), "34000");
    client.query("ROLLBACK");
    client.query("BEGIN; DECLARE c CURSOR FOR SELECT 1 AS rows");
    EXPECT_EQ(client.query("DECLARE c CURSOR FOR SELECT 1 AS rows").code(), "42P03");
    client.query("ROLLBACK; BEGIN; DECLARE c CURSOR FOR SELECT 1 AS rows");
    EXPECT_EQ(client.query("FETCH BACKWARD 1 FROM c").code(), "55000");
    client.query("ROLLBACK");
    EXPECT_EQ(client.query("FETCH 1 FROM c").code(), "34000");
}

TEST_F(PgSimple, BadTextIsAnErrorAndTheConnectionGoesOn) {
    EXPECT_EQ(client.query("SELECT '\xff\xfe'").code(), "22021");
    client.send('Q', "SELECT 1");
    EXPECT_EQ(client.until().code(), "08P01");
    EXPECT_EQ(client.query("SELECT 1 AS rows").shape, "TDCZ");
    client.send('F', "anything");
    EXPECT_EQ(client.until().code(), "0A000");
}

TEST_F(PgSimple, ATextOverTheLimitIsAClearError) {
    const auto reply = client.query("SELECT '" + std::string(17 << 20, 'x') + "'");
    EXPECT_EQ(reply.shape, "EZ");
    EXPECT_EQ(reply.code(), "54000");
    EXPECT_EQ(client.query("SELECT 1 AS rows").shape, "TDCZ");
}

}  // namespace
}  // namespace roost::pg
