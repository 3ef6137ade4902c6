#include "sql/session_command.h"

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "sql/lexer.h"
#include "sql/session_variables.h"

namespace roost::sql {
namespace {

// Reads the tokens of one statement, one ahead.
class Cursor {
public:
    explicit Cursor(std::string_view text) : text_(text), lexer_(text) { advance(); }

    const Token &token() const { return token_; }
    bool at_end() const { return token_.kind == Token::Kind::end; }
    std::string_view raw() const { return token_.in(text_); }
    std::string_view rest() const { return text_.substr(token_.begin); }
    void advance() { token_ = lexer_.next(); }
    Token peek() const {
        Lexer ahead = lexer_;
        return ahead.next();
    }
    bool peek_is(std::string_view word) const {
        const Token next = peek();
        return next.kind == Token::Kind::word && equals_folded(next.in(text_), word);
    }

    bool is(std::string_view word) const { return token_.kind == Token::Kind::word && equals_folded(raw(), word); }
    bool take(std::string_view word) {
        if (!is(word)) return false;
        advance();
        return true;
    }
    bool take_any(std::initializer_list<std::string_view> words) {
        for (const std::string_view word : words) {
            if (take(word)) return true;
        }
        return false;
    }
    bool is_symbol(std::string_view symbol) const {
        return (token_.kind == Token::Kind::op || token_.kind == Token::Kind::punct) && raw() == symbol;
    }
    bool take_symbol(std::string_view symbol) {
        if (!is_symbol(symbol)) return false;
        advance();
        return true;
    }

    Status error() const {
        const auto position = static_cast<uint32_t>(count_characters(text_.substr(0, token_.begin))) + 1;
        std::string message = "syntax error at end of input";
        if (token_.kind == Token::Kind::broken)
            message = "unterminated quoted text or comment";
        else if (!at_end())
            message = "syntax error at or near \"" + std::string(raw()) + "\"";
        return Status(Code::syntax_error, std::move(message)).with_position(position);
    }
    Status expect(std::string_view word) { return take(word) ? Status() : error(); }
    Status expect_end() const { return at_end() ? Status() : error(); }
    // An identifier, quoted or not.
    Status name(std::string *out) {
        if (token_.kind != Token::Kind::word && token_.kind != Token::Kind::quoted) return error();
        *out = identifier_value(text_, token_);
        advance();
        return Status();
    }
    Status string(std::string *out) {
        if (token_.kind != Token::Kind::string) return error();
        *out = string_value(text_, token_);
        advance();
        return Status();
    }
    // a.b.c as one folded name: how SET and SHOW name variables.
    Status dotted_name(std::string *out) {
        ROOST_RETURN_IF_ERROR(name(out));
        while (take_symbol(".")) {
            std::string part;
            ROOST_RETURN_IF_ERROR(name(&part));
            *out += '.' + part;
        }
        *out = fold(*out);
        return Status();
    }

private:
    std::string_view text_;
    Lexer lexer_;
    Token token_;
};

class SessionParser {
public:
    explicit SessionParser(Statement &statement)
        : statement_(statement), command_(statement.command), cursor_(statement.text) {}

    Status parse();

private:
    Status dispatch(const std::string &first);
    Status dispatch_objects(const std::string &first);
    Status done(Kind kind);
    Status transaction_options();
    Status begin(bool start);
    Status finish_transaction(Kind kind, bool may_name_savepoint);
    Status set();
    Status set_special(bool *taken);
    Status set_time_zone();
    Status set_values();
    Status set_value(bool *literal);
    Status set_constraints();
    Status reset();
    Status show();
    Status variable_name();
    Status prepare();
    Status execute();
    Status declare();
    Status fetch(Kind kind);
    Status fetch_direction(bool *has_direction);
    Status all_or_name(Kind kind);
    Status notify();
    Status lock();
    Status use();
    bool take_variable_words();

