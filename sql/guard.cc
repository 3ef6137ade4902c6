#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/wall.h"
#include "duckdb/parser/expression/list.hpp"
#include "duckdb/parser/parsed_data/alter_table_info.hpp"
#include "duckdb/parser/parsed_data/copy_info.hpp"
#include "duckdb/parser/parsed_data/create_table_info.hpp"
#include "duckdb/parser/parsed_data/create_type_info.hpp"
#include "duckdb/parser/parsed_data/drop_info.hpp"
#include "duckdb/parser/query_node/select_node.hpp"
#include "duckdb/parser/statement/list.hpp"
#include "duckdb/parser/statement/multi_statement.hpp"
#include "duckdb/parser/tableref/list.hpp"
#include "sql/guard_names.h"
#include "sql/guard_session.h"
#include "sql/lexer.h"
#include "sql/rules.h"
#include "sql/session_variables.h"
#include "sql/statement.h"
#include "sql/tree.h"
#include "sql/walk.h"

namespace roost::sql {
namespace {

// Calls that the grammar or the binder knows without a catalog entry.
constexpr std::string_view grammar_calls[] = {"unnest", "unlist", "grouping", "grouping_id"};

// Options of COPY that change neither where data goes nor what the process may reach.
constexpr std::string_view copy_options[] = {"all_varchar",
                                             "allow_quoted_nulls",
                                             "append",
                                             "array",
                                             "auto_detect",
                                             "codec",
                                             "columns",
                                             "comment",
                                             "compression",
                                             "compression_level",
                                             "date_format",
                                             "dateformat",
                                             "decimal_separator",
                                             "delim",
                                             "delimiter",
                                             "encoding",
                                             "escape",
                                             "file_extension",
                                             "file_size_bytes",
                                             "filename_pattern",
                                             "force_not_null",
                                             "force_null",
                                             "force_quote",
                                             "format",
                                             "freeze",
                                             "header",
                                             "hive_file_pattern",
                                             "hive_partitioning",
                                             "hive_types",
                                             "hive_types_autocast",
                                             "ignore_errors",
                                             "max_line_size",
                                             "maximum_line_size",
                                             "maximum_object_size",
                                             "names",
                                             "new_line",
                                             "normalize_names",
                                             "null",
                                             "null_padding",
                                             "nullstr",
                                             "overwrite",
                                             "overwrite_or_ignore",
                                             "parallel",
                                             "parquet_version",
                                             "partition_by",
                                             "per_thread_output",
                                             "prefix",
                                             "preserve_order",
                                             "quote",
                                             "records",
                                             "row_group_size",
                                             "row_group_size_bytes",
                                             "row_groups_per_file",
                                             "sample_size",
                                             "sep",
                                             "skip",
                                             "strict_mode",
                                             "suffix",
                                             "timestamp_format",
                                             "timestampformat",
                                             "types",
                                             "union_by_name",
                                             "write_partition_columns"};

constexpr std::string_view copy_formats[] = {"csv", "parquet", "json", "text", "binary"};
constexpr std::string_view file_readers[] = {"read_parquet", "parquet_scan",   "read_csv",    "read_csv_auto",
                                             "read_json",    "read_json_auto", "read_ndjson", "read_ndjson_auto"};
// Columns of duckdb_databases() that tell no path.
constexpr std::string_view database_columns[] = {"database_name", "database_oid", "type",
                                                 "internal",      "readonly",     "comment"};

template <size_t N>
bool contains(const std::string_view (&list)[N], std::string_view folded) {
    return std::find(std::begin(list), std::end(list), folded) != std::end(list);
}

bool is_constant(const duckdb::ParsedExpression &expression) {
    return expression.GetExpressionClass() == duckdb::ExpressionClass::CONSTANT;
}

// The text of a string constant; null for anything else.
const std::string *string_constant(const duckdb::ParsedExpression &expression) {
    if (!is_constant(expression)) return nullptr;
    const auto &value = expression.Cast<duckdb::ConstantExpression>().value;
    if (value.IsNull() || value.type().id() != duckdb::LogicalTypeId::VARCHAR) return nullptr;
    return &duckdb::StringValue::Get(value);
}

// A literal as written: constants, bare words, signs, casts of literals, and lists, structs and rows of them.
bool is_literal(const duckdb::ParsedExpression &expression) {
    using duckdb::ExpressionClass;
    const auto all = [](const auto &children) {
        return std::all_of(children.begin(), children.end(), [](const auto &child) { return is_literal(*child); });
    };
    switch (expression.GetExpressionClass()) {
        case ExpressionClass::CONSTANT:
            return true;
        case ExpressionClass::COLUMN_REF:
            return !expression.Cast<duckdb::ColumnRefExpression>().IsQualified();
        case ExpressionClass::STAR:
            return !expression.Cast<duckdb::StarExpression>().expr;
        case ExpressionClass::CAST:
            return is_literal(*expression.Cast<duckdb::CastExpression>().child);
        case ExpressionClass::OPERATOR:
            return expression.GetExpressionType() == duckdb::ExpressionType::ARRAY_CONSTRUCTOR &&
                   all(expression.Cast<duckdb::OperatorExpression>().children);
        case ExpressionClass::FUNCTION: {
            const auto &call = expression.Cast<duckdb::FunctionExpression>();
            static constexpr std::string_view constructors[] = {"row", "list_value", "struct_pack", "map", "-", "+"};
            return contains(constructors, fold(call.function_name)) && all(call.children);
        }
        default:
            return false;
    }
}

std::string statement_rule(const duckdb::SQLStatement &statement) {
    std::string name = fold(duckdb::StatementTypeToString(statement.type));
    if (statement.type == duckdb::StatementType::CREATE_STATEMENT) name = "create_secret";
    if (statement.type == duckdb::StatementType::DROP_STATEMENT) name = "drop_secret";
    if (statement.type == duckdb::StatementType::ALTER_STATEMENT) name = "alter_database";
    if (name.ends_with("_statement")) name.resize(name.size() - 10);
    return "statement:" + name;
}

// Judges one parse tree.
class Guard : public Visitor {
public:
    Guard(const Statement &statement, const Tree &tree, uint32_t offset, Context context, const GuardPolicy &policy)
        : statement_(statement), tree_(tree), offset_(offset), context_(context), policy_(policy) {}

