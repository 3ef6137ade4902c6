#include "sql/walk.h"

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "duckdb/common/extra_type_info.hpp"
#include "duckdb/function/scalar_macro_function.hpp"
#include "duckdb/function/table_macro_function.hpp"
#include "duckdb/parser/constraints/check_constraint.hpp"
#include "duckdb/parser/constraints/foreign_key_constraint.hpp"
#include "duckdb/parser/expression/list.hpp"
#include "duckdb/parser/parsed_data/alter_table_info.hpp"
#include "duckdb/parser/parsed_data/comment_on_column_info.hpp"
#include "duckdb/parser/parsed_data/copy_info.hpp"
#include "duckdb/parser/parsed_data/create_index_info.hpp"
#include "duckdb/parser/parsed_data/create_macro_info.hpp"
#include "duckdb/parser/parsed_data/create_schema_info.hpp"
#include "duckdb/parser/parsed_data/create_sequence_info.hpp"
#include "duckdb/parser/parsed_data/create_table_info.hpp"
#include "duckdb/parser/parsed_data/create_type_info.hpp"
#include "duckdb/parser/parsed_data/create_view_info.hpp"
#include "duckdb/parser/parsed_data/drop_info.hpp"
#include "duckdb/parser/query_node/cte_node.hpp"
#include "duckdb/parser/query_node/recursive_cte_node.hpp"
#include "duckdb/parser/query_node/select_node.hpp"
#include "duckdb/parser/query_node/set_operation_node.hpp"
#include "duckdb/parser/statement/list.hpp"
#include "duckdb/parser/statement/multi_statement.hpp"
#include "duckdb/parser/tableref/list.hpp"
#include "sql/lexer.h"

namespace roost::sql {
namespace {

using Place = NameUse::Place;
using Object = NameUse::Object;

// Far above what the parser lets through (1,000 levels of the grammar): a tree deeper than this is not recursed into.
constexpr uint32_t tree_depth_max = 8'000;

Status unknown_node(const char *what) {
    return Status(Code::not_allowed, std::string("this kind of ") + what + " is not known here")
        .with_rule("node:unknown");
}

class Walk {
public:
    explicit Walk(Visitor &visitor) : visitor_(visitor) {}

    Status statement(const duckdb::SQLStatement &statement);

private:
    using Expressions = duckdb::vector<duckdb::unique_ptr<duckdb::ParsedExpression>>;

    // A depth counter for one frame of the recursion.
    struct Level {
        explicit Level(uint32_t &depth) : depth(depth) { ++depth; }
        ~Level() { --depth; }
        Level(const Level &) = delete;
        uint32_t &depth;
    };

    Status create(const duckdb::CreateInfo &info);
    Status create_table(const duckdb::CreateTableInfo &info);
    Status create_macro(const duckdb::CreateMacroInfo &info);
    Status create_type(const duckdb::CreateTypeInfo &info);
    Status column(const duckdb::ColumnDefinition &column);
    Status constraint(const duckdb::Constraint &constraint);
    Status alter(const duckdb::AlterInfo &info);
    Status alter_table(const duckdb::AlterTableInfo &info);
    Status drop(const duckdb::DropInfo &info);
    Status copy(const duckdb::CopyInfo &info);
    Status insert(const duckdb::InsertStatement &insert);
    Status update(const duckdb::UpdateStatement &update);
    Status remove(const duckdb::DeleteStatement &remove);
    Status merge(const duckdb::MergeIntoStatement &merge);
    Status set_info(const duckdb::UpdateSetInfo &info);

    // Walks the CTEs and leaves their names in scope, until leave(mark).
    Status ctes(const duckdb::CommonTableExpressionMap &map);
    Status query(const duckdb::QueryNode &node);
    Status query_body(const duckdb::QueryNode &node);
    Status select(const duckdb::SelectNode &select);
    Status modifier(const duckdb::ResultModifier &modifier);
    Status from(const duckdb::TableRef &ref);
    Status base_table(const duckdb::BaseTableRef &ref, Place place);
    Status target(const duckdb::TableRef &ref);
    Status pivot(const duckdb::PivotRef &ref);
    Status show(const duckdb::ShowRef &ref);
    Status table_function(const duckdb::TableFunctionRef &ref);

