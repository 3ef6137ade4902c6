#include "front/http/decode.h"

#include <gtest/gtest.h>

namespace roost::http {
namespace {

QueryString query(std::string_view text) {
    auto parsed = QueryString::parse(text);
    EXPECT_TRUE(parsed.ok()) << text;
    return parsed.ok() ? *parsed : QueryString();
}

// The field an error is about, as the envelope will name it.
std::string field_of(const Status &status) {
    EXPECT_FALSE(status.ok());
    const std::string mark = "field: ";
    return status.ok() || !status.error().detail.starts_with(mark) ? "" : status.error().detail.substr(mark.size());
}

TEST(Decode, Percent) {
    EXPECT_EQ(percent_decode("a%20b+c%C5%BE", false), "a b+c\xC5\xBE");
    EXPECT_EQ(percent_decode("a+b", true), "a b");
    for (const std::string_view bad : {"%", "%2", "%zz", "a%00b", "%ff", "%c5"})
        EXPECT_FALSE(percent_decode(bad, true)) << bad;
}

TEST(Decode, TargetSegmentsAndQuery) {
    const auto target = parse_target("/api/workspaces/a%2Fb/queries?q=x%25&q=&limit=5#frag");
    ASSERT_TRUE(target.ok());
    EXPECT_EQ(target->segments, (std::vector<std::string>{"api", "workspaces", "a/b", "queries"}));
    EXPECT_EQ(target->query.all("q"), (std::vector<std::string_view>{"x%", ""}));
    EXPECT_EQ(*target->query.find("limit"), "5");
    EXPECT_EQ(target->query.find("nope"), nullptr);
    EXPECT_EQ(parse_target("/")->segments, std::vector<std::string>{""});
    EXPECT_EQ(parse_target("http://host:80/api/me?x=1")->segments, (std::vector<std::string>{"api", "me"}));
    EXPECT_EQ(parse_target("http://host")->segments, std::vector<std::string>{""});
}

TEST(Decode, BrokenTargets) {
    for (const std::string_view bad : {"", "api", "*", "host:443", "/%zz", "/a?%", "/a?b=%00", "http://h?x"}) {
        const auto target = parse_target(bad);
        ASSERT_FALSE(target.ok()) << bad;
        EXPECT_EQ(target.status().name(), "bad_request");
    }
    std::string many = "/?";
    for (int i = 0; i < 1000; ++i) many += "a=1&";
    EXPECT_FALSE(parse_target(many).ok());
    EXPECT_FALSE(parse_target(std::string(1000, '/')).ok());
}

TEST(Decode, QueryNumbers) {
    EXPECT_EQ(*query("").integer("limit", 100, 1, 1000), 100u);
    EXPECT_EQ(*query("limit=1000").integer("limit", 100, 1, 1000), 1000u);
    for (const std::string_view bad : {"limit=0", "limit=1001", "limit=x", "limit=", "limit=-1", "limit=1.5",
                                       "limit=+1", "limit=99999999999999999999999"}) {
        EXPECT_EQ(field_of(query(bad).integer("limit", 100, 1, 1000).status()), "limit") << bad;
    }
    EXPECT_EQ(*query("w=0.5").real("w", 0, 0, 30), 0.5);
    for (const std::string_view bad : {"w=31", "w=-1", "w=nan", "w=inf", "w=1e", "w=1s"}) {
        EXPECT_FALSE(query(bad).real("w", 0, 0, 30).ok()) << bad;
    }
    EXPECT_TRUE(*query("f=true").flag("f", false));
    EXPECT_FALSE(query("f=yes").flag("f", false).ok());
}

TEST(Decode, CursorIsItsStatementsOwn) {
    const Uuid id = Uuid::make(), other = Uuid::make();
    for (const uint64_t offset_rows : {uint64_t{0}, uint64_t{100}, uint64_t{3'000'000}, ~uint64_t{0}}) {
        const std::string cursor = encode_cursor(id, offset_rows);
        EXPECT_EQ(*decode_cursor(id, cursor), offset_rows);
        EXPECT_FALSE(decode_cursor(other, cursor).ok());
    }
    for (std::string bad : {"", "!!nonsense", "r", "r-", "r10", "r10-zz", "10-1", "rffffffffffffffffff-1", "r1-1"}) {
        const auto decoded = decode_cursor(id, bad);
        ASSERT_FALSE(decoded.ok()) << bad;
        EXPECT_EQ(decoded.status().name(), "invalid_cursor");
        EXPECT_EQ(field_of(decoded.status()), "cursor");
    }
}

TEST(Decode, Times) {
    EXPECT_EQ(parse_time_us("1970-01-01"), 0);
    EXPECT_EQ(parse_time_us("1970-01-02T00:00:00Z"), 86'400'000'000);
    EXPECT_EQ(parse_time_us("2024-02-29T12:30:15.250+02:00"), 1'709'202'615'250'000);
    EXPECT_EQ(parse_time_us("2024-02-29 12:30:15.25 02:00"), 1'709'202'615'250'000);  // '+' read as a blank
    EXPECT_EQ(parse_time_us("2024-02-29T12:30-0130"), 1'709'215'200'000'000);
    EXPECT_EQ(parse_time_us("1970-01-01T00:00:00.1234567Z"), 123'456);
    for (const std::string_view bad :
         {"", "2024", "2024-13-01", "2023-02-29", "2024-01-01T", "2024-01-01T25:00", "2024-01-01T10:00:00.Z",
          "2024-01-01T10:00:00+2", "2024-01-01T10:00:00Zx", "yesterday", "2024-1-1", "+024-01-01"}) {
        EXPECT_FALSE(parse_time_us(bad)) << bad;
    }
}

TEST(Decode, StatementTypes) {
    EXPECT_EQ(statement_type(sql::kind_name(sql::Kind::create_table_as)), "create");
    EXPECT_EQ(statement_type(sql::kind_name(sql::Kind::delete_rows)), "delete");
    EXPECT_EQ(statement_type("no such kind"), "other");
    EXPECT_EQ(kinds_of_type("select")->size(), 1u);
    EXPECT_EQ(kinds_of_type("create")->size(), 5u);
    EXPECT_FALSE(kinds_of_type("create_table"));
    EXPECT_FALSE(kinds_of_type(""));
}

TEST(Decode, SubmitDefaults) {
    const auto body = decode_submit(R"({"sql":"SELECT 1","unknown":{"a":[1]},"use_cache":false,"saved_query_id":7})");
    ASSERT_TRUE(body.ok()) << body.status().to_string();
    EXPECT_EQ(body->sql, "SELECT 1");
    EXPECT_EQ(body->timeout_ms, 600'000);
    EXPECT_EQ(body->wait_ms, 0);
    EXPECT_EQ(body->first_page_rows, 200u);
    EXPECT_TRUE(body->params.empty());
}

TEST(Decode, SubmitFields) {
    const auto body = decode_submit(
        R"({"sql":"s","catalog":"lake","timeout_s":1200.0,"wait_timeout_s":2.5,"first_page_limit":100000,"agent_id":null})");
    ASSERT_TRUE(body.ok());
    EXPECT_EQ(body->catalog, "lake");
    EXPECT_EQ(body->timeout_ms, 1'200'000);
    EXPECT_EQ(body->wait_ms, 2500);
    EXPECT_EQ(body->first_page_rows, 200u);
    EXPECT_EQ(decode_submit(R"({"sql":"s","first_page_limit":0})")->first_page_rows, 0u);
    EXPECT_EQ(decode_submit(R"({"sql":"s","first_page_limit":99999999999999999999})")->first_page_rows, 200u);
}

TEST(Decode, SubmitNamesTheWrongField) {
    const std::pair<std::string_view, std::string_view> cases[] = {
        {R"({})", "sql"},
        {R"({"sql":null})", "sql"},
        {R"({"sql":1})", "sql"},
        {R"({"sql":"s","catalog":[]})", "catalog"},
        {R"({"sql":"s","timeout_s":"60"})", "timeout_s"},
        {R"({"sql":"s","timeout_s":0})", "timeout_s"},
        {R"({"sql":"s","timeout_s":-1})", "timeout_s"},
        {R"({"sql":"s","timeout_s":1e300})", "timeout_s"},
        {R"({"sql":"s","timeout_s":true})", "timeout_s"},
        {R"({"sql":"s","wait_timeout_s":30.5})", "wait_timeout_s"},
        {R"({"sql":"s","wait_timeout_s":-0.1})", "wait_timeout_s"},
        {R"({"sql":"s","first_page_limit":1.5})", "first_page_limit"},
        {R"({"sql":"s","first_page_limit":-1})", "first_page_limit"},
        {R"({"sql":"s","agent_id":"node-1"})", "agent_id"},
        {R"({"sql":"s","parameters":{}})", "parameters"},
        {R"({"sql":"s","parameters":[1,[2]]})", "parameters[1]"},
        {R"({"sql":"s","parameters":[{"value":1}]})", "parameters[0]"},
        {R"({"sql":"s","parameters":[{"type":"DATE"}]})", "parameters[0]"},
        {R"({"sql":"s","parameters":[{"type":1,"value":1}]})", "parameters[0]"},
        {R"({"sql":"s","parameters":[{"type":"DATE","value":{}}]})", "parameters[0]"},
    };
    for (const auto &[text, field] : cases) {
        const auto body = decode_submit(text);
        ASSERT_FALSE(body.ok()) << text;
        EXPECT_EQ(field_of(body.status()), field) << text;
        EXPECT_EQ(default_http_status(body.status().code()), 422) << text;
    }
}

TEST(Decode, SubmitParameters) {
    const auto body =
        decode_submit(R"x({"sql":"s","parameters":[null,true,170141183460469231731687303715884105727,1.50,"a\"b",)x"
                      R"x({"type":"DECIMAL(5,2)","value":"123.45"},{"type":"BIGINT[]","value":[1,null,"x"]},)x"
                      R"x({"type":"UUID","value":null}]})x");
    ASSERT_TRUE(body.ok()) << body.status().to_string();
    const auto &params = body->params;
    ASSERT_EQ(params.size(), 8u);
    EXPECT_FALSE(params[0].value);
    EXPECT_EQ(params[1].value, "true");
    EXPECT_EQ(params[2].value, "170141183460469231731687303715884105727");
    EXPECT_EQ(params[3].value, "1.50");
    EXPECT_EQ(params[4].value, R"("a\"b")");
    EXPECT_EQ(params[5].type, "DECIMAL(5,2)");
    EXPECT_EQ(params[5].value, R"("123.45")");
    EXPECT_EQ(params[6].value, R"([1,null,"x"])");
    EXPECT_EQ(params[7].type, "UUID");
    EXPECT_FALSE(params[7].value);
    for (const Param &param : params) EXPECT_EQ(param.form, Param::Form::typed_json);
}

TEST(Decode, ManyThousandParameters) {
    std::string text = R"({"sql":"s","parameters":[)";
    for (int i = 0; i < 100'000; ++i) text += (i ? ",{\"type\":\"DATE\",\"value\":\"2024-01-01\"}" : "1");
    const auto body = decode_submit(text + "]}");
    ASSERT_TRUE(body.ok());
    EXPECT_EQ(body->params.size(), 100'000u);
}

TEST(Decode, Import) {
    const auto body = decode_import(
        R"({"schema":"main","table":"t","wait_timeout_s":5,"files":[{"name":"0.csv","original":"a/b.csv","format":"csv"},{"name":"1","format":"parquet"}]})");
    ASSERT_TRUE(body.ok()) << body.status().to_string();
    EXPECT_EQ(body->wait_ms, 5000);
    ASSERT_EQ(body->files.size(), 2u);
    EXPECT_EQ(body->files[0].original, "a/b.csv");
    EXPECT_EQ(body->files[1].original, "1");
    EXPECT_EQ(field_of(decode_import(R"({"schema":"s","table":"t"})").status()), "files");
    EXPECT_EQ(field_of(decode_import(R"({"schema":"s","table":"t","files":[]})").status()), "files");
    EXPECT_EQ(field_of(decode_import(R"({"schema":"s","table":"t","files":[1]})").status()), "files[0]");
    EXPECT_EQ(field_of(decode_import(R"({"schema":"s","table":"t","files":[{"name":"a","format":"xls"}]})").status()),
              "files[0].format");
    EXPECT_EQ(field_of(decode_import(R"({"table":"t","files":[{"name":"a","format":"csv"}]})").status()), "schema");
}

TEST(Decode, HistoryFilters) {
    const Uuid id = Uuid::make();
    const std::string uuid = id.to_string();
    const auto got =
        decode_history(query("status=done&status=failed&statement_type=create&statement_type=select&since=2024-01-01&"
                             "until=2024-01-02T00:00:00%2B00:00"
                             "&origin=session&q=50%25_x&slower_than_ms=10&sort=duration&dir=asc&limit=7&cursor=abc&all_"
                             "workspaces=true&session_id=" +
                             uuid + "&agent_id=" + uuid + "&user_id=" + uuid + "&other=1"));
    ASSERT_TRUE(got.ok()) << got.status().to_string();
    const meta::StatementFilter &filter = got->filter;
    EXPECT_EQ(filter.statuses.size(), 2u);
    EXPECT_EQ(filter.kinds.size(), 6u);
    EXPECT_EQ(filter.until_us - filter.since_us, 86'400'000'000);
    EXPECT_EQ(filter.origin, "session");
    EXPECT_EQ(filter.text, "50%_x");
    EXPECT_EQ(filter.slower_than_ms, 10);
    EXPECT_TRUE(filter.by_duration && filter.ascending && got->all_workspaces);
    EXPECT_EQ(filter.limit, 7u);
    EXPECT_EQ(filter.cursor, "abc");
    EXPECT_EQ(filter.session, id);
    EXPECT_EQ(filter.node, id);
    EXPECT_EQ(filter.user, id);
}

TEST(Decode, HistoryRefusesBadValues) {
    for (const std::string_view field :
         {"status", "statement_type", "since", "until", "origin", "session_id", "agent_id", "user_id", "slower_than_ms",
          "sort", "dir", "limit", "all_workspaces"}) {
        const auto got = decode_history(query(std::string(field) + "=nonsense"));
        ASSERT_FALSE(got.ok()) << field;
        EXPECT_EQ(field_of(got.status()), field);
    }
}

TEST(Decode, BearerToken) {
    EXPECT_EQ(bearer_token("Bearer abc"), "abc");
    EXPECT_EQ(bearer_token("bEARER  abc "), "abc");
    for (const std::string_view other : {"", "Bearer", "Bearer ", "Basic abc", "abc", "Bearerabc"}) {
        EXPECT_EQ(bearer_token(other), "") << other;
    }
}

TEST(Decode, ClientProduct) {
    EXPECT_EQ(client_product("dbt-duckhaven/0.5 duckhaven-sql-connector/0.9.0"), "dbt-duckhaven/0.5");
    EXPECT_EQ(client_product(""), "");
    EXPECT_EQ(client_product("a\xFF"), "");
    EXPECT_EQ(client_product(std::string(500, 'x')).size(), 128u);
}

TEST(DecodeCacheBody, NamesAnActionAndATable) {
    const auto body = decode_cache_body(R"({"action":"pin","table":"s.t","node":"node-1"})");
    ASSERT_TRUE(body.ok()) << body.status().message();
    EXPECT_EQ(body->action, CacheWork::Action::pin);
    EXPECT_EQ(body->table + " " + body->node, "s.t node-1");
    EXPECT_TRUE(decode_cache_body(R"({"action":"evict","table":"t"})").ok());
    for (const char *wrong : {"{}", R"({"action":"burn","table":"t"})", R"({"action":"warm"})",
                              R"({"action":1,"table":"t"})", R"({"action":"warm","table":"t","node":[]})", "nothing"}) {
        EXPECT_FALSE(decode_cache_body(wrong).ok()) << wrong;
    }
}

}  // namespace
}  // namespace roost::http
