#include "service/session_variables.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "service/time_zones.h"
#include "sql/session_variables.h"

namespace roost::service {
namespace {

using Values = std::vector<std::string>;

std::string shown(const SessionVariables &variables, std::string_view name) {
    const auto value = variables.show(name);
    return value.ok() ? value->setting : std::string(value.status().sqlstate());
}

std::string set(SessionVariables &variables, std::string_view name, const Values &values, bool is_local = false) {
    const Status status = variables.set(name, values, is_local);
    return status.ok() ? shown(variables, name) : std::string(status.sqlstate());
}

TEST(SessionVariables, TheTableIsSortedAndTheParserKnowsEachName) {
    const auto all = variables();
    EXPECT_GE(all.size(), 60U);
    for (const Variable &variable : all) {
        std::string folded(variable.name);
        std::transform(folded.begin(), folded.end(), folded.begin(), [](unsigned char c) { return std::tolower(c); });
        EXPECT_EQ(find_variable(folded), &variable) << variable.name;
        EXPECT_TRUE(sql::is_postgres_variable(folded)) << variable.name;
    }
    EXPECT_EQ(find_variable("no_such"), nullptr);
}

TEST(SessionVariables, NamesInEverySpelling) {
    SessionVariables variables({.user = "ann"});
    EXPECT_EQ(set(variables, "TIMEZONE", {"UTC"}), "UTC");
    EXPECT_EQ(set(variables, "time zone", {"europe/paris"}), "Europe/Paris");
    EXPECT_EQ(variables.show("timezone")->name, "TimeZone");
    EXPECT_EQ(set(variables, "names", {"utf8"}), "UTF8");
    EXPECT_EQ(shown(variables, "client_encoding"), "UTF8");
}

TEST(SessionVariables, WhatIsNotTakenSaysWhy) {
    SessionVariables variables({.user = "ann"});
    for (const auto &[name, value, code] :
         std::vector<std::array<std::string, 3>>{{"no_such_variable", "1", "42704"},
                                                 {"server_version", "16", "55P02"},
                                                 {"integer_datetimes", "off", "55P02"},
                                                 {"threads", "8", "42501"},
                                                 {"memory_limit", "1GB", "42501"},
                                                 {"integer_division", "on", "42501"},
                                                 {"default_null_order", "nulls_first", "0A000"},
                                                 {"client_encoding", "latin1", "0A000"},
                                                 {"datestyle", "German", "0A000"},
                                                 {"datestyle", "ISO, XYZ", "22023"},
                                                 {"standard_conforming_strings", "off", "0A000"},
                                                 {"intervalstyle", "iso_8601", "0A000"},
                                                 {"bytea_output", "escape", "0A000"},
                                                 {"jit", "maybe", "22023"},
                                                 {"extra_float_digits", "4", "22023"},
                                                 {"extra_float_digits", "x", "22023"},
                                                 {"statement_timeout", "-1", "22023"},
                                                 {"statement_timeout", "1 year", "22023"},
                                                 {"timezone", "Nowhere/City", "22023"},
                                                 {"transaction_isolation", "chaos", "22023"},
                                                 {"client_min_messages", "loud", "22023"},
                                                 {"role", "bob", "42501"}}) {
        EXPECT_EQ(set(variables, name, {value}), code) << name;
    }
    EXPECT_EQ(variables.set("jit", {"on", "off"}, false).sqlstate(), "22023");
    EXPECT_EQ(variables.reset("server_version").sqlstate(), "55P02");
    EXPECT_EQ(shown(variables, "no.such_setting"), "42704");
    EXPECT_EQ(set(variables, "my.setting", {"free"}), "free");
}

TEST(SessionVariables, ValuesAreShownAsPostgresShowsThem) {
    SessionVariables variables({.user = "ann"});
    for (const auto &[name, value, expected] :
         std::vector<std::array<std::string, 3>>{{"statement_timeout", "12345", "12345ms"},
                                                 {"statement_timeout", "30000", "30s"},
                                                 {"statement_timeout", "1.5 min", "90s"},
                                                 {"statement_timeout", "2h", "2h"},
                                                 {"statement_timeout", "0", "0"},
                                                 {"work_mem", "65536", "64MB"},
                                                 {"work_mem", "1GB", "1GB"},
                                                 {"work_mem", "100kB", "100kB"},
                                                 {"jit", "TRUE", "on"},
                                                 {"enable_seqscan", "of", "off"},
                                                 {"standard_conforming_strings", "true", "on"},
                                                 {"DateStyle", "dmy", "ISO, DMY"},
                                                 {"client_encoding", "'UTF-8'", "UTF8"},
                                                 {"client_encoding", "unicode", "UTF8"},
                                                 {"client_min_messages", "WARNING", "warning"},
                                                 {"transaction_isolation", "SERIALIZABLE", "serializable"},
                                                 {"role", "none", "none"},
                                                 {"session_authorization", "ann", "ann"},
                                                 {"search_path", "Mixed", "\"Mixed\""}}) {
        EXPECT_EQ(set(variables, name, {value}), expected) << name << " = " << value;
    }
    EXPECT_EQ(set(variables, "datestyle", {"ISO", "YMD"}), "ISO, YMD");
    EXPECT_EQ(set(variables, "search_path", {"$user", "public", "a"}), "\"$user\", public, a");
}

TEST(SessionVariables, LocalValuesEndWithTheTransaction) {
    SessionVariables variables({.user = "ann"});
    set(variables, "application_name", {"before"});
    variables.commit();
    EXPECT_EQ(set(variables, "application_name", {"local"}, true), "local");
    variables.commit();
    EXPECT_EQ(shown(variables, "application_name"), "before");
    set(variables, "application_name", {"local"}, true);
    EXPECT_EQ(set(variables, "application_name", {"session"}), "session") << "a later SET wins";
    variables.commit();
    EXPECT_EQ(shown(variables, "application_name"), "session");
}

TEST(SessionVariables, RollbackRestoresWhatTheTransactionFound) {
    SessionVariables variables({.user = "ann"});
    set(variables, "application_name", {"before"});
    variables.commit();
    set(variables, "application_name", {"first"});
    set(variables, "application_name", {"second"});
    set(variables, "jit", {"on"});
    variables.rollback();
    EXPECT_EQ(shown(variables, "application_name"), "before");
    EXPECT_EQ(shown(variables, "jit"), "off");
    variables.reset_all();
    EXPECT_EQ(shown(variables, "application_name"), "");
    variables.rollback();
    EXPECT_EQ(shown(variables, "application_name"), "before");
}

TEST(SessionVariables, ResetGoesBackToWhatTheClientStartedWith) {
    SessionVariables variables({.user = "ann"});
    EXPECT_TRUE(variables.set_default("search_path", "\"A b\", public").ok());
    EXPECT_TRUE(variables.set_default("statement_timeout", "5s").ok());
    set(variables, "search_path", {"x"});
    EXPECT_TRUE(variables.reset("search_path").ok());
    EXPECT_EQ(shown(variables, "search_path"), "\"A b\", public");
    set(variables, "statement_timeout", {"0"});
    variables.reset_all();
    EXPECT_EQ(variables.duration_ms("statement_timeout"), 5000);
    EXPECT_EQ(variables.set_default("search_path", "a,,b").sqlstate(), "22023");
    EXPECT_EQ(variables.set_default("nope", "1").sqlstate(), "42704");
}

TEST(SessionVariables, ReportsOnlyWhatChanged) {
    SessionVariables variables({.user = "ann", .server_version = "15.0 (roost)"});
    const auto all = variables.all_reports();
    EXPECT_EQ(all.size(), 13U);
    EXPECT_TRUE(std::any_of(all.begin(), all.end(),
                            [](const auto &r) { return r.first == "server_version" && r.second == "15.0 (roost)"; }));
    EXPECT_TRUE(variables.take_reports().empty());
    set(variables, "application_name", {"x"});
    set(variables, "work_mem", {"1MB"});
    const auto changed = variables.take_reports();
    ASSERT_EQ(changed.size(), 1U);
    EXPECT_EQ(changed[0].first, "application_name");
    variables.rollback();
    EXPECT_EQ(variables.take_reports().size(), 1U) << "rolled back: reported again";
    set(variables, "application_name", {"x"});
    set(variables, "application_name", {""});
    EXPECT_TRUE(variables.take_reports().empty());
}

TEST(SessionVariables, TransactionsHaveTheirOwnLevel) {
    SessionVariables variables({.user = "ann"});
    EXPECT_EQ(shown(variables, "transaction_isolation"), "read committed");
    variables.begin_transaction("serializable", true);
    EXPECT_EQ(shown(variables, "transaction_isolation"), "serializable");
    EXPECT_TRUE(variables.transaction_read_only());
    variables.commit();
    EXPECT_EQ(shown(variables, "transaction_isolation"), "read committed");
    EXPECT_FALSE(variables.transaction_read_only());
    set(variables, "default_transaction_read_only", {"on"});
    variables.begin_transaction(std::nullopt, std::nullopt);
    EXPECT_TRUE(variables.transaction_read_only());
}

TEST(SessionVariables, WhatActsIsCopiedToTheSession) {
    SessionVariables variables({.user = "ann"});
    Session session;
    variables.apply_to(session);
    EXPECT_TRUE(session.settings.search_path.empty());
    EXPECT_EQ(session.settings.time_zone, "UTC");
    set(variables, "search_path", {"$user", "s1", "public", "pg_catalog", "s1", "Mixed"});
    set(variables, "timezone", {"Asia/Kolkata"});
    set(variables, "statement_timeout", {"700ms"});
    set(variables, "default_transaction_read_only", {"on"});
    set(variables, "application_name", {"tool"});
    variables.apply_to(session);
    EXPECT_EQ(session.settings.search_path, (Values{"s1", "main", "Mixed"}));
    EXPECT_EQ(session.settings.time_zone, "Asia/Kolkata");
    EXPECT_EQ(session.statement_timeout_ms, 700);
    EXPECT_TRUE(session.default_read_only);
    EXPECT_EQ(session.client_name, "tool");
}

TEST(SessionVariables, ClientsCannotFillTheGatewaysMemory) {
    SessionVariables variables({.user = "ann"});
    EXPECT_EQ(set(variables, "application_name", {std::string(20'000, 'x')}), "54000");
    int taken = 0;
    while (taken < 2000 && variables.set("x.v" + std::to_string(taken), {"1"}, false).ok()) taken++;
    EXPECT_EQ(taken, 1000);
    EXPECT_TRUE(variables.set("x.v1", {"2"}, false).ok());
}

TEST(SessionVariables, Identifiers) {
    EXPECT_EQ(*split_identifiers(" A, \"B c\" ,\"d\"\"e\""), (Values{"a", "B c", "d\"e"}));
    EXPECT_TRUE(split_identifiers("  ")->empty());
    for (const char *bad : {"a,", ",a", "\"a", "a b", "a\"b\""})
        EXPECT_FALSE(split_identifiers(bad).has_value()) << bad;
    EXPECT_EQ(quote_identifier("plain_1"), "plain_1");
    EXPECT_EQ(quote_identifier("1a"), "\"1a\"");
    EXPECT_EQ(quote_identifier("a\"b"), "\"a\"\"b\"");
    EXPECT_EQ(quote_identifier(""), "\"\"");
}

TEST(TimeZones, NamesAndOffsets) {
    for (const auto &[text, expected] :
         std::vector<std::pair<std::string, std::string>>{{"utc", "UTC"},
                                                          {"Z", "UTC"},
                                                          {"america/new_york", "America/New_York"},
                                                          {"+05", "Etc/GMT-5"},
                                                          {"5", "Etc/GMT-5"},
                                                          {"-07:00", "Etc/GMT+7"},
                                                          {"+00:00", "UTC"},
                                                          {"0", "UTC"},
                                                          {"GMT-3", "Etc/GMT-3"},
                                                          {"UTC+02:00", "Etc/GMT+2"},
                                                          {"Zulu", "Zulu"},
                                                          {"act", "ACT"}}) {
        EXPECT_EQ(find_time_zone(text).value_or("none"), expected) << text;
    }
    for (const char *bad : {"", "Nowhere", "+05:30", "99", "-13", "+", "5x", "Europe/Pari"}) {
        EXPECT_FALSE(find_time_zone(bad).has_value()) << bad;
    }
}

}  // namespace
}  // namespace roost::service
