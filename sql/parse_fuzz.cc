// parse, check and fingerprint on arbitrary bytes: no crash, no hang, and what they say of one text agrees.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "sql/lexer.h"
#include "sql/statement.h"

namespace {

using namespace roost;
using namespace roost::sql;

void require(bool holds, const char *what) {
    if (holds) return;
    std::fprintf(stderr, "fuzz: %s\n", what);
    std::abort();
}

// A statement on its own is what it was inside the text.
void check_statement(std::string_view whole, const Statement &statement, const GuardPolicy &policy) {
    if (statement.kind == Kind::empty) return;
    size_t at = 0;
    for (uint32_t character = 0; character < statement.offset; ++character) {
        do ++at;
        while (at < whole.size() && (static_cast<unsigned char>(whole[at]) & 0xC0) == 0x80);
    }
    require(whole.substr(at, statement.text.size()) == statement.text, "the offset does not lead to the statement");
    const auto again = parse(statement.text);
    require(again.ok() && again->size() == 1, "a statement does not parse on its own");
    require((*again)[0].kind == statement.kind, "a statement on its own is of another kind");
    require((*again)[0].reads == statement.reads, "a statement on its own reads other tables");
    const Status oneshot = check(statement, Context::oneshot, policy);
    const Status session = check(statement, Context::session, policy);
    require(!oneshot.ok() || session.ok(), "allowed in oneshot but not in a session");
    require(oneshot.ok() || !oneshot.error().rule.empty() || oneshot.code() != Code::not_allowed,
            "a refusal without a rule");
    require(!(is_session_command(statement.kind) && oneshot.ok()), "a session command passed in oneshot");
    require(!(statement.kind == Kind::other && session.ok()), "a statement of no kind passed");
    require(check((*again)[0], Context::session, policy).ok() == session.ok(), "another verdict for the same text");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    GuardPolicy policy;
    policy.catalogs = {"lake"};
    policy.staging_prefix = "s3://lake/staging/SESSION/";
    fingerprint(text);
    const auto statements = parse(text);
    if (!statements.ok()) {
        require(statements.status().error().position <= count_characters(text) + 1,
                "an error past the end of the text");
        return 0;
    }
    for (const Statement &statement : *statements) check_statement(text, statement, policy);
    return 0;
}