    Status on_statement(const duckdb::SQLStatement &statement) override;
    Status on_name(const NameUse &use) override {
        return located(check_name(use), use.location ? duckdb::optional_idx(*use.location) : duckdb::optional_idx());
    }
    Status on_function(const duckdb::FunctionExpression &call, bool in_from) override {
        return located(check_function(call, in_from), call.GetQueryLocation());
    }
    Status on_window(const duckdb::WindowExpression &window) override {
        return located(check_window(window), window.GetQueryLocation());
    }
    Status on_type(const duckdb::TypeExpression &type) override {
        return located(check_type(type), type.GetQueryLocation());
    }
    Status on_show(const duckdb::ShowRef &show) override { return located(check_show(show), show.query_location); }
    Status on_select(const duckdb::SelectNode &select) override;

private:
    // An error with the place it is about; counted only for errors, because counting walks the text.
    Status located(Status status, duckdb::optional_idx location) const {
        if (status.ok() || !location.IsValid()) return status;
        return std::move(status).with_position(offset_ + tree_.position(location.GetIndex()));
    }
    Status check_name(const NameUse &use) const;
    Status check_function(const duckdb::FunctionExpression &call, bool in_from) const;
    Status check_window(const duckdb::WindowExpression &window) const;
    Status check_type(const duckdb::TypeExpression &type) const;
    Status check_show(const duckdb::ShowRef &show) const;
    Status refuse_statement(const duckdb::SQLStatement &statement) const;
    Status check_create(const duckdb::CreateInfo &info);
    Status check_alter(const duckdb::SQLStatement &statement);
    void allow_partition_transforms(const duckdb::vector<duckdb::unique_ptr<duckdb::ParsedExpression>> &keys);
    Status check_copy(const duckdb::CopyInfo &info) const;
    Status check_copy_option(const std::string &name, const duckdb::ParsedExpression *value) const;
    Status check_conditional(const duckdb::FunctionExpression &call, const std::string &name, FunctionKind kind) const;
    Status check_current_setting(const duckdb::FunctionExpression &call) const;
    Status check_reader(const duckdb::FunctionExpression &call) const;
    Status check_name_argument(const duckdb::FunctionExpression &call, const std::string &name) const;
    Status check_call(const std::string &catalog, const std::string &schema, const std::string &name, bool in_from,
                      bool *conditional, FunctionKind *kind) const;