    Statement &statement_;
    SessionCommand &command_;
    Cursor cursor_;
};

Status SessionParser::done(Kind kind) {
    ROOST_RETURN_IF_ERROR(cursor_.expect_end());
    statement_.kind = kind;
    return Status();
}

Status SessionParser::parse() {
    if (cursor_.token().kind != Token::Kind::word) return Status();
    const std::string first = fold(cursor_.raw());
    return dispatch(first);
}

Status SessionParser::dispatch(const std::string &first) {
    if (first == "set") return set();
    if (first == "reset") return reset();
    if (first == "show") return show();
    if (first == "begin" || first == "start") return begin(first == "start");
    if (first == "commit" || first == "end") return finish_transaction(Kind::commit, false);
    if (first == "rollback" || first == "abort") return finish_transaction(Kind::rollback, first == "rollback");
    return dispatch_objects(first);
}

Status SessionParser::dispatch_objects(const std::string &first) {
    if (first == "savepoint") {
        cursor_.advance();
        ROOST_RETURN_IF_ERROR(cursor_.name(&command_.name));
        return done(Kind::savepoint);
    }
    if (first == "release") {
        cursor_.advance();
        cursor_.take("savepoint");
        ROOST_RETURN_IF_ERROR(cursor_.name(&command_.name));
        return done(Kind::release);
    }
    if (first == "prepare") return prepare();
    if (first == "execute") return execute();
    if (first == "deallocate") {
        cursor_.advance();
        if (cursor_.is("prepare") && cursor_.peek().kind != Token::Kind::end) cursor_.advance();
        return all_or_name(Kind::deallocate);
    }
    if (first == "declare") return declare();
    if (first == "fetch") return fetch(Kind::fetch);
    if (first == "move") return fetch(Kind::move);
    if (first == "close") {
        cursor_.advance();
        return all_or_name(Kind::close_cursor);
    }
    if (first == "discard") {
        cursor_.advance();
        ROOST_RETURN_IF_ERROR(cursor_.name(&command_.name));
        if (command_.name == "temporary") command_.name = "temp";
        if (command_.name != "all" && command_.name != "temp" && command_.name != "plans" &&
            command_.name != "sequences") {
            return Status(Code::syntax_error, "DISCARD takes ALL, TEMP, PLANS or SEQUENCES").with_position(9);
        }
        return done(Kind::discard);
    }
    if (first == "listen") {
        cursor_.advance();
        ROOST_RETURN_IF_ERROR(cursor_.name(&command_.name));
        return done(Kind::listen);
    }
    if (first == "unlisten") {
        cursor_.advance();
        return all_or_name(Kind::unlisten);
    }
    if (first == "notify") return notify();
    if (first == "lock") return lock();
    if (first == "use") return use();
    return Status();
}

// Only `*` and the unquoted word ALL mean everything: "all" in quotes is a name.
Status SessionParser::all_or_name(Kind kind) {
    if (cursor_.is("all") || (kind == Kind::unlisten && cursor_.is_symbol("*"))) {
        command_.name = "all";
        command_.options["all"] = "1";
        cursor_.advance();
        return done(kind);
    }
    ROOST_RETURN_IF_ERROR(cursor_.name(&command_.name));
    return done(kind);
}

// [ISOLATION LEVEL …] [READ ONLY|WRITE] [[NOT] DEFERRABLE], in any order, commas optional.
Status SessionParser::transaction_options() {
    bool after_comma = false;
    while (true) {
        if (cursor_.take("isolation")) {
            ROOST_RETURN_IF_ERROR(cursor_.expect("level"));
            if (cursor_.take("serializable"))
                command_.options["isolation"] = "serializable";
            else if (cursor_.take("repeatable")) {
                ROOST_RETURN_IF_ERROR(cursor_.expect("read"));
                command_.options["isolation"] = "repeatable read";
            } else {
                ROOST_RETURN_IF_ERROR(cursor_.expect("read"));
                const bool committed = cursor_.take("committed");
                if (!committed) ROOST_RETURN_IF_ERROR(cursor_.expect("uncommitted"));
                command_.options["isolation"] = committed ? "read committed" : "read uncommitted";
            }
        } else if (cursor_.take("read")) {
            const bool only = cursor_.take("only");
            if (!only) ROOST_RETURN_IF_ERROR(cursor_.expect("write"));
            command_.options["read_only"] = only ? "on" : "off";
            statement_.read_only_hint = only;
        } else if (cursor_.take("deferrable")) {
            command_.options["deferrable"] = "on";
        } else if (cursor_.is("not")) {
            cursor_.advance();
            ROOST_RETURN_IF_ERROR(cursor_.expect("deferrable"));
            command_.options["deferrable"] = "off";
        } else {
            return after_comma ? cursor_.error() : Status();
        }
        after_comma = cursor_.take_symbol(",");
    }
}

Status SessionParser::begin(bool start) {
    cursor_.advance();
    if (start) {
        command_.options["start"] = "1";
        // DuckDB takes START and START WORK too.
        cursor_.take_any({"transaction", "work"});
    } else {
        cursor_.take_any({"transaction", "work"});
    }
    ROOST_RETURN_IF_ERROR(transaction_options());
    return done(Kind::begin);
}

Status SessionParser::finish_transaction(Kind kind, bool may_name_savepoint) {
    cursor_.advance();
    cursor_.take_any({"transaction", "work"});
    if (may_name_savepoint && cursor_.take("to")) {
        cursor_.take("savepoint");
        ROOST_RETURN_IF_ERROR(cursor_.name(&command_.name));
        return done(Kind::rollback_to);
    }
    if (cursor_.take("and")) {
        const bool chain = !cursor_.take("no");
        ROOST_RETURN_IF_ERROR(cursor_.expect("chain"));
        if (chain) command_.options["chain"] = "on";
    }
    if (cursor_.is("prepared")) {
        return Status(Code::unimplemented, "two-phase commit is not supported").with_hint("use COMMIT or ROLLBACK");
    }
    return done(kind);
}

// TIME ZONE, TRANSACTION ISOLATION LEVEL, SESSION AUTHORIZATION: variables that are spelled as several words.
bool SessionParser::take_variable_words() {
    if (cursor_.is("time") && cursor_.peek_is("zone")) {
        cursor_.advance();
        cursor_.advance();
        command_.name = "timezone";
        return true;
    }
    if (cursor_.is("transaction") && cursor_.peek_is("isolation")) {
        cursor_.advance();
        cursor_.advance();
        if (cursor_.take("level")) command_.name = "transaction_isolation";
        return true;
    }
    if (cursor_.is("session") && cursor_.peek_is("authorization")) {
        cursor_.advance();
        cursor_.advance();
        command_.name = "session_authorization";
        return true;
    }
    return false;
}

Status SessionParser::variable_name() {
    if (take_variable_words()) return command_.name.empty() ? cursor_.error() : Status();
    return cursor_.dotted_name(&command_.name);
}

Status SessionParser::reset() {
    cursor_.advance();
    if (cursor_.is("variable") && cursor_.peek().kind != Token::Kind::end) return Status();  // DuckDB's own variables
    if (cursor_.is("session") && !cursor_.peek_is("authorization") && cursor_.peek().kind != Token::Kind::end) {
        cursor_.advance();
    } else if (cursor_.is("global") && cursor_.peek().kind != Token::Kind::end) {
        command_.options["scope"] = "global";
        cursor_.advance();
    }
    if (cursor_.is("all")) command_.options["all"] = "1";
    ROOST_RETURN_IF_ERROR(variable_name());
    return done(Kind::reset);
}

// SHOW of a variable. What is no variable's name is a table's (DuckDB), and so are SHOW TABLES, SHOW x FROM y and SHOW
// SELECT….
Status SessionParser::show() {
    cursor_.advance();
    if (cursor_.is("all")) {
        cursor_.advance();
        if (!cursor_.at_end()) return Status();
        command_.name = "all";
        command_.options["all"] = "1";
        return done(Kind::show);
    }
    if (take_variable_words()) {
        if (command_.name.empty()) return cursor_.error();
        return done(Kind::show);
    }
    if (cursor_.token().kind != Token::Kind::word && cursor_.token().kind != Token::Kind::quoted) return Status();
    std::string name;
    if (!cursor_.dotted_name(&name).ok() || !cursor_.at_end()) return Status();
    // Kept for a describe too: a session may hold a custom variable `prefix.name`, which looks like a table in a
    // schema.
    command_.name = name;
    if (!is_postgres_variable(name) && setting_rule(name) == SettingRule::unknown) return Status();
    return done(Kind::show);
}

Status SessionParser::set() {
    cursor_.advance();
    if (cursor_.is("variable") && cursor_.peek().kind != Token::Kind::op && !cursor_.peek_is("to")) return Status();
    if (cursor_.is("constraints")) return set_constraints();
    if (cursor_.is("local") && cursor_.peek().kind != Token::Kind::op && !cursor_.peek_is("to")) {
        command_.is_local = true;
        cursor_.advance();
    } else if (cursor_.is("global") && cursor_.peek().kind != Token::Kind::op && !cursor_.peek_is("to")) {
        command_.options["scope"] = "global";
        cursor_.advance();
    } else if (cursor_.is("session") && !cursor_.peek_is("authorization") && cursor_.peek().kind != Token::Kind::op &&
               !cursor_.peek_is("to")) {
        cursor_.advance();
    }
    bool taken = false;
    ROOST_RETURN_IF_ERROR(set_special(&taken));
    if (taken) return done(Kind::set);
    ROOST_RETURN_IF_ERROR(cursor_.dotted_name(&command_.name));
    if (cursor_.is("from") && cursor_.peek_is("current")) {
        return Status(Code::unimplemented, "SET … FROM CURRENT is not supported").with_hint("name the value");
    }
    if (!cursor_.take("to") && !cursor_.take_symbol("=")) return cursor_.error();
    ROOST_RETURN_IF_ERROR(set_values());
    statement_.kind = Kind::set;
    return Status();
}

// The spellings of the SQL standard and of PostgreSQL that are not `name = value`.
Status SessionParser::set_special(bool *taken) {
    *taken = true;
    if (cursor_.is("transaction") && cursor_.peek().kind == Token::Kind::word && !cursor_.peek_is("to")) {
        cursor_.advance();
        command_.name = "transaction";
        if (cursor_.take("snapshot")) return cursor_.string(&command_.options["snapshot"]);
        return transaction_options();
    }
    if (cursor_.is("characteristics") && cursor_.peek_is("as")) {
        cursor_.advance();
        cursor_.advance();
        ROOST_RETURN_IF_ERROR(cursor_.expect("transaction"));
        command_.name = "session characteristics";
        return transaction_options();
    }
    if (cursor_.is("time") && cursor_.peek_is("zone")) return set_time_zone();
    if (cursor_.is("session") && cursor_.peek_is("authorization")) {
        cursor_.advance();
        cursor_.advance();
        command_.name = "session_authorization";
    } else if (cursor_.is("role") && cursor_.peek().kind != Token::Kind::op && !cursor_.peek_is("to")) {
        cursor_.advance();
        command_.name = "role";
    } else if (cursor_.is("names")) {
        cursor_.advance();
        command_.name = "client_encoding";
        if (cursor_.at_end()) command_.is_default = true;
        if (cursor_.at_end()) return Status();
    } else if (cursor_.is("schema") && cursor_.peek().kind == Token::Kind::string) {
        cursor_.advance();
        command_.name = "search_path";
    } else if (cursor_.is("xml") && cursor_.peek_is("option")) {
        cursor_.advance();
        cursor_.advance();
        command_.name = "xmloption";
    } else {
        *taken = false;
        return Status();
    }
    if (cursor_.take("default")) {
        command_.is_default = true;
        return Status();
    }
    std::string value;
    if (cursor_.token().kind == Token::Kind::string)
        ROOST_RETURN_IF_ERROR(cursor_.string(&value));
    else
        ROOST_RETURN_IF_ERROR(cursor_.name(&value));
    command_.values.push_back(std::move(value));
    return Status();
}

// TIME ZONE 'zone' | zone | -3.5 | LOCAL | DEFAULT | INTERVAL '+00:00' HOUR TO MINUTE
Status SessionParser::set_time_zone() {
    cursor_.advance();
    cursor_.advance();
    command_.name = "timezone";
    if (cursor_.take_any({"default", "local"})) {
        command_.is_default = true;
        return Status();
    }
    if (cursor_.is("interval") && cursor_.peek().kind == Token::Kind::string) {
        cursor_.advance();
        std::string value;
        ROOST_RETURN_IF_ERROR(cursor_.string(&value));
        command_.values.push_back(std::move(value));
        command_.options["interval"] = "1";
        if (cursor_.take("hour") && cursor_.take("to")) ROOST_RETURN_IF_ERROR(cursor_.expect("minute"));
        return Status();
    }
    bool literal = true;
    ROOST_RETURN_IF_ERROR(set_value(&literal));
    return literal ? Status() : cursor_.error();
}

// One value: a string, a word, or a number with a sign. *literal is false, and nothing is taken, when it is something
// else.
Status SessionParser::set_value(bool *literal) {
    *literal = true;
    std::string value;
    const Token::Kind kind = cursor_.token().kind;
    if (kind == Token::Kind::string) {
        ROOST_RETURN_IF_ERROR(cursor_.string(&value));
    } else if (kind == Token::Kind::word || kind == Token::Kind::quoted) {
        // A word keeps its case: roles and zones are compared by those who know how.
        value =
            kind == Token::Kind::word ? std::string(cursor_.raw()) : identifier_value(statement_.text, cursor_.token());
        cursor_.advance();
        while (cursor_.take_symbol(".")) {
            std::string part;
            ROOST_RETURN_IF_ERROR(cursor_.name(&part));
            value += '.' + part;
        }
    } else if (kind == Token::Kind::number || cursor_.is_symbol("-") || cursor_.is_symbol("+")) {
        if (kind != Token::Kind::number) {
            if (cursor_.peek().kind != Token::Kind::number) {
                *literal = false;
                return Status();
            }
            if (cursor_.is_symbol("-")) value = "-";
            cursor_.advance();
        }
        value += cursor_.raw();
        command_.is_number = true;
        cursor_.advance();
    } else {
        *literal = false;
        return kind == Token::Kind::end || kind == Token::Kind::broken ? cursor_.error() : Status();
    }
    command_.values.push_back(std::move(value));
    return Status();
}

Status SessionParser::set_values() {
    const std::string rest(cursor_.rest());
    if (cursor_.is("default") && cursor_.peek().kind == Token::Kind::end) {
        command_.is_default = true;
        return Status();
    }
    bool literal = true;
    do {
        ROOST_RETURN_IF_ERROR(set_value(&literal));
    } while (literal && cursor_.take_symbol(","));
    if (!literal || !cursor_.at_end()) {
        // A call, a list, a subquery…: DuckDB would evaluate it. Its parser says whether it is SQL at all, the guard
        // refuses it.
        if (cursor_.token().kind == Token::Kind::word || cursor_.token().kind == Token::Kind::quoted)
            return cursor_.error();
        command_.options["expression"] = "1";
        command_.values.assign(1, rest);
    }
    if (command_.values.size() != 1) command_.is_number = false;
    return Status();
}

// SET CONSTRAINTS {ALL | name, …} {DEFERRED | IMMEDIATE}
Status SessionParser::set_constraints() {
    cursor_.advance();
    if (!cursor_.take("all")) {
        do {
            std::string name;
            ROOST_RETURN_IF_ERROR(cursor_.dotted_name(&name));
            command_.values.push_back(std::move(name));
        } while (cursor_.take_symbol(","));
    }
    const bool deferred = cursor_.take("deferred");
    if (!deferred) ROOST_RETURN_IF_ERROR(cursor_.expect("immediate"));
    command_.options["mode"] = deferred ? "deferred" : "immediate";
    return done(Kind::set_constraints);
}

// PREPARE name [(type, …)] AS statement
Status SessionParser::prepare() {
    cursor_.advance();
    if (cursor_.is("transaction") && cursor_.peek().kind == Token::Kind::string) {
        return Status(Code::unimplemented, "two-phase commit is not supported").with_hint("use COMMIT");
    }
    ROOST_RETURN_IF_ERROR(cursor_.name(&command_.name));
    if (cursor_.take_symbol("(")) {
        uint32_t depth = 0;
        uint32_t begin = cursor_.token().begin;
        while (true) {
            if (cursor_.at_end() || cursor_.token().kind == Token::Kind::broken) return cursor_.error();
            const bool last = depth == 0 && cursor_.is_symbol(")");
            if (last || (depth == 0 && cursor_.is_symbol(","))) {
                std::string type = statement_.text.substr(begin, cursor_.token().begin - begin);
                while (!type.empty() && (type.back() == ' ' || type.back() == '\n')) type.pop_back();
                if (type.empty()) return cursor_.error();
                command_.values.push_back(std::move(type));
            } else if (cursor_.is_symbol("(")) {
                ++depth;
            } else if (cursor_.is_symbol(")")) {
                --depth;
            }
            const bool comma = depth == 0 && cursor_.is_symbol(",");
            cursor_.advance();
            if (last) break;
            if (comma) begin = cursor_.token().begin;
        }
    }
    ROOST_RETURN_IF_ERROR(cursor_.expect("as"));
    if (cursor_.at_end()) return cursor_.error();
    command_.body = std::string(cursor_.rest());
    statement_.kind = Kind::prepare;
    return Status();
}

Status SessionParser::execute() {
    cursor_.advance();
    ROOST_RETURN_IF_ERROR(cursor_.name(&command_.name));
    if (!cursor_.at_end()) {
        if (!cursor_.is_symbol("(")) return cursor_.error();
        command_.body = std::string(cursor_.rest());
    }
    statement_.kind = Kind::execute;
    return Status();
}

// DECLARE name [BINARY] [INSENSITIVE|ASENSITIVE] [[NO] SCROLL] CURSOR [WITH|WITHOUT HOLD] FOR query
Status SessionParser::declare() {
    cursor_.advance();
    ROOST_RETURN_IF_ERROR(cursor_.name(&command_.name));
    while (!cursor_.is("cursor")) {
        if (cursor_.take("binary"))
            command_.options["binary"] = "on";
        else if (cursor_.take("insensitive"))
            command_.options["insensitive"] = "on";
        else if (cursor_.take("asensitive"))
            command_.options["insensitive"] = "on";  // snapshots: every cursor is
        else if (cursor_.take("scroll"))
            command_.options["scroll"] = "on";
        else if (cursor_.is("no") && cursor_.peek_is("scroll")) {
            cursor_.advance();
            cursor_.advance();
            command_.options["scroll"] = "off";
        } else {
            return cursor_.error();
        }
    }
    cursor_.advance();
    if (cursor_.is("with") || cursor_.is("without")) {
        const bool hold = cursor_.is("with");
        cursor_.advance();
        ROOST_RETURN_IF_ERROR(cursor_.expect("hold"));
        if (hold) command_.options["hold"] = "on";
    }
    ROOST_RETURN_IF_ERROR(cursor_.expect("for"));
    if (cursor_.at_end()) return cursor_.error();
    command_.body = std::string(cursor_.rest());
    statement_.kind = Kind::declare;
    return Status();
}

// NEXT | PRIOR | FIRST | LAST | ABSOLUTE n | RELATIVE n | n | ALL | FORWARD [n|ALL] | BACKWARD [n|ALL]
Status SessionParser::fetch_direction(bool *has_direction) {
    // A cursor may be called `next`: a direction is one only when something follows it.
    const bool last = cursor_.peek().kind == Token::Kind::end;
    *has_direction = true;
    const auto count = [&](bool required) {
        std::string value;
        if (cursor_.take("all")) {
            value = "all";
        } else {
            if (cursor_.is_symbol("-") || cursor_.is_symbol("+")) {
                if (cursor_.is_symbol("-")) value = "-";
                cursor_.advance();
                required = true;
            }
            if (cursor_.token().kind != Token::Kind::number) return required ? cursor_.error() : Status();
            value += cursor_.raw();
            cursor_.advance();
        }
        command_.options["count"] = std::move(value);
        return Status();
    };
    for (const std::string_view word : {"next", "prior", "first", "last"}) {
        if (last || !cursor_.take(word)) continue;
        command_.options["direction"] = word;
        return Status();
    }
    for (const std::string_view word : {"absolute", "relative", "forward", "backward"}) {
        if (last || !cursor_.take(word)) continue;
        command_.options["direction"] = word;
        return count(word == "absolute" || word == "relative");
    }
    if ((cursor_.is("all") && !last) || cursor_.token().kind == Token::Kind::number || cursor_.is_symbol("-") ||
        cursor_.is_symbol("+")) {
        command_.options["direction"] = "forward";
        return count(true);
    }
    *has_direction = false;
    command_.options["direction"] = "next";
    return Status();
}

Status SessionParser::fetch(Kind kind) {
    cursor_.advance();
    bool has_direction = false;
    ROOST_RETURN_IF_ERROR(fetch_direction(&has_direction));
    cursor_.take_any({"from", "in"});
    ROOST_RETURN_IF_ERROR(cursor_.name(&command_.name));
    return done(kind);
}

Status SessionParser::notify() {
    cursor_.advance();
    ROOST_RETURN_IF_ERROR(cursor_.name(&command_.name));
    if (cursor_.take_symbol(",")) {
        std::string payload;
        ROOST_RETURN_IF_ERROR(cursor_.string(&payload));
        command_.values.push_back(std::move(payload));
    }
    return done(Kind::notify);
}

// LOCK [TABLE] [ONLY] name [*], … [IN mode MODE] [NOWAIT]
Status SessionParser::lock() {
    cursor_.advance();
    cursor_.take("table");
    do {
        cursor_.take("only");
        TableName table;
        std::string part;
        ROOST_RETURN_IF_ERROR(cursor_.name(&table.table));
        std::string written = table.table;
        for (int i = 0; i < 2 && cursor_.take_symbol("."); ++i) {
            ROOST_RETURN_IF_ERROR(cursor_.name(&part));
            table.catalog = std::move(table.schema);
            table.schema = std::move(table.table);
            table.table = part;
            written += '.' + part;
        }
        cursor_.take_symbol("*");
        command_.values.push_back(std::move(written));
        statement_.reads.push_back(std::move(table));
    } while (cursor_.take_symbol(","));
    if (cursor_.take("in")) {
        std::string mode;
        while (!cursor_.is("mode")) {
            std::string word;
            ROOST_RETURN_IF_ERROR(cursor_.name(&word));
            mode += mode.empty() ? word : ' ' + word;
        }
        if (mode.empty()) return cursor_.error();
        cursor_.advance();
        command_.options["mode"] = std::move(mode);
    }
    cursor_.take("nowait");
    return done(Kind::lock_table);
}

Status SessionParser::use() {
    cursor_.advance();
    do {
        std::string part;
        ROOST_RETURN_IF_ERROR(cursor_.name(&part));
        command_.values.push_back(std::move(part));
    } while (cursor_.take_symbol("."));
    if (command_.values.size() > 2) {
        return Status(Code::syntax_error, "USE takes a catalog, a schema or catalog.schema").with_position(5);
    }
    return done(Kind::use);
}

}  // namespace

Status parse_session_command(Statement &statement) { return SessionParser(statement).parse(); }

}  // namespace roost::sql