    Status expression(const duckdb::ParsedExpression &expression);
    Status expression_children(const duckdb::ParsedExpression &expression);
    Status function(const duckdb::FunctionExpression &call, bool in_from);
    Status window(const duckdb::WindowExpression &window);
    Status star(const duckdb::StarExpression &star);
    Status type(const duckdb::LogicalType &type);
    Status list(const Expressions &expressions);
    Status orders(const duckdb::vector<duckdb::OrderByNode> &orders);
    template <class Pointer>
    Status optional(const Pointer &pointer) {
        return pointer ? expression(*pointer) : Status();
    }
    template <class Map>
    Status option_map(const Map &map) {
        for (const auto &entry : map) ROOST_RETURN_IF_ERROR(optional(entry.second));
        return Status();
    }
    Status name(std::string catalog, std::string schema, std::string table, Place place, Object object);

    Visitor &visitor_;
    void enter(const std::string &cte) {
        scope_.push_back(fold(cte));
        names_.insert(scope_.back());
    }
    void leave(size_t mark) {
        for (; scope_.size() > mark; scope_.pop_back()) names_.erase(names_.find(scope_.back()));
    }

    std::vector<std::string> scope_;              // CTE names in scope, folded, innermost last
    std::unordered_multiset<std::string> names_;  // the same, for looking up
    uint32_t depth_ = 0;
};

Status Walk::name(std::string catalog, std::string schema, std::string table, Place place, Object object) {
    NameUse use;
    use.name = TableName{std::move(catalog), std::move(schema), std::move(table)};
    use.place = place;
    use.object = object;
    return visitor_.on_name(use);
}

Status Walk::statement(const duckdb::SQLStatement &statement) {
    using duckdb::StatementType;
    ROOST_RETURN_IF_ERROR(visitor_.on_statement(statement));
    switch (statement.type) {
        case StatementType::SELECT_STATEMENT:
            return query(*statement.Cast<duckdb::SelectStatement>().node);
        case StatementType::INSERT_STATEMENT:
            return insert(statement.Cast<duckdb::InsertStatement>());
        case StatementType::UPDATE_STATEMENT:
            return update(statement.Cast<duckdb::UpdateStatement>());
        case StatementType::DELETE_STATEMENT:
            return remove(statement.Cast<duckdb::DeleteStatement>());
        case StatementType::MERGE_INTO_STATEMENT:
            return merge(statement.Cast<duckdb::MergeIntoStatement>());
        case StatementType::CREATE_STATEMENT:
            return create(*statement.Cast<duckdb::CreateStatement>().info);
        case StatementType::ALTER_STATEMENT:
            return alter(*statement.Cast<duckdb::AlterStatement>().info);
        case StatementType::DROP_STATEMENT:
            return drop(*statement.Cast<duckdb::DropStatement>().info);
        case StatementType::COPY_STATEMENT:
            return copy(*statement.Cast<duckdb::CopyStatement>().info);
        case StatementType::EXPLAIN_STATEMENT:
            return this->statement(*statement.Cast<duckdb::ExplainStatement>().stmt);
        case StatementType::PREPARE_STATEMENT:
            return this->statement(*statement.Cast<duckdb::PrepareStatement>().statement);
        case StatementType::EXECUTE_STATEMENT:
            return option_map(statement.Cast<duckdb::ExecuteStatement>().named_values);
        case StatementType::MULTI_STATEMENT:
            for (const auto &part : statement.Cast<duckdb::MultiStatement>().statements) {
                ROOST_RETURN_IF_ERROR(this->statement(*part));
            }
            return Status();
        case StatementType::SET_STATEMENT: {
            const auto &set = statement.Cast<duckdb::SetStatement>();
            if (set.set_type != duckdb::SetType::SET) return Status();
            return optional(static_cast<const duckdb::SetVariableStatement &>(set).value);
        }
        case StatementType::CALL_STATEMENT:
            return optional(statement.Cast<duckdb::CallStatement>().function);
        default:
            return Status();  // kinds without parts that we run; on_statement has seen them
    }
}

Status Walk::insert(const duckdb::InsertStatement &insert) {
    const size_t mark = scope_.size();
    ROOST_RETURN_IF_ERROR(name(insert.catalog, insert.schema, insert.table, Place::write, Object::table));
    ROOST_RETURN_IF_ERROR(ctes(insert.cte_map));
    // A base table there is the target again, for its alias.
    if (insert.table_ref && insert.table_ref->type != duckdb::TableReferenceType::BASE_TABLE) {
        ROOST_RETURN_IF_ERROR(from(*insert.table_ref));
    }
    if (insert.select_statement) ROOST_RETURN_IF_ERROR(query(*insert.select_statement->node));
    if (insert.on_conflict_info) {
        ROOST_RETURN_IF_ERROR(optional(insert.on_conflict_info->condition));
        if (insert.on_conflict_info->set_info) ROOST_RETURN_IF_ERROR(set_info(*insert.on_conflict_info->set_info));
    }
    ROOST_RETURN_IF_ERROR(list(insert.returning_list));
    leave(mark);
    return Status();
}

Status Walk::set_info(const duckdb::UpdateSetInfo &info) {
    ROOST_RETURN_IF_ERROR(optional(info.condition));
    return list(info.expressions);
}

Status Walk::update(const duckdb::UpdateStatement &update) {
    const size_t mark = scope_.size();
    ROOST_RETURN_IF_ERROR(target(*update.table));
    ROOST_RETURN_IF_ERROR(ctes(update.cte_map));
    if (update.from_table) ROOST_RETURN_IF_ERROR(from(*update.from_table));
    if (update.set_info) ROOST_RETURN_IF_ERROR(set_info(*update.set_info));
    ROOST_RETURN_IF_ERROR(list(update.returning_list));
    leave(mark);
    return Status();
}

Status Walk::remove(const duckdb::DeleteStatement &remove) {
    const size_t mark = scope_.size();
    ROOST_RETURN_IF_ERROR(target(*remove.table));
    ROOST_RETURN_IF_ERROR(ctes(remove.cte_map));
    for (const auto &ref : remove.using_clauses) ROOST_RETURN_IF_ERROR(from(*ref));
    ROOST_RETURN_IF_ERROR(optional(remove.condition));
    ROOST_RETURN_IF_ERROR(list(remove.returning_list));
    leave(mark);
    return Status();
}

Status Walk::merge(const duckdb::MergeIntoStatement &merge) {
    const size_t mark = scope_.size();
    ROOST_RETURN_IF_ERROR(target(*merge.target));
    ROOST_RETURN_IF_ERROR(ctes(merge.cte_map));
    ROOST_RETURN_IF_ERROR(from(*merge.source));
    ROOST_RETURN_IF_ERROR(optional(merge.join_condition));
    for (const auto &entry : merge.actions) {
        for (const auto &action : entry.second) {
            ROOST_RETURN_IF_ERROR(optional(action->condition));
            if (action->update_info) ROOST_RETURN_IF_ERROR(set_info(*action->update_info));
            ROOST_RETURN_IF_ERROR(list(action->expressions));
        }
    }
    ROOST_RETURN_IF_ERROR(list(merge.returning_list));
    leave(mark);
    return Status();
}

// The target of a DML statement: always a table, never a CTE.
Status Walk::target(const duckdb::TableRef &ref) {
    if (ref.type != duckdb::TableReferenceType::BASE_TABLE) return from(ref);
    return base_table(ref.Cast<duckdb::BaseTableRef>(), Place::write);
}

Status Walk::create(const duckdb::CreateInfo &info) {
    switch (info.type) {
        case duckdb::CatalogType::TABLE_ENTRY:
            return create_table(info.Cast<duckdb::CreateTableInfo>());
        case duckdb::CatalogType::VIEW_ENTRY: {
            const auto &view = info.Cast<duckdb::CreateViewInfo>();
            ROOST_RETURN_IF_ERROR(name(info.catalog, info.schema, view.view_name, Place::define, Object::view));
            for (const auto &entry : view.types) ROOST_RETURN_IF_ERROR(type(entry));
            return view.query ? query(*view.query->node) : Status();
        }
        case duckdb::CatalogType::SCHEMA_ENTRY:
            return name(info.catalog, info.schema, "", Place::define, Object::schema);
        case duckdb::CatalogType::MACRO_ENTRY:
        case duckdb::CatalogType::TABLE_MACRO_ENTRY:
            return create_macro(info.Cast<duckdb::CreateMacroInfo>());
        case duckdb::CatalogType::TYPE_ENTRY:
            return create_type(info.Cast<duckdb::CreateTypeInfo>());
        case duckdb::CatalogType::SEQUENCE_ENTRY:
            return name(info.catalog, info.schema, info.Cast<duckdb::CreateSequenceInfo>().name, Place::define,
                        Object::sequence);
        case duckdb::CatalogType::INDEX_ENTRY: {
            const auto &index = info.Cast<duckdb::CreateIndexInfo>();
            ROOST_RETURN_IF_ERROR(name(info.catalog, info.schema, index.table, Place::define, Object::index));
            ROOST_RETURN_IF_ERROR(list(index.parsed_expressions));
            return list(index.expressions);
        }
        default:
            return Status();  // secrets and what else there is: on_statement judges by the type
    }
}

Status Walk::create_table(const duckdb::CreateTableInfo &info) {
    ROOST_RETURN_IF_ERROR(name(info.catalog, info.schema, info.table, Place::define, Object::table));
    for (const auto &entry : info.columns.Logical()) ROOST_RETURN_IF_ERROR(column(entry));
    for (const auto &entry : info.constraints) ROOST_RETURN_IF_ERROR(constraint(*entry));
    ROOST_RETURN_IF_ERROR(list(info.partition_keys));
    ROOST_RETURN_IF_ERROR(list(info.sort_keys));
    ROOST_RETURN_IF_ERROR(option_map(info.options));
    return info.query ? query(*info.query->node) : Status();
}

Status Walk::column(const duckdb::ColumnDefinition &column) {
    ROOST_RETURN_IF_ERROR(type(column.Type()));
    if (column.Generated()) return expression(column.GeneratedExpression());
    return column.HasDefaultValue() ? expression(column.DefaultValue()) : Status();
}

Status Walk::constraint(const duckdb::Constraint &constraint) {
    switch (constraint.type) {
        case duckdb::ConstraintType::NOT_NULL:
        case duckdb::ConstraintType::UNIQUE:
            return Status();
        case duckdb::ConstraintType::CHECK:
            return optional(constraint.Cast<duckdb::CheckConstraint>().expression);
        case duckdb::ConstraintType::FOREIGN_KEY: {
            const auto &info = constraint.Cast<duckdb::ForeignKeyConstraint>().info;
            return name("", info.schema, info.table, Place::read, Object::table);
        }
        default:
            return unknown_node("constraint");
    }
}

Status Walk::create_macro(const duckdb::CreateMacroInfo &info) {
    ROOST_RETURN_IF_ERROR(name(info.catalog, info.schema, info.name, Place::define, Object::macro));
    for (const auto &macro : info.macros) {
        ROOST_RETURN_IF_ERROR(option_map(macro->default_parameters));
        for (const auto &entry : macro->types) ROOST_RETURN_IF_ERROR(type(entry));
        if (macro->type == duckdb::MacroType::SCALAR_MACRO) {
            ROOST_RETURN_IF_ERROR(optional(macro->Cast<duckdb::ScalarMacroFunction>().expression));
        } else if (macro->type == duckdb::MacroType::TABLE_MACRO) {
            ROOST_RETURN_IF_ERROR(query(*macro->Cast<duckdb::TableMacroFunction>().query_node));
        } else {
            return unknown_node("macro");
        }
    }
    return Status();
}

Status Walk::create_type(const duckdb::CreateTypeInfo &info) {
    ROOST_RETURN_IF_ERROR(name(info.catalog, info.schema, info.name, Place::define, Object::type));
    ROOST_RETURN_IF_ERROR(type(info.type));
    return info.query ? statement(*info.query) : Status();
}

Status Walk::alter(const duckdb::AlterInfo &info) {
    switch (info.type) {
        case duckdb::AlterType::ALTER_TABLE:
            ROOST_RETURN_IF_ERROR(name(info.catalog, info.schema, info.name, Place::define, Object::table));
            return alter_table(static_cast<const duckdb::AlterTableInfo &>(info));
        case duckdb::AlterType::ALTER_VIEW:
            return name(info.catalog, info.schema, info.name, Place::define, Object::view);
        case duckdb::AlterType::ALTER_SEQUENCE:
        case duckdb::AlterType::CHANGE_OWNERSHIP:
            return name(info.catalog, info.schema, info.name, Place::define, Object::sequence);
        case duckdb::AlterType::SET_COMMENT:
        case duckdb::AlterType::SET_COLUMN_COMMENT:
            return name(info.catalog, info.schema, info.name, Place::define, Object::other);
        case duckdb::AlterType::ALTER_DATABASE:
            return name(info.catalog, "", "", Place::define, Object::other);
        default:
            return unknown_node("ALTER");
    }
}

Status Walk::alter_table(const duckdb::AlterTableInfo &info) {
    using duckdb::AlterTableType;
    switch (info.alter_table_type) {
        case AlterTableType::RENAME_COLUMN:
        case AlterTableType::RENAME_TABLE:
        case AlterTableType::REMOVE_COLUMN:
        case AlterTableType::SET_NOT_NULL:
        case AlterTableType::DROP_NOT_NULL:
        case AlterTableType::SET_COLUMN_COMMENT:
        case AlterTableType::REMOVE_FIELD:
        case AlterTableType::RENAME_FIELD:
        case AlterTableType::RESET_TABLE_OPTIONS:
            return Status();
        case AlterTableType::ADD_COLUMN:
            return column(static_cast<const duckdb::AddColumnInfo &>(info).new_column);
        case AlterTableType::ADD_FIELD:
            return column(static_cast<const duckdb::AddFieldInfo &>(info).new_field);
        case AlterTableType::ALTER_COLUMN_TYPE: {
            const auto &change = static_cast<const duckdb::ChangeColumnTypeInfo &>(info);
            ROOST_RETURN_IF_ERROR(type(change.target_type));
            return optional(change.expression);
        }
        case AlterTableType::SET_DEFAULT:
            return optional(static_cast<const duckdb::SetDefaultInfo &>(info).expression);
        case AlterTableType::ADD_CONSTRAINT:
            return constraint(*static_cast<const duckdb::AddConstraintInfo &>(info).constraint);
        case AlterTableType::SET_PARTITIONED_BY:
            return list(static_cast<const duckdb::SetPartitionedByInfo &>(info).partition_keys);
        case AlterTableType::SET_SORTED_BY:
            return orders(static_cast<const duckdb::SetSortedByInfo &>(info).orders);
        case AlterTableType::SET_TABLE_OPTIONS:
            return option_map(static_cast<const duckdb::SetTableOptionsInfo &>(info).table_options);
        default:
            return unknown_node("ALTER TABLE");
    }
}

Status Walk::drop(const duckdb::DropInfo &info) {
    Object object = Object::other;
    switch (info.type) {
        case duckdb::CatalogType::TABLE_ENTRY:
            object = Object::table;
            break;
        case duckdb::CatalogType::VIEW_ENTRY:
            object = Object::view;
            break;
        case duckdb::CatalogType::SCHEMA_ENTRY:
            return name(info.catalog, info.name, "", Place::define, Object::schema);
        case duckdb::CatalogType::INDEX_ENTRY:
            object = Object::index;
            break;
        case duckdb::CatalogType::SEQUENCE_ENTRY:
            object = Object::sequence;
            break;
        case duckdb::CatalogType::TYPE_ENTRY:
            object = Object::type;
            break;
        case duckdb::CatalogType::MACRO_ENTRY:
        case duckdb::CatalogType::TABLE_MACRO_ENTRY:
            object = Object::macro;
            break;
        default:
            return Status();  // on_statement judges by the type
    }
    return name(info.catalog, info.schema, info.name, Place::define, object);
}

Status Walk::copy(const duckdb::CopyInfo &info) {
    if (info.select_statement) {
        ROOST_RETURN_IF_ERROR(query(*info.select_statement));
    } else {
        ROOST_RETURN_IF_ERROR(
            name(info.catalog, info.schema, info.table, info.is_from ? Place::write : Place::read, Object::table));
    }
    ROOST_RETURN_IF_ERROR(optional(info.file_path_expression));
    return option_map(info.parsed_options);
}

// A CTE's body sees the CTEs before it, not itself: `WITH orders AS (SELECT * FROM orders)` reads the table. A
// recursive one names itself in its own node.
Status Walk::ctes(const duckdb::CommonTableExpressionMap &map) {
    for (const auto &entry : map.map) {
        ROOST_RETURN_IF_ERROR(list(entry.second->key_targets));
        if (entry.second->query) ROOST_RETURN_IF_ERROR(query(*entry.second->query->node));
        enter(entry.first);
    }
    return Status();
}

Status Walk::query(const duckdb::QueryNode &node) {
    const Level level(depth_);
    if (depth_ > tree_depth_max) return unknown_node("nesting");
    const size_t mark = scope_.size();
    ROOST_RETURN_IF_ERROR(ctes(node.cte_map));
    ROOST_RETURN_IF_ERROR(query_body(node));
    for (const auto &entry : node.modifiers) ROOST_RETURN_IF_ERROR(modifier(*entry));
    leave(mark);
    return Status();
}

Status Walk::query_body(const duckdb::QueryNode &node) {
    switch (node.type) {
        case duckdb::QueryNodeType::SELECT_NODE:
            return select(node.Cast<duckdb::SelectNode>());
        case duckdb::QueryNodeType::SET_OPERATION_NODE:
            for (const auto &child : node.Cast<duckdb::SetOperationNode>().children)
                ROOST_RETURN_IF_ERROR(query(*child));
            return Status();
        case duckdb::QueryNodeType::RECURSIVE_CTE_NODE: {
            const auto &recursive = node.Cast<duckdb::RecursiveCTENode>();
            ROOST_RETURN_IF_ERROR(list(recursive.key_targets));
            ROOST_RETURN_IF_ERROR(query(*recursive.left));
            enter(recursive.ctename);
            ROOST_RETURN_IF_ERROR(query(*recursive.right));
            leave(scope_.size() - 1);
            return Status();
        }
        case duckdb::QueryNodeType::CTE_NODE: {
            const auto &cte = node.Cast<duckdb::CTENode>();
            ROOST_RETURN_IF_ERROR(query(*cte.query));
            enter(cte.ctename);
            ROOST_RETURN_IF_ERROR(query(*cte.child));
            leave(scope_.size() - 1);
            return Status();
        }
        default:
            return unknown_node("query");
    }
}

Status Walk::select(const duckdb::SelectNode &select) {
    ROOST_RETURN_IF_ERROR(visitor_.on_select(select));
    if (select.from_table) ROOST_RETURN_IF_ERROR(from(*select.from_table));
    ROOST_RETURN_IF_ERROR(list(select.select_list));
    ROOST_RETURN_IF_ERROR(optional(select.where_clause));
    ROOST_RETURN_IF_ERROR(list(select.groups.group_expressions));
    ROOST_RETURN_IF_ERROR(optional(select.having));
    return optional(select.qualify);
}

Status Walk::modifier(const duckdb::ResultModifier &modifier) {
    switch (modifier.type) {
        case duckdb::ResultModifierType::LIMIT_MODIFIER: {
            const auto &limit = modifier.Cast<duckdb::LimitModifier>();
            ROOST_RETURN_IF_ERROR(optional(limit.limit));
            return optional(limit.offset);
        }
        case duckdb::ResultModifierType::LIMIT_PERCENT_MODIFIER: {
            const auto &limit = modifier.Cast<duckdb::LimitPercentModifier>();
            ROOST_RETURN_IF_ERROR(optional(limit.limit));
            return optional(limit.offset);
        }
        case duckdb::ResultModifierType::ORDER_MODIFIER:
            return orders(modifier.Cast<duckdb::OrderModifier>().orders);
        case duckdb::ResultModifierType::DISTINCT_MODIFIER:
            return list(modifier.Cast<duckdb::DistinctModifier>().distinct_on_targets);
        default:
            return unknown_node("modifier");
    }
}

Status Walk::from(const duckdb::TableRef &ref) {
    const Level level(depth_);
    if (depth_ > tree_depth_max) return unknown_node("nesting");
    switch (ref.type) {
        case duckdb::TableReferenceType::EMPTY_FROM:
            return Status();
        case duckdb::TableReferenceType::BASE_TABLE:
            return base_table(ref.Cast<duckdb::BaseTableRef>(), Place::read);
        case duckdb::TableReferenceType::SUBQUERY:
            return query(*ref.Cast<duckdb::SubqueryRef>().subquery->node);
        case duckdb::TableReferenceType::TABLE_FUNCTION:
            return table_function(ref.Cast<duckdb::TableFunctionRef>());
        case duckdb::TableReferenceType::PIVOT:
            return pivot(ref.Cast<duckdb::PivotRef>());
        case duckdb::TableReferenceType::SHOW_REF:
            return show(ref.Cast<duckdb::ShowRef>());
        case duckdb::TableReferenceType::EXPRESSION_LIST:
            for (const auto &row : ref.Cast<duckdb::ExpressionListRef>().values) ROOST_RETURN_IF_ERROR(list(row));
            return Status();
        case duckdb::TableReferenceType::JOIN: {
            const auto &join = ref.Cast<duckdb::JoinRef>();
            ROOST_RETURN_IF_ERROR(from(*join.left));
            ROOST_RETURN_IF_ERROR(from(*join.right));
            ROOST_RETURN_IF_ERROR(list(join.duplicate_eliminated_columns));
            return optional(join.condition);
        }
        default:
            return unknown_node("FROM item");
    }
}

Status Walk::base_table(const duckdb::BaseTableRef &ref, Place place) {
    if (ref.at_clause) {
        // AtClause has no const access to its expression.
        auto &at = const_cast<duckdb::AtClause &>(*ref.at_clause);
        ROOST_RETURN_IF_ERROR(optional(at.ExpressionMutable()));
    }
    if (place == Place::read && ref.catalog_name.empty() && ref.schema_name.empty()) {
        if (names_.count(fold(ref.table_name)) != 0) return Status();
    }
    NameUse use;
    use.name = TableName{ref.catalog_name, ref.schema_name, ref.table_name};
    use.place = place;
    use.from_item = true;
    if (ref.query_location.IsValid()) use.location = ref.query_location.GetIndex();
    return visitor_.on_name(use);
}

Status Walk::table_function(const duckdb::TableFunctionRef &ref) {
    if (ref.subquery) ROOST_RETURN_IF_ERROR(query(*ref.subquery->node));
    if (ref.function->GetExpressionClass() != duckdb::ExpressionClass::FUNCTION) return expression(*ref.function);
    return function(ref.function->Cast<duckdb::FunctionExpression>(), true);
}

Status Walk::pivot(const duckdb::PivotRef &ref) {
    ROOST_RETURN_IF_ERROR(from(*ref.source));
    ROOST_RETURN_IF_ERROR(list(ref.aggregates));
    for (const auto &column : ref.pivots) {
        ROOST_RETURN_IF_ERROR(list(column.pivot_expressions));
        for (const auto &entry : column.entries) ROOST_RETURN_IF_ERROR(optional(entry.expr));
        if (column.subquery) ROOST_RETURN_IF_ERROR(query(*column.subquery));
    }
    return Status();
}

Status Walk::show(const duckdb::ShowRef &ref) {
    ROOST_RETURN_IF_ERROR(visitor_.on_show(ref));
    return ref.query ? query(*ref.query) : Status();
}

Status Walk::list(const Expressions &expressions) {
    for (const auto &entry : expressions) ROOST_RETURN_IF_ERROR(optional(entry));
    return Status();
}

Status Walk::orders(const duckdb::vector<duckdb::OrderByNode> &orders) {
    for (const auto &order : orders) ROOST_RETURN_IF_ERROR(optional(order.expression));
    return Status();
}

Status Walk::expression(const duckdb::ParsedExpression &expression) {
    const Level level(depth_);
    if (depth_ > tree_depth_max) return unknown_node("nesting");
    return expression_children(expression);
}

Status Walk::expression_children(const duckdb::ParsedExpression &expression) {
    using duckdb::ExpressionClass;
    switch (expression.GetExpressionClass()) {
        case ExpressionClass::COLUMN_REF:
        case ExpressionClass::CONSTANT:
        case ExpressionClass::DEFAULT:
        case ExpressionClass::PARAMETER:
        case ExpressionClass::POSITIONAL_REFERENCE:
            return Status();
        case ExpressionClass::BETWEEN: {
            const auto &between = expression.Cast<duckdb::BetweenExpression>();
            ROOST_RETURN_IF_ERROR(optional(between.input));
            ROOST_RETURN_IF_ERROR(optional(between.lower));
            return optional(between.upper);
        }
        case ExpressionClass::CASE: {
            const auto &cases = expression.Cast<duckdb::CaseExpression>();
            for (const auto &check : cases.case_checks) {
                ROOST_RETURN_IF_ERROR(optional(check.when_expr));
                ROOST_RETURN_IF_ERROR(optional(check.then_expr));
            }
            return optional(cases.else_expr);
        }
        case ExpressionClass::CAST: {
            const auto &cast = expression.Cast<duckdb::CastExpression>();
            ROOST_RETURN_IF_ERROR(type(cast.cast_type));
            return optional(cast.child);
        }
        case ExpressionClass::COLLATE:
            return optional(expression.Cast<duckdb::CollateExpression>().child);
        case ExpressionClass::COMPARISON: {
            const auto &comparison = expression.Cast<duckdb::ComparisonExpression>();
            ROOST_RETURN_IF_ERROR(optional(comparison.left));
            return optional(comparison.right);
        }
        case ExpressionClass::CONJUNCTION:
            return list(expression.Cast<duckdb::ConjunctionExpression>().children);
        case ExpressionClass::FUNCTION:
            return function(expression.Cast<duckdb::FunctionExpression>(), false);
        case ExpressionClass::LAMBDA: {
            const auto &lambda = expression.Cast<duckdb::LambdaExpression>();
            ROOST_RETURN_IF_ERROR(optional(lambda.lhs));
            ROOST_RETURN_IF_ERROR(optional(lambda.copied_expr));
            return optional(lambda.expr);
        }
        case ExpressionClass::OPERATOR:
            return list(expression.Cast<duckdb::OperatorExpression>().children);
        case ExpressionClass::STAR:
            return star(expression.Cast<duckdb::StarExpression>());
        case ExpressionClass::SUBQUERY: {
            const auto &subquery = expression.Cast<duckdb::SubqueryExpression>();
            ROOST_RETURN_IF_ERROR(optional(subquery.child));
            return query(*subquery.subquery->node);
        }
        case ExpressionClass::TYPE: {
            const auto &type = expression.Cast<duckdb::TypeExpression>();
            ROOST_RETURN_IF_ERROR(visitor_.on_type(type));
            return list(type.GetChildren());
        }
        case ExpressionClass::WINDOW:
            return window(expression.Cast<duckdb::WindowExpression>());
        default:
            return unknown_node("expression");
    }
}

Status Walk::function(const duckdb::FunctionExpression &call, bool in_from) {
    ROOST_RETURN_IF_ERROR(visitor_.on_function(call, in_from));
    ROOST_RETURN_IF_ERROR(list(call.children));
    ROOST_RETURN_IF_ERROR(optional(call.filter));
    return call.order_bys ? orders(call.order_bys->orders) : Status();
}

Status Walk::window(const duckdb::WindowExpression &window) {
    ROOST_RETURN_IF_ERROR(visitor_.on_window(window));
    ROOST_RETURN_IF_ERROR(list(window.children));
    ROOST_RETURN_IF_ERROR(list(window.partitions));
    ROOST_RETURN_IF_ERROR(orders(window.orders));
    ROOST_RETURN_IF_ERROR(optional(window.filter_expr));
    ROOST_RETURN_IF_ERROR(optional(window.start_expr));
    ROOST_RETURN_IF_ERROR(optional(window.end_expr));
    ROOST_RETURN_IF_ERROR(optional(window.offset_expr));
    ROOST_RETURN_IF_ERROR(optional(window.default_expr));
    return orders(window.arg_orders);
}

Status Walk::star(const duckdb::StarExpression &star) {
    for (const auto &entry : star.replace_list) ROOST_RETURN_IF_ERROR(optional(entry.second));
    return optional(star.expr);
}

// A type as written holds an expression until it is bound; any other type is DuckDB's own and holds nothing of the
// caller's.
Status Walk::type(const duckdb::LogicalType &type) {
    if (type.id() != duckdb::LogicalTypeId::UNBOUND || !type.AuxInfo()) return Status();
    return optional(duckdb::UnboundType::GetTypeExpression(type));
}

}  // namespace

Status walk(const duckdb::SQLStatement &statement, Visitor &visitor) { return Walk(visitor).statement(statement); }

}  // namespace roost::sql
