#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "sql/lexer.h"
#include "sql/statement.h"

namespace roost::sql {
namespace {

// The state that the corpus assumes: catalog lake with orders, customers and v_big, a session's staging prefix.
GuardPolicy corpus_policy() {
    GuardPolicy policy;
    policy.catalogs = {"lake"};
    policy.staging_prefix = "s3://lake/staging/SESSION/";
    policy.is_table = [](const TableName &name) {
        return name.table == "orders" || name.table == "customers" || name.table == "v_big" || name.table == "data.csv";
    };
    return policy;
}

Status judge(std::string_view sql, Context context, const GuardPolicy &policy) {
    const auto statements = parse(sql);
    if (!statements.ok()) return statements.status();
    return check_all(*statements, context, policy);
}

struct CorpusLine {
    std::string id, context, verdict, kind, sql, note;
};

std::vector<CorpusLine> read_corpus(const char *path) {
    std::ifstream file(path);
    std::vector<CorpusLine> lines;
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
        std::vector<std::string> fields(1);
        for (const char c : line) {
            if (c == '\t')
                fields.emplace_back();
            else
                fields.back() += c;
        }
        if (fields.size() == 6) lines.push_back({fields[0], fields[1], fields[2], fields[3], fields[4], fields[5]});
    }
    return lines;
}

// Lines that say what DuckDB's parser does with commands that roost answers itself in a session (the pgwire contract
// has them): denied in oneshot, allowed in a session.
const std::map<std::string, const char *> roost_commands = {
    {"G482", "DISCARD ALL"}, {"G483", "DECLARE … CURSOR"}, {"G488", "SET LOCAL"},
    {"G489", "RESET ALL"},   {"G515", "DEALLOCATE ALL"},
};

TEST(GuardCorpus, every_verdict_is_as_the_corpus_says) {
    const std::vector<CorpusLine> lines = read_corpus("sql/testdata/guard.tsv");
    ASSERT_EQ(lines.size(), 516u);
    const GuardPolicy policy = corpus_policy();
    for (const CorpusLine &line : lines) {
        for (const Context context : {Context::oneshot, Context::session}) {
            const char *name = context == Context::oneshot ? "oneshot" : "session";
            if (line.context != "both" && line.context != name) continue;
            const Status status = judge(line.sql, context, policy);
            bool allow = line.verdict == "allow";
            if (context == Context::session && roost_commands.count(line.id) != 0) allow = true;
            EXPECT_EQ(status.ok(), allow)
                << line.id << ' ' << name << ": " << line.sql << "\n  " << line.note << "\n  " << status.to_string();
            if (!status.ok() && status.code() == Code::not_allowed) EXPECT_NE(status.error().rule, "") << line.id;
            if (!status.ok() && line.kind != "parse") {
                EXPECT_NE(status.code(), Code::syntax_error) << line.id << ' ' << status.to_string();
            }
        }
    }
}

}  // namespace
}  // namespace roost::sql