    const Statement &statement_;
    const Tree &tree_;
    const uint32_t offset_;  // characters before the tree's text in the original text
    const Context context_;
    const GuardPolicy &policy_;
    bool in_multi_ = false;
    uint32_t statements_seen_ = 0;
    std::set<const duckdb::ParsedExpression *> allowed_calls_;
};

Status Guard::refuse_statement(const duckdb::SQLStatement &statement) const {
    const std::string rule = statement_rule(statement);
    return refuse(rule, "the statement " + rule.substr(rule.find(':') + 1) + " is not allowed here",
                  "the pool's operators do this, or nobody");
}

Status Guard::on_statement(const duckdb::SQLStatement &statement) {
    using duckdb::StatementType;
    const bool root = statements_seen_++ == 0;
    switch (statement.type) {
        case StatementType::SELECT_STATEMENT:
        case StatementType::INSERT_STATEMENT:
        case StatementType::UPDATE_STATEMENT:
        case StatementType::DELETE_STATEMENT:
        case StatementType::MERGE_INTO_STATEMENT:
            return Status();
        case StatementType::EXPLAIN_STATEMENT:
            return root ? Status() : refuse_statement(statement);
        case StatementType::MULTI_STATEMENT:
            in_multi_ = true;
            return Status();
        case StatementType::CREATE_STATEMENT: {
            const auto &info = *statement.Cast<duckdb::CreateStatement>().info;
            return info.type == duckdb::CatalogType::SECRET_ENTRY ? refuse_statement(statement) : check_create(info);
        }
        case StatementType::ALTER_STATEMENT:
            return check_alter(statement);
        case StatementType::DROP_STATEMENT:
            switch (statement.Cast<duckdb::DropStatement>().info->type) {
                case duckdb::CatalogType::TABLE_ENTRY:
                case duckdb::CatalogType::VIEW_ENTRY:
                case duckdb::CatalogType::SCHEMA_ENTRY:
                case duckdb::CatalogType::INDEX_ENTRY:
                case duckdb::CatalogType::SEQUENCE_ENTRY:
                case duckdb::CatalogType::TYPE_ENTRY:
                case duckdb::CatalogType::MACRO_ENTRY:
                case duckdb::CatalogType::TABLE_MACRO_ENTRY:
                    return Status();
                default:
                    return refuse_statement(statement);
            }
        case StatementType::COPY_STATEMENT:
            if (context_ == Context::oneshot) {
                return refuse("statement:copy", "COPY is a statement of sessions", "open a session");
            }
            return check_copy(*statement.Cast<duckdb::CopyStatement>().info);
        case StatementType::SET_STATEMENT:
            if (root && statement.Cast<duckdb::SetStatement>().scope == duckdb::SetScope::VARIABLE) return Status();
            return refuse_statement(statement);
        case StatementType::EXECUTE_STATEMENT:
            return root && statement_.kind == Kind::execute ? Status() : refuse_statement(statement);
        default:
            return refuse_statement(statement);
    }
}

// The lake has no options of tables; those of other engines name paths.
Status refuse_table_options() {
    return refuse("table_option", "options of tables (WITH, SET (…)) are not supported", "leave them out");
}

// bucket(8, column) among the keys of a partitioned table is the lake's word for a transform, and no function.
void Guard::allow_partition_transforms(const duckdb::vector<duckdb::unique_ptr<duckdb::ParsedExpression>> &keys) {
    for (const auto &key : keys) {
        if (key->GetExpressionClass() != duckdb::ExpressionClass::FUNCTION) continue;
        const auto &call = key->Cast<duckdb::FunctionExpression>();
        const bool plain = equals_folded(call.function_name, "bucket") && call.schema.empty() && call.catalog.empty() &&
                           call.children.size() == 2 && is_constant(*call.children[0]) &&
                           call.children[1]->GetExpressionClass() == duckdb::ExpressionClass::COLUMN_REF;
        if (plain) allowed_calls_.insert(&call);
    }
}

Status Guard::check_alter(const duckdb::SQLStatement &statement) {
    const auto &info = *statement.Cast<duckdb::AlterStatement>().info;
    if (info.type == duckdb::AlterType::ALTER_DATABASE) return refuse_statement(statement);
    if (info.type != duckdb::AlterType::ALTER_TABLE) return Status();
    const auto type = static_cast<const duckdb::AlterTableInfo &>(info).alter_table_type;
    if (type == duckdb::AlterTableType::SET_PARTITIONED_BY) {
        allow_partition_transforms(static_cast<const duckdb::SetPartitionedByInfo &>(info).partition_keys);
    }
    const bool options =
        type == duckdb::AlterTableType::SET_TABLE_OPTIONS || type == duckdb::AlterTableType::RESET_TABLE_OPTIONS;
    return options ? refuse_table_options() : Status();
}

Status Guard::check_create(const duckdb::CreateInfo &info) {
    if (info.type == duckdb::CatalogType::TABLE_ENTRY) {
        const auto &table = static_cast<const duckdb::CreateTableInfo &>(info);
        if (!table.options.empty()) return refuse_table_options();
        allow_partition_transforms(table.partition_keys);
    }
    if (context_ == Context::session) return Status();
    if (!info.temporary && !equals_folded(info.schema, "temp") && !equals_folded(info.catalog, "temp")) return Status();
    // PIVOT makes a type of its own; it lives as long as the statement's connection.
    if (in_multi_ && info.type == duckdb::CatalogType::TYPE_ENTRY &&
        static_cast<const duckdb::CreateTypeInfo &>(info).name.rfind("__pivot_enum_", 0) == 0) {
        return Status();
    }
    return refuse("temp:oneshot", "a temporary object needs a session to live in", "open a session");
}

Status Guard::check_name(const NameUse &use) const {
    const bool defines = use.place == NameUse::Place::define;
    ROOST_RETURN_IF_ERROR(check_qualifiers(use.name, use.place != NameUse::Place::read, policy_));
    // The only qualifier: `temp.t` is the catalog before it is a schema.
    const std::string &outermost = use.name.catalog.empty() ? use.name.schema : use.name.catalog;
    if (context_ == Context::oneshot && use.object != NameUse::Object::schema && equals_folded(outermost, "temp")) {
        return refuse("temp:oneshot", "temporary objects live in a session", "open a session");
    }
    if (use.place == NameUse::Place::read) return check_relation(use.name, policy_);
    if (defines && use.object == NameUse::Object::macro) {
        for (const FunctionEntry &entry : find_functions(fold(use.name.table))) {
            if (entry.kind == FunctionKind::view || entry.kind == FunctionKind::pragma) continue;
            return refuse("macro:" + fold(use.name.table),
                          "\"" + use.name.table + "\" is the name of a function of the engine",
                          "give the macro a name of its own");
        }
    }
    return use.from_item ? check_not_a_path(use.name, policy_) : Status();
}

// What the tables say of a call: fine, refused, or to be looked at by its arguments.
Status Guard::check_call(const std::string &catalog, const std::string &schema, const std::string &name, bool in_from,
                         bool *conditional, FunctionKind *kind) const {
    if (is_metadata_catalog(catalog) || is_metadata_catalog(schema)) {
        return refuse("catalog:metadata", "the lake's metadata catalog may not be used", "use information_schema");
    }
    const auto of_place = [&](FunctionKind kind) {
        const bool table =
            kind == FunctionKind::table || kind == FunctionKind::table_macro || kind == FunctionKind::lake_macro;
        const bool scalar =
            kind == FunctionKind::scalar || kind == FunctionKind::macro || kind == FunctionKind::aggregate;
        return in_from ? table : scalar;
    };
    bool known = false;
    bool forbidden_elsewhere = false;
    for (const FunctionEntry &entry : find_functions(name)) {
        const bool here = of_place(entry.kind);
        if (entry.verdict == Verdict::forbidden && entry.kind != FunctionKind::view) {
            if (here) {
                return refuse("function:" + name, "the function " + name + " is not allowed here",
                              "read tables of the lake; load files with COPY");
            }
            forbidden_elsewhere |= entry.kind != FunctionKind::pragma;
        }
        if (!here) continue;
        known = true;
        if (entry.verdict == Verdict::conditional) {
            *conditional = true;
            *kind = entry.kind;
        }
    }
    if (known || (!in_from && contains(grammar_calls, name))) return Status();
    if (policy_.is_macro && policy_.is_macro(name) && !forbidden_elsewhere) return Status();
    return refuse("function:" + name, "function " + name + " does not exist or is not available",
                  "duckdb_functions() lists the engine's functions")
        .with_sqlstate(forbidden_elsewhere ? "42501" : "42883");
}

Status Guard::check_function(const duckdb::FunctionExpression &call, bool in_from) const {
    if (allowed_calls_.count(&call) != 0) return Status();
    const std::string name = fold(call.function_name);
    if (in_from && contains(file_readers, name) && context_ == Context::session && check_reader(call).ok())
        return Status();
    bool conditional = false;
    FunctionKind kind = FunctionKind::scalar;
    ROOST_RETURN_IF_ERROR(check_call(call.catalog, call.schema, name, in_from, &conditional, &kind));
    ROOST_RETURN_IF_ERROR(check_name_argument(call, name));
    return conditional ? check_conditional(call, name, kind) : Status();
}

Status Guard::check_window(const duckdb::WindowExpression &window) const {
    bool conditional = false;
    FunctionKind kind = FunctionKind::aggregate;
    const std::string name = fold(window.function_name);
    ROOST_RETURN_IF_ERROR(check_call(window.catalog, window.schema, name, false, &conditional, &kind));
    if (!conditional) return Status();
    return refuse("function:" + name, "the function " + name + " is not allowed here", "call it without OVER");
}

// Functions whose text argument names a catalog object: it has to be a literal, and not one of the metadata.
Status Guard::check_name_argument(const duckdb::FunctionExpression &call, const std::string &name) const {
    static constexpr std::string_view takes_name[] = {"nextval", "currval", "pragma_show", "pragma_table_info"};
    if (!contains(takes_name, name)) return Status();
    for (const auto &child : call.children) {
        const std::string *text = string_constant(*child);
        if (text == nullptr) {
            return refuse("function:" + name, "the argument of " + name + " must be a literal",
                          "write the name itself");
        }
        if (fold(*text).find("__ducklake_metadata") != std::string::npos) {
            return refuse("catalog:metadata", "the lake's metadata catalog may not be used", "use information_schema");
        }
    }
    return Status();
}

Status Guard::check_conditional(const duckdb::FunctionExpression &call, const std::string &name,
                                FunctionKind kind) const {
    const auto own = [&](std::string_view catalog) {
        return std::any_of(policy_.catalogs.begin(), policy_.catalogs.end(),
                           [&](const std::string &entry) { return equals_folded(catalog, fold(entry)); });
    };
    if (name == "current_setting") return check_current_setting(call);
    if (kind == FunctionKind::lake_macro) {
        // lake.snapshots(), lake.main.snapshots(), or unqualified in the current catalog.
        const std::string &catalog = call.catalog.empty() ? call.schema : call.catalog;
        if (catalog.empty() || own(catalog)) return Status();
        return refuse("catalog:" + fold(catalog), "the catalog \"" + catalog + "\" may not be used",
                      "name your own catalog");
    }
    const std::string *catalog = call.children.empty() ? nullptr : string_constant(*call.children[0]);
    if (catalog != nullptr && own(*catalog)) return Status();
    return refuse("function:" + name,
                  "the first argument of " + name + " must be the name of your catalog, as a literal",
                  "write it as a string");
}

Status Guard::check_current_setting(const duckdb::FunctionExpression &call) const {
    const std::string *text = call.children.empty() ? nullptr : string_constant(*call.children[0]);
    const bool others_constant =
        std::all_of(call.children.begin(), call.children.end(), [](const auto &child) { return is_literal(*child); });
    if (text == nullptr || !others_constant) {
        return refuse("setting:computed", "the argument of current_setting must be a literal",
                      "write the setting's name");
    }
    const std::string name = fold(*text);
    const SettingRule rule = setting_rule(name);
    if (rule == SettingRule::allowed || rule == SettingRule::readable) return Status();
    if (rule == SettingRule::unknown && (is_postgres_variable(name) || name.find('.') != std::string::npos))
        return Status();
    return refuse("setting:" + name, "the setting \"" + name + "\" may not be read", "SHOW ALL lists what can be read");
}

// read_parquet and its like: of staged files only, with literal options.
Status Guard::check_reader(const duckdb::FunctionExpression &call) const {
    if (call.children.empty() || !call.catalog.empty() || !call.schema.empty()) return refuse("path", "no path", "");
    const auto paths = [&](const auto &children) -> Status {
        for (const auto &child : children) {
            const std::string *url = string_constant(*child);
            if (url == nullptr) return refuse("path", "the path must be a literal", "");
            ROOST_RETURN_IF_ERROR(check_staged_url(*url, policy_));
        }
        return Status();
    };
    const duckdb::ParsedExpression &first = *call.children[0];
    if (const std::string *url = string_constant(first)) {
        ROOST_RETURN_IF_ERROR(check_staged_url(*url, policy_));
    } else if (first.GetExpressionType() == duckdb::ExpressionType::ARRAY_CONSTRUCTOR) {
        ROOST_RETURN_IF_ERROR(paths(first.Cast<duckdb::OperatorExpression>().children));
    } else if (first.GetExpressionClass() == duckdb::ExpressionClass::FUNCTION &&
               equals_folded(first.Cast<duckdb::FunctionExpression>().function_name, "list_value")) {
        ROOST_RETURN_IF_ERROR(paths(first.Cast<duckdb::FunctionExpression>().children));
    } else {
        return refuse("path", "the path must be a literal", "");
    }
    for (size_t i = 1; i < call.children.size(); ++i) {
        // name = value is a comparison; name => value carries the name as its alias.
        const duckdb::ParsedExpression *value = call.children[i].get();
        if (value->GetExpressionType() == duckdb::ExpressionType::COMPARE_EQUAL) {
            value = value->Cast<duckdb::ComparisonExpression>().right.get();
        }
        if (!is_literal(*value)) return refuse("path", "the options must be literals", "");
    }
    return Status();
}

Status Guard::check_type(const duckdb::TypeExpression &type) const {
    const TableName name{type.GetCatalog(), type.GetSchema(), type.GetTypeName()};
    if (name.catalog.empty() && name.schema.empty()) return Status();
    return check_qualifiers(name, false, policy_);
}

Status Guard::check_show(const duckdb::ShowRef &show) const {
    if (show.query) return Status();
    if (show.show_type == duckdb::ShowType::SHOW_FROM) {
        // The one name in `schema` may be a catalog.
        ROOST_RETURN_IF_ERROR(check_qualifiers(TableName{show.catalog_name, show.schema_name, ""}, false, policy_));
        const std::string only = show.catalog_name.empty() ? fold(show.schema_name) : std::string();
        if (only != "memory" && only != "system") return Status();
        return refuse("catalog:" + only, "the catalog \"" + only + "\" may not be used", "name your own catalog");
    }
    static constexpr std::string_view lists[] = {"__show_tables_expanded", "\"databases\"", "\"schemas\"", "\"tables\"",
                                                 "\"variables\""};
    if (contains(lists, show.table_name)) return Status();
    return refuse("statement:show", "this form of SHOW is not allowed here", "SHOW name; SHOW TABLES; DESCRIBE table");
}

// duckdb_databases() tells paths; but dbt has to see its catalog there, so a query of the harmless columns by name may
// pass: nothing else in FROM, no star, no subquery.
Status Guard::on_select(const duckdb::SelectNode &select) {
    if (!select.from_table || select.from_table->type != duckdb::TableReferenceType::TABLE_FUNCTION) return Status();
    const auto &ref = select.from_table->Cast<duckdb::TableFunctionRef>();
    if (ref.function->GetExpressionClass() != duckdb::ExpressionClass::FUNCTION || !ref.column_name_alias.empty())
        return Status();
    const auto &call = ref.function->Cast<duckdb::FunctionExpression>();
    if (!equals_folded(call.function_name, "duckdb_databases") || !call.children.empty() || !call.schema.empty())
        return Status();
    const auto harmless = [](const duckdb::ParsedExpression &expression) {
        if (expression.GetExpressionClass() != duckdb::ExpressionClass::COLUMN_REF) return false;
        const auto &names = expression.Cast<duckdb::ColumnRefExpression>().column_names;
        return names.size() == 1 && contains(database_columns, fold(names[0]));
    };
    for (const auto &entry : select.select_list) {
        if (!harmless(*entry)) return Status();
    }
    if (select.where_clause) {
        if (select.where_clause->GetExpressionClass() != duckdb::ExpressionClass::COMPARISON) return Status();
        const auto &comparison = select.where_clause->Cast<duckdb::ComparisonExpression>();
        const auto operand = [&](const duckdb::ParsedExpression &side) { return harmless(side) || is_constant(side); };
        if (!operand(*comparison.left) || !operand(*comparison.right)) return Status();
    }
    if (!select.groups.group_expressions.empty() || select.having || select.qualify || !select.modifiers.empty())
        return Status();
    allowed_calls_.insert(&call);
    return Status();
}

Status Guard::check_copy(const duckdb::CopyInfo &info) const {
    if (info.file_path_expression) {
        return refuse("path", "the path of COPY must be a literal", "write the path itself");
    }
    const std::string &target = statement_.kind == Kind::copy ? statement_.command.name : info.file_path;
    if (target != "stdin" && target != "stdout") ROOST_RETURN_IF_ERROR(check_staging_path(info.file_path, policy_));
    for (const auto &entry : info.parsed_options) {
        ROOST_RETURN_IF_ERROR(check_copy_option(fold(entry.first), entry.second.get()));
    }
    return Status();
}

Status Guard::check_copy_option(const std::string &name, const duckdb::ParsedExpression *value) const {
    const auto no = [&](const char *why) {
        return refuse("copy_option:" + name, "the COPY option " + name + ' ' + why, "leave the option out");
    };
    if (!contains(copy_options, name)) return no("is not allowed here");
    if (value == nullptr) return Status();
    if (!is_literal(*value)) return no("must be a literal");
    if (name != "format" && name != "file_extension" && name != "filename_pattern") return Status();
    const std::string *text = string_constant(*value);
    std::string word;
    if (text == nullptr && value->GetExpressionClass() == duckdb::ExpressionClass::COLUMN_REF) {
        word = value->Cast<duckdb::ColumnRefExpression>().GetColumnName();
        text = &word;
    }
    if (text == nullptr) return no("must be one word or string");
    if (name == "format")
        return contains(copy_formats, fold(*text)) ? Status() : no("names a format that is not allowed here");
    const bool clean = std::all_of(text->begin(), text->end(), [](unsigned char c) {
        return c > 0x20 && c != 0x7F &&
               std::string_view("/\\?#%*[]").find(static_cast<char>(c)) == std::string_view::npos;
    });
    return clean && text->find("..") == std::string::npos ? Status() : no("must be part of one file name");
}

// Kinds that live in a session: roost's own commands and the engine's variables.
Status check_context(const Statement &statement, Context context) {
    const Kind kind = statement.kind;
    if (kind == Kind::other) {
        std::string name = statement.command.name == "force" ? "checkpoint" : statement.command.name;
        return refuse("statement:" + name, "the statement " + name + " is not allowed here",
                      "the pool's operators do this, or nobody");
    }
    if (context == Context::session || !(is_session_command(kind) || kind == Kind::set_variable)) return Status();
    const std::string name(kind_name(kind));
    return refuse("statement:" + name, "the statement " + name + " needs a session",
                  "open a session, or connect by the PostgreSQL protocol");
}

Status check_tree(const Statement &statement, Context context, const GuardPolicy &policy) {
    if (!statement.tree) return Status();
    // The body of PREPARE and DECLARE ends the text.
    const size_t before = statement.text.size() - statement.tree->text().size();
    const uint32_t offset =
        statement.offset + static_cast<uint32_t>(count_characters(std::string_view(statement.text).substr(0, before)));
    Guard guard(statement, *statement.tree, offset, context, policy);
    return walk(statement.tree->root(), guard);
}

Status check_parts(const Statement &statement, Context context, const GuardPolicy &policy) {
    ROOST_RETURN_IF_ERROR(check_context(statement, context));
    if (is_session_command(statement.kind)) ROOST_RETURN_IF_ERROR(check_session_command(statement, policy));
    return check_tree(statement, context, policy);
}

Status check_parsed(const Statement &statement, Context context, const GuardPolicy &policy) {
    Status status = check_parts(statement, context, policy);
    if (status.ok() || status.error().position != 0) return status;
    // What is refused as a whole stands where the statement starts.
    return std::move(status).with_position(statement.offset + 1);
}

bool tree_is_current(const Statement &statement) {
    return statement.tree && !is_session_command(statement.kind) && statement.tree->text() == statement.text;
}

// The name of the macro that a statement makes, folded; empty when it makes none.
std::string made_macro(const Statement &statement) {
    class Finder : public Visitor {
    public:
        Status on_name(const NameUse &use) override {
            if (use.place == NameUse::Place::define && use.object == NameUse::Object::macro)
                name = fold(use.name.table);
            return Status();
        }
        std::string name;
    };
    if (statement.kind != Kind::create_other || !statement.tree) return {};
    Finder finder;
    return walk(statement.tree->root(), finder).ok() ? finder.name : std::string();
}

}  // namespace

Status check(const Statement &statement, Context context, const GuardPolicy &policy) {
    if (tree_is_current(statement)) return check_parsed(statement, context, policy);
    // A session command, or a statement whose text is no longer the one that was parsed: the verdict is on the text.
    ROOST_ASSIGN_OR_RETURN(std::vector<Statement> parsed, parse(statement.text));
    if (parsed.size() != 1) {
        return refuse("statement:several", "one statement was expected", "send the statements one by one");
    }
    parsed[0].offset = statement.offset;
    return check_parsed(parsed[0], context, policy);
}

Status check_all(const std::vector<Statement> &statements, Context context, const GuardPolicy &policy) {
    if (!stands(Wall::guard)) return Status();
    GuardPolicy wider = policy;
    std::set<std::string> made;
    wider.is_macro = [&](std::string_view name) {
        return made.count(std::string(name)) != 0 || (policy.is_macro && policy.is_macro(name));
    };
    for (const Statement &statement : statements) {
        ROOST_RETURN_IF_ERROR(check(statement, context, wider));
        if (std::string name = made_macro(statement); !name.empty()) made.insert(std::move(name));
    }
    return Status();
}

}  // namespace roost::sql
