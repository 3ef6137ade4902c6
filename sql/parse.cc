#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "duckdb/main/database.hpp"
#include "duckdb/parser/expression/function_expression.hpp"
#include "duckdb/parser/parsed_data/alter_info.hpp"
#include "duckdb/parser/parsed_data/comment_on_column_info.hpp"
#include "duckdb/parser/parsed_data/copy_info.hpp"
#include "duckdb/parser/parsed_data/create_table_info.hpp"
#include "duckdb/parser/parsed_data/drop_info.hpp"
#include "duckdb/parser/query_node/select_node.hpp"
#include "duckdb/parser/statement/list.hpp"
#include "duckdb/parser/statement/multi_statement.hpp"
#include "duckdb/parser/tableref/list.hpp"
#include "sql/lexer.h"
#include "sql/rules.h"
#include "sql/session_command.h"
#include "sql/statement.h"
#include "sql/tree.h"
#include "sql/walk.h"

namespace roost::sql {
namespace {

struct KindInfo {
    std::string_view name;
    bool session_command;
    bool changes_lake;
};

// In the order of Kind.
constexpr std::array kinds = {
    KindInfo{"empty", false, false},
    KindInfo{"select", false, false},
    KindInfo{"insert", false, true},
    KindInfo{"update", false, true},
    KindInfo{"delete", false, true},
    KindInfo{"merge", false, true},
    KindInfo{"create_table", false, true},
    KindInfo{"create_table_as", false, true},
    KindInfo{"create_view", false, true},
    KindInfo{"create_schema", false, true},
    KindInfo{"create", false, true},
    KindInfo{"alter", false, true},
    KindInfo{"drop", false, true},
    KindInfo{"truncate", false, true},
    KindInfo{"comment", false, true},
    KindInfo{"explain", false, false},
    KindInfo{"describe", false, false},
    KindInfo{"copy", false, false},
    KindInfo{"begin", true, false},
    KindInfo{"commit", true, false},
    KindInfo{"rollback", true, false},
    KindInfo{"savepoint", true, false},
    KindInfo{"release", true, false},
    KindInfo{"rollback_to", true, false},
    KindInfo{"set", true, false},
    KindInfo{"reset", true, false},
    KindInfo{"show", true, false},
    KindInfo{"use", true, false},
    KindInfo{"prepare", true, false},
    KindInfo{"execute", true, false},
    KindInfo{"deallocate", true, false},
    KindInfo{"declare", true, false},
    KindInfo{"fetch", true, false},
    KindInfo{"move", true, false},
    KindInfo{"close", true, false},
    KindInfo{"discard", true, false},
    KindInfo{"listen", true, false},
    KindInfo{"unlisten", true, false},
    KindInfo{"notify", true, false},
    KindInfo{"lock", true, false},
    KindInfo{"set_constraints", true, false},
    KindInfo{"set_variable", false, false},
    KindInfo{"other", false, false},
};
static_assert(kinds.size() == static_cast<size_t>(Kind::other) + 1);

const KindInfo &info_of(Kind kind) { return kinds[static_cast<size_t>(kind)]; }

// Collects the names that a statement reads, writes and calls.
class TableLister : public Visitor {
public:
    explicit TableLister(Statement &statement) : statement_(statement) {}

    Status on_name(const NameUse &use) override {
        const bool read = use.place == NameUse::Place::read;
        if (!(read ? seen_reads_ : seen_writes_).insert(use.name).second) return Status();
        (read ? statement_.reads : statement_.writes).push_back(use.name);
        return Status();
    }
    Status on_function(const duckdb::FunctionExpression &call, bool /*in_from*/) override {
        if (!find_functions(fold(call.function_name)).empty()) return Status();
        const TableName name{call.catalog, call.schema, call.function_name};
        if (seen_calls_.insert(name).second) statement_.calls.push_back(name);
        return Status();
    }

private:
    Statement &statement_;
    std::set<TableName> seen_reads_, seen_writes_, seen_calls_;
};

std::string_view object_word(duckdb::CatalogType type) {
    switch (type) {
        case duckdb::CatalogType::TABLE_ENTRY:
            return "TABLE";
        case duckdb::CatalogType::VIEW_ENTRY:
            return "VIEW";
        case duckdb::CatalogType::SCHEMA_ENTRY:
            return "SCHEMA";
        case duckdb::CatalogType::SEQUENCE_ENTRY:
            return "SEQUENCE";
        case duckdb::CatalogType::INDEX_ENTRY:
            return "INDEX";
        case duckdb::CatalogType::TYPE_ENTRY:
            return "TYPE";
        case duckdb::CatalogType::MACRO_ENTRY:
        case duckdb::CatalogType::TABLE_MACRO_ENTRY:
            return "FUNCTION";
        case duckdb::CatalogType::SECRET_ENTRY:
            return "SECRET";
        default:
            return "";
    }
}

// The name of a statement that we have no kind for: history and errors say it.
std::string other_name(duckdb::StatementType type, std::string_view first_word) {
    switch (type) {
        case duckdb::StatementType::COPY_DATABASE_STATEMENT:
            return "copy_database";
        case duckdb::StatementType::EXPORT_STATEMENT:
            return "export";
        case duckdb::StatementType::UPDATE_EXTENSIONS_STATEMENT:
            return "update_extensions";
        default:
            return fold(first_word);
    }
}

bool is_show(const duckdb::SelectStatement &select) {
    if (select.node->type != duckdb::QueryNodeType::SELECT_NODE) return false;
    const auto &node = select.node->Cast<duckdb::SelectNode>();
    return node.from_table && node.from_table->type == duckdb::TableReferenceType::SHOW_REF;
}

// Sets kind, tag_object, returning and command for one tree. `first` is the statement's first word, folded.
class Classifier {
public:
    Classifier(Statement &statement, std::string_view first) : statement_(statement), first_(first) {}
    void classify(const duckdb::SQLStatement &root);

private:
    void create(const duckdb::CreateInfo &info);
    void copy(const duckdb::CopyInfo &info);
    void multi(const duckdb::MultiStatement &multi);
    void other(duckdb::StatementType type, std::string name = {});

