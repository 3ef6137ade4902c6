#include "service/audit.h"

#include <algorithm>
#include <array>
#include <utility>

#include "service/session.h"
#include "sql/lexer.h"
#include "sql/rules.h"
#include "sql/statement.h"

namespace roost::service {
namespace {

// Words whose neighbours may be a key or a password.
constexpr std::array<std::string_view, 9> kSecretWords = {"secret",   "password", "passwd",        "token", "key_id",
                                                          "postgres", "mysql",    "authorization", "bearer"};

std::string cut(std::string_view text, size_t max_bytes) {
    if (text.size() <= max_bytes) return std::string(text);
    size_t end = max_bytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) end--;
    return std::string(text.substr(0, end)) + "…";
}

bool speaks_of_secrets(std::string_view sql) {
    const std::string folded = sql::fold(sql);
    return std::any_of(kSecretWords.begin(), kSecretWords.end(),
                       [&](std::string_view word) { return folded.find(word) != std::string::npos; });
}

std::string without_literals(std::string_view sql) {
    std::string out;
    size_t end = 0;
    sql::Lexer lexer(sql);
    for (sql::Token token = lexer.next(); token.kind != sql::Token::Kind::end; token = lexer.next()) {
        const std::string_view raw = token.in(sql);
        const auto begin = static_cast<size_t>(raw.data() - sql.data());
        // A comment between two tokens is anybody's text as well.
        if (begin > end) out += ' ';
        end = begin + raw.size();
        const bool plain = token.kind == sql::Token::Kind::word || token.kind == sql::Token::Kind::punct ||
                           token.kind == sql::Token::Kind::op || token.kind == sql::Token::Kind::parameter;
        out += plain ? raw : std::string_view("'***'");
    }
    return out;
}

}  // namespace

std::string audited_text(std::string_view sql, size_t max_bytes) {
    // Enough for max_bytes of what is left when the literals are gone, most of the time; a bound in any case.
    const std::string_view head = sql.substr(0, std::min(sql.size(), max_bytes * 4));
    return cut(speaks_of_secrets(head) ? without_literals(head) : head, max_bytes);
}

std::string rule_label(std::string_view rule) {
    const size_t colon = rule.find(':');
    if (colon == std::string_view::npos) return std::string(rule.substr(0, 64));
    const std::string_view kind = rule.substr(0, colon), name = rule.substr(colon + 1);
    const bool known = kind == "statement" || (kind == "setting" && sql::find_setting(name) != nullptr) ||
                       ((kind == "function" || kind == "plan") && !sql::find_functions(name).empty());
    return known && name.size() <= 64 ? std::string(rule) : std::string(kind) + ":other";
}

bool Audit::Allowance::take(double burst, double per_s, int64_t now_us) {
    if (since_us == 0)
        left = burst;
    else
        left = std::min(burst, left + per_s * static_cast<double>(now_us - since_us) / 1e6);
    since_us = now_us;
    if (left < 1) return false;
    left -= 1;
    return true;
}

bool Audit::allowed(const meta::AuditRecord &record) {
    const int64_t now_us = clock_.monotonic_us();
    // Who fails to log in chooses the name: the address without its port is who that is.
    const std::string caller =
        record.event == "login_failed" ? "@" + record.peer.substr(0, record.peer.rfind(':')) : record.user.to_string();
    if (!callers_.contains(caller) && callers_.size() >= limits_.callers_max) callers_.clear();
    return gathered_.size() < limits_.queue_max_records &&
           callers_[caller].take(limits_.caller_burst_records, limits_.caller_records_per_s, now_us) &&
           all_.take(limits_.all_burst_records, limits_.all_records_per_s, now_us);
}

void Audit::note(meta::AuditRecord record) {
    if (!allowed(record)) {
        left_out_++;
        return;
    }
    record.at_us = clock_.wall_us();
    gathered_.push_back(std::move(record));
}

void Audit::refused(const Session &session, std::string_view sql, const Status &refusal, const Uuid &statement) {
    const Error &error = refusal.error();
    meta::AuditRecord record;
    record.event = "statement_refused";
    record.front = session.front;
    record.peer = cut(session.peer, limits_.name_max_bytes);
    record.user = session.principal.user_id;
    record.user_name = session.principal.user_name;
    record.workspace = session.workspace;
    record.session = session.id;
    record.statement = statement;
    record.shape = sql::fingerprint(sql);
    record.rule = cut(error.rule, limits_.name_max_bytes);
    record.sqlstate = refusal.sqlstate();
    record.position = error.position;
    record.message = cut(refusal.message(), limits_.message_max_bytes);
    record.sql = audited_text(sql, limits_.sql_max_bytes);
    note(std::move(record));
}

void Audit::changed(const Principal &who, std::string_view workspace, std::string_view event, std::string_view what) {
    meta::AuditRecord record;
    record.event = std::string(event);
    record.front = "http";
    record.user = who.user_id;
    record.user_name = who.user_name;
    record.workspace = std::string(workspace);
    record.message = cut(what, limits_.message_max_bytes);
    // Never left out: an act of an admin is what an audit is for.
    record.at_us = clock_.wall_us();
    gathered_.push_back(std::move(record));
}

void Audit::login_failed(std::string_view front, std::string_view user, std::string_view peer) {
    meta::AuditRecord record;
    record.event = "login_failed";
    record.front = front;
    record.peer = cut(peer, limits_.name_max_bytes);
    record.user_name = cut(user, limits_.name_max_bytes);
    record.sqlstate = "28P01";
    note(std::move(record));
}

std::vector<meta::AuditRecord> Audit::take() {
    const int64_t now_us = clock_.monotonic_us();
    const bool due = left_out_told_us_ == 0 || now_us - left_out_told_us_ >= limits_.left_out_every_ms * 1000;
    if (left_out_ > 0 && due) {
        left_out_told_us_ = now_us;
        meta::AuditRecord record;
        record.at_us = clock_.wall_us();
        record.event = "left_out";
        record.count = std::exchange(left_out_, 0);
        record.message = "records that came faster than the audit takes them";
        gathered_.push_back(std::move(record));
    }
    return std::exchange(gathered_, {});
}

void Audit::give_back(std::vector<meta::AuditRecord> records) {
    for (meta::AuditRecord &record : records) {
        if (gathered_.size() < limits_.queue_max_records)
            gathered_.push_back(std::move(record));
        else
            left_out_ += record.count;
    }
}

}  // namespace roost::service
