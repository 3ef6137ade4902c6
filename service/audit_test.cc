#include "service/audit.h"

#include <gtest/gtest.h>

#include "service/session.h"

namespace roost::service {
namespace {

class SteppingClock : public Clock {
public:
    int64_t wall_us() const override { return 1'700'000'000'000'000 + now_us; }
    int64_t monotonic_us() const override { return now_us; }
    int64_t now_us = 1;
};

Status refusal(const std::string &rule) { return Status(Code::not_allowed, "no").with_rule(rule).with_position(8); }

TEST(Audit, a_refusal_says_who_what_where_and_why) {
    SteppingClock clock;
    Audit audit(clock);
    Session session;
    session.id = Uuid::make();
    session.principal = {Uuid::make(), "ann", "user"};
    session.workspace = "main";
    session.front = "pg";
    session.peer = "192.0.2.7:4711";
    audit.refused(session, "SELECT getenv('HOME')", refusal("function:getenv"), Uuid());
    const auto records = audit.take();
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0].event, "statement_refused");
    EXPECT_EQ(records[0].user_name, "ann");
    EXPECT_EQ(records[0].peer, "192.0.2.7:4711");
    EXPECT_EQ(records[0].rule, "function:getenv");
    EXPECT_EQ(records[0].position, 8u);
    EXPECT_EQ(records[0].sql, "SELECT getenv('HOME')");
    EXPECT_NE(records[0].shape, 0u);
    EXPECT_GT(records[0].at_us, 1'700'000'000'000'000);
    EXPECT_TRUE(audit.take().empty());
}

TEST(Audit, texts_are_bounded_and_keep_no_secret) {
    SteppingClock clock;
    Audit audit(clock);
    const Session session;
    audit.refused(session, "SELECT '" + std::string(5'000'000, 'x') + "'", refusal("path"), Uuid());
    audit.refused(session, "CREATE SECRET s (TYPE s3, KEY_ID 'AKIA77', SECRET $$hunter2$$) -- hunter3", refusal("path"),
                  Uuid());
    audit.refused(session, "ATTACH 'postgres:host=h password=hunter2' AS z", refusal("path"), Uuid());
    audit.refused(session, "SET s3_secret_access_key = \"hunter2\"", refusal("path"), Uuid());
    audit.refused(session, std::string(1'023, 'x') + "é", refusal("path"), Uuid());
    const auto records = audit.take();
    ASSERT_EQ(records.size(), 5u);
    EXPECT_LT(records[0].sql.size(), 1'030u);
    for (const auto &record : records) {
        EXPECT_EQ(record.sql.find("hunter"), std::string::npos) << record.sql;
        EXPECT_EQ(record.sql.find("AKIA"), std::string::npos) << record.sql;
    }
    EXPECT_EQ(records[1].sql, "CREATE SECRET s (TYPE s3, KEY_ID '***', SECRET '***')");
    EXPECT_EQ(records[4].sql, std::string(1'023, 'x') + "…");
}

TEST(Audit, a_flood_is_counted_and_does_not_silence_others) {
    SteppingClock clock;
    Audit audit(clock);
    Session flooder, other;
    flooder.principal.user_id = Uuid::make();
    other.principal.user_id = Uuid::make();
    for (int i = 0; i < 10'000; i++) audit.refused(flooder, "SELECT 1", refusal("path"), Uuid());
    audit.refused(other, "SELECT 2", refusal("path"), Uuid());
    auto records = audit.take();
    ASSERT_EQ(records.size(), 202u);
    EXPECT_EQ(records[200].sql, "SELECT 2");
    EXPECT_EQ(records[201].event, "left_out");
    EXPECT_EQ(records[201].count, 9'800u);
    // From then on one a second.
    clock.now_us += 3'000'000;
    for (int i = 0; i < 10; i++) audit.refused(flooder, "SELECT 3", refusal("path"), Uuid());
    EXPECT_EQ(audit.take().size(), 3u);
    clock.now_us += 10'000'000;
    records = audit.take();
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0].count, 7u);
}

TEST(Audit, a_store_that_is_away_costs_bounded_memory) {
    SteppingClock clock;
    Audit audit(clock, {.queue_max_records = 10});
    const Session session;
    for (int i = 0; i < 8; i++) audit.refused(session, "SELECT 1", refusal("path"), Uuid());
    auto records = audit.take();
    for (int i = 0; i < 8; i++) audit.refused(session, "SELECT 2", refusal("path"), Uuid());
    audit.give_back(std::move(records));
    records = audit.take();
    ASSERT_EQ(records.size(), 11u);
    EXPECT_EQ(records.back().count, 6u);
}

TEST(Audit, failed_logins_are_told_apart_by_address) {
    SteppingClock clock;
    Audit audit(clock, {.caller_burst_records = 2});
    for (int port = 1; port < 10; port++)
        audit.login_failed("pg", "root" + std::to_string(port), "192.0.2.7:" + std::to_string(port));
    audit.login_failed("http", "", "192.0.2.8:1");
    const auto records = audit.take();
    ASSERT_EQ(records.size(), 4u);
    EXPECT_EQ(records[0].user_name, "root1");
    EXPECT_EQ(records[2].front, "http");
    EXPECT_EQ(records[3].count, 7u);
}

TEST(Audit, a_rule_as_a_label_is_one_of_few) {
    EXPECT_EQ(rule_label("function:read_text"), "function:read_text");
    EXPECT_EQ(rule_label("function:made_up"), "function:other");
    EXPECT_EQ(rule_label("setting:memory_limit"), "setting:memory_limit");
    EXPECT_EQ(rule_label("setting:made_up"), "setting:other");
    EXPECT_EQ(rule_label("catalog:made_up"), "catalog:other");
    EXPECT_EQ(rule_label("statement:attach"), "statement:attach");
    EXPECT_EQ(rule_label("path"), "path");
}

}  // namespace
}  // namespace roost::service
