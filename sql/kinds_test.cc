// The engine that roost links brings no kind of statement, node or object that nobody has looked at: the names of all
// that it has stand in testdata/kinds.tsv. When DuckDB is updated and this fails, look at what is new: the walk has to
// descend into it (walk.cc), the guard to judge it (guard.cc), the node's walls too (engine/plan_wall.cc); then add it
// to the file.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "duckdb/common/enum_util.hpp"
#include "duckdb/common/enums/catalog_type.hpp"
#include "duckdb/common/enums/expression_type.hpp"
#include "duckdb/common/enums/logical_operator_type.hpp"
#include "duckdb/common/enums/statement_type.hpp"
#include "duckdb/common/enums/tableref_type.hpp"
#include "duckdb/common/exception.hpp"
#include "duckdb/parser/constraint.hpp"
#include "duckdb/parser/parsed_data/alter_info.hpp"
#include "duckdb/parser/parsed_data/alter_table_info.hpp"
#include "duckdb/parser/query_node.hpp"
#include "duckdb/parser/result_modifier.hpp"

namespace roost::sql {
namespace {

using Names = std::set<std::string>;

template <class Enum>
void add_enum(Names &names, const std::string &group) {
    for (int i = 0; i < 256; ++i) {
        try {
            names.insert(group + '\t' + duckdb::EnumUtil::ToChars<Enum>(static_cast<Enum>(i)));
        } catch (const duckdb::Exception &) {
            // No such value.
        }
    }
}

Names engine_kinds() {
    Names names;
    add_enum<duckdb::StatementType>(names, "statement");
    add_enum<duckdb::TableReferenceType>(names, "table_ref");
    add_enum<duckdb::ExpressionClass>(names, "expression_class");
    add_enum<duckdb::AlterType>(names, "alter");
    add_enum<duckdb::AlterTableType>(names, "alter_table");
    add_enum<duckdb::CatalogType>(names, "catalog");
    add_enum<duckdb::QueryNodeType>(names, "query_node");
    add_enum<duckdb::ResultModifierType>(names, "result_modifier");
    add_enum<duckdb::ConstraintType>(names, "constraint");
    for (int i = 0; i < 256; ++i) {
        const std::string name = duckdb::LogicalOperatorToString(static_cast<duckdb::LogicalOperatorType>(i));
        if (name != "INVALID") names.insert("logical_operator\t" + name);
    }
    return names;
}

TEST(Kinds, every_kind_of_the_engine_has_been_looked_at) {
    Names known;
    std::ifstream file("sql/testdata/kinds.tsv");
    for (std::string line; std::getline(file, line);) known.insert(line);
    ASSERT_GT(known.size(), 100u);
    const Names found = engine_kinds();
    for (const std::string &name : found) EXPECT_TRUE(known.contains(name)) << "new in the engine: " << name;
    for (const std::string &name : known) EXPECT_TRUE(found.contains(name)) << "gone from the engine: " << name;
}

}  // namespace
}  // namespace roost::sql