    Statement &statement_;
    std::string_view first_;
};

void Classifier::other(duckdb::StatementType type, std::string name) {
    statement_.kind = Kind::other;
    statement_.command.name = name.empty() ? other_name(type, first_) : std::move(name);
}

void Classifier::classify(const duckdb::SQLStatement &root) {
    using duckdb::StatementType;
    switch (root.type) {
        case StatementType::SELECT_STATEMENT: {
            const bool show = is_show(root.Cast<duckdb::SelectStatement>()) &&
                              (first_ == "show" || first_ == "describe" || first_ == "desc" || first_ == "summarize");
            statement_.kind = show ? Kind::describe : Kind::select;
            return;
        }
        case StatementType::INSERT_STATEMENT:
            statement_.kind = Kind::insert;
            statement_.returning = !root.Cast<duckdb::InsertStatement>().returning_list.empty();
            return;
        case StatementType::UPDATE_STATEMENT:
            statement_.kind = Kind::update;
            statement_.returning = !root.Cast<duckdb::UpdateStatement>().returning_list.empty();
            return;
        case StatementType::DELETE_STATEMENT:
            statement_.kind = first_ == "truncate" ? Kind::truncate : Kind::delete_rows;
            statement_.returning = !root.Cast<duckdb::DeleteStatement>().returning_list.empty();
            return;
        case StatementType::MERGE_INTO_STATEMENT:
            statement_.kind = Kind::merge;
            statement_.returning = !root.Cast<duckdb::MergeIntoStatement>().returning_list.empty();
            return;
        case StatementType::CREATE_STATEMENT:
            return create(*root.Cast<duckdb::CreateStatement>().info);
        case StatementType::ALTER_STATEMENT: {
            const auto &info = *root.Cast<duckdb::AlterStatement>().info;
            const bool comment =
                info.type == duckdb::AlterType::SET_COMMENT || info.type == duckdb::AlterType::SET_COLUMN_COMMENT;
            if (info.type == duckdb::AlterType::ALTER_DATABASE) return other(root.type, "alter_database");
            statement_.kind = comment ? Kind::comment_on : Kind::alter;
            if (!comment) statement_.tag_object = object_word(info.GetCatalogType());
            return;
        }
        case StatementType::DROP_STATEMENT: {
            const auto type = root.Cast<duckdb::DropStatement>().info->type;
            if (type == duckdb::CatalogType::SECRET_ENTRY) return other(root.type, "drop_secret");
            statement_.kind = Kind::drop;
            statement_.tag_object = object_word(type);
            return;
        }
        case StatementType::EXPLAIN_STATEMENT:
            statement_.kind = Kind::explain;
            return;
        case StatementType::COPY_STATEMENT:
            return copy(*root.Cast<duckdb::CopyStatement>().info);
        case StatementType::SET_STATEMENT:
            if (root.Cast<duckdb::SetStatement>().scope != duckdb::SetScope::VARIABLE) return other(root.type);
            statement_.kind = Kind::set_variable;
            statement_.command.name = root.Cast<duckdb::SetStatement>().name;
            if (root.Cast<duckdb::SetStatement>().set_type == duckdb::SetType::SET) {
                const auto &value = root.Cast<duckdb::SetVariableStatement>().value;
                statement_.command.body = "SELECT (" + value->ToString() + ")";
            }
            return;
        case StatementType::MULTI_STATEMENT:
            return multi(root.Cast<duckdb::MultiStatement>());
        default:
            return other(root.type);
    }
}

void Classifier::create(const duckdb::CreateInfo &info) {
    statement_.tag_object = object_word(info.type);
    switch (info.type) {
        case duckdb::CatalogType::TABLE_ENTRY:
            statement_.kind =
                static_cast<const duckdb::CreateTableInfo &>(info).query ? Kind::create_table_as : Kind::create_table;
            return;
        case duckdb::CatalogType::VIEW_ENTRY:
            statement_.kind = Kind::create_view;
            return;
        case duckdb::CatalogType::SCHEMA_ENTRY:
            statement_.kind = Kind::create_schema;
            return;
        case duckdb::CatalogType::SECRET_ENTRY:
            return other(duckdb::StatementType::CREATE_STATEMENT, "create_secret");
        default:
            statement_.kind = Kind::create_other;
            return;
    }
}

// STDIN and STDOUT are paths of DuckDB's tree; the words and the quoted paths of that name differ only in the text.
void Classifier::copy(const duckdb::CopyInfo &info) {
    statement_.kind = Kind::copy;
    statement_.command.options["direction"] = info.is_from ? "from" : "to";
    statement_.command.name = info.file_path;
    if (info.file_path != "/dev/stdin" && info.file_path != "/dev/stdout") return;
    Lexer lexer(statement_.text);
    uint32_t depth = 0;
    for (Token token = lexer.next(); token.kind != Token::Kind::end; token = lexer.next()) {
        if (token.is_punct(statement_.text, '(')) ++depth;
        if (token.is_punct(statement_.text, ')')) --depth;
        if (depth > 0 || token.kind != Token::Kind::word) continue;
        const std::string_view word = token.in(statement_.text);
        if (equals_folded(word, "stdin") || equals_folded(word, "stdout")) statement_.command.name = fold(word);
    }
}

// What DuckDB splits one statement into: PIVOT (types, then the query) and ADD COLUMN with a default that is a call.
void Classifier::multi(const duckdb::MultiStatement &multi) {
    if (multi.statements.empty()) return other(multi.type);
    for (const auto &part : multi.statements) {
        if (part->type == duckdb::StatementType::COPY_DATABASE_STATEMENT) return other(part->type);
    }
    if (multi.statements.front()->type == duckdb::StatementType::ALTER_STATEMENT)
        return classify(*multi.statements.front());
    classify(*multi.statements.back());
}

// The highest $n; for ? marks and names their number.
uint32_t count_parameters(const duckdb::SQLStatement &root) {
    uint32_t count = 0;
    for (const auto &entry : root.named_param_map) {
        count = std::max(count, static_cast<uint32_t>(std::min<duckdb::idx_t>(entry.second, UINT32_MAX)));
        // A numbered one counts by its number even when lower ones are missing.
        if (!entry.first.empty() && entry.first.find_first_not_of("0123456789") == std::string::npos &&
            entry.first.size() < 6) {
            count = std::max(count, static_cast<uint32_t>(std::stoul(entry.first)));
        }
    }
    return count;
}

std::string first_word(std::string_view text) {
    Lexer lexer(text);
    Token token = lexer.next();
    while (token.is_punct(text, '(')) token = lexer.next();
    return token.kind == Token::Kind::word ? fold(token.in(text)) : std::string();
}

// Moves an error about a part of a text to where the part stands in it. Both counts are characters.
Status moved(const Status &status, uint32_t by) {
    Error error = status.error();
    if (error.position > 0) error.position += by;
    return Status(std::move(error));
}

Status parse_with_engine(Statement &statement, std::string_view text, uint32_t depth_max) {
    ROOST_ASSIGN_OR_RETURN(statement.tree, Tree::parse(text, depth_max));
    const duckdb::SQLStatement &root = statement.tree->root();
    statement.param_count = count_parameters(root);
    TableLister lister(statement);
    return walk(root, lister);
}

// The statement inside PREPARE and DECLARE.
Status parse_body(Statement &statement, uint32_t depth_max) {
    const std::string &text = statement.text;
    const size_t at = text.size() - statement.command.body.size();
    const auto shift = static_cast<uint32_t>(count_characters(std::string_view(text).substr(0, at)));
    Statement body;
    body.text = statement.command.body;
    if (const Status status = parse_session_command(body); !status.ok() || body.kind != Kind::empty) {
        return Status(Code::syntax_error, "a session command cannot be prepared").with_position(shift + 1);
    }
    const Status status = parse_with_engine(statement, statement.command.body, depth_max);
    if (!status.ok()) return moved(status, shift);
    Classifier(body, first_word(body.text)).classify(statement.tree->root());
    statement.command.options["kind"] = kind_name(body.kind);
    if (statement.kind == Kind::declare && body.kind != Kind::select) {
        return Status(Code::syntax_error, "a cursor is declared for a query").with_position(shift + 1);
    }
    return Status();
}

// Everything about one statement whose text and offset are set. Positions of errors: characters in statement.text.
Status parse_statement(Statement &statement, uint32_t depth_max) {
    ROOST_RETURN_IF_ERROR(parse_session_command(statement));
    switch (statement.kind) {
        case Kind::prepare:
        case Kind::declare:
            return parse_body(statement, depth_max);
        case Kind::execute:
            return parse_with_engine(statement, statement.text, depth_max);
        case Kind::set:
            // A value that is no literal has to be SQL at least; what it is, the guard refuses.
            if (statement.command.options.count("expression") == 0) return Status();
            return Tree::parse(statement.text, depth_max).status();
        case Kind::empty:
            break;
        default:
            return Status();
    }
    ROOST_RETURN_IF_ERROR(parse_with_engine(statement, statement.text, depth_max));
    Classifier(statement, first_word(statement.text)).classify(statement.tree->root());
    return Status();
}

struct Piece {
    uint32_t begin = 0;
    uint32_t end = 0;
};

// The parts between top-level semicolons that hold at least one token. A part starts at its first token or, so that
// history keeps them, at the comments before it; it ends with its last token.
std::vector<Piece> split(std::string_view text) {
    std::vector<Piece> pieces;
    Lexer lexer(text);
    Piece piece;
    bool any = false;
    while (true) {
        const Token token = lexer.next();
        const bool end = token.kind == Token::Kind::end;
        if (end || token.is_punct(text, ';')) {
            if (any) pieces.push_back(piece);
            if (end) return pieces;
            any = false;
            piece = Piece{token.end, token.end};
            continue;
        }
        any = true;
        piece.end = token.end;
    }
}

uint32_t skip_leading_blanks(std::string_view text, Piece piece) {
    uint32_t at = piece.begin;
    while (at < piece.end) {
        const uint32_t blank = unicode_blank_bytes(text, at);
        const char c = text[at];
        if (blank == 0 && c != ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f') break;
        at += blank == 0 ? 1 : blank;
    }
    return at;
}

Status check_text(std::string_view text, const ParseLimits &limits) {
    if (text.size() > limits.text_max_bytes) {
        return Status(Code::invalid_argument,
                      "the SQL text is longer than " + std::to_string(limits.text_max_bytes) + " bytes")
            .with_name("program_limit_exceeded")
            .with_sqlstate("54000")
            .with_hint("load large values with COPY, or split the text");
    }
    const size_t valid = valid_utf8_prefix_bytes(text);
    if (valid == text.size()) return Status();
    const auto position = static_cast<uint32_t>(count_characters(text.substr(0, valid))) + 1;
    return Status(Code::invalid_argument,
                  text[valid] == '\0' ? "the SQL text holds a NUL character" : "the SQL text is not valid UTF-8")
        .with_name("invalid_encoding")
        .with_sqlstate("22021")
        .with_position(position);
}

}  // namespace

std::string_view kind_name(Kind kind) { return info_of(kind).name; }
bool is_session_command(Kind kind) { return info_of(kind).session_command; }
std::string engine_version() { return duckdb::DuckDB::LibraryVersion(); }

bool changes_lake(Kind kind) { return info_of(kind).changes_lake; }

Result<std::vector<Statement>> parse(std::string_view text, const ParseLimits &limits) {
    ROOST_RETURN_IF_ERROR(check_text(text, limits));
    const std::vector<Piece> pieces = split(text);
    std::vector<Statement> statements;
    if (pieces.empty()) {
        statements.emplace_back();
        return statements;
    }
    if (pieces.size() > limits.statements_max) {
        return Status(Code::invalid_argument,
                      "the text holds more than " + std::to_string(limits.statements_max) + " statements")
            .with_name("program_limit_exceeded")
            .with_sqlstate("54000")
            .with_hint("send the statements in several texts");
    }
    statements.reserve(pieces.size());
    uint32_t counted_bytes = 0;
    uint32_t counted_characters = 0;
    for (const Piece &piece : pieces) {
        const uint32_t begin = skip_leading_blanks(text, piece);
        counted_characters +=
            static_cast<uint32_t>(count_characters(text.substr(counted_bytes, begin - counted_bytes)));
        counted_bytes = begin;
        Statement &statement = statements.emplace_back();
        statement.text = std::string(text.substr(begin, piece.end - begin));
        statement.offset = counted_characters;
        const Status status = parse_statement(statement, limits.depth_max);
        if (!status.ok()) return moved(status, statement.offset);
    }
    return statements;
}

}  // namespace roost::sql
