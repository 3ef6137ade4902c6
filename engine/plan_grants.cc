#include "engine/plan_grants.h"

#include <algorithm>
#include <string>

#include "base/wall.h"
#include "duckdb/catalog/catalog.hpp"
#include "duckdb/catalog/catalog_entry/schema_catalog_entry.hpp"
#include "duckdb/catalog/catalog_entry/table_catalog_entry.hpp"
#include "duckdb/common/string_util.hpp"
#include "duckdb/parser/parsed_data/alter_info.hpp"
#include "duckdb/parser/parsed_data/drop_info.hpp"
#include "duckdb/planner/operator/logical_create.hpp"
#include "duckdb/planner/operator/logical_create_table.hpp"
#include "duckdb/planner/operator/logical_delete.hpp"
#include "duckdb/planner/operator/logical_get.hpp"
#include "duckdb/planner/operator/logical_insert.hpp"
#include "duckdb/planner/operator/logical_merge_into.hpp"
#include "duckdb/planner/operator/logical_simple.hpp"
#include "duckdb/planner/operator/logical_update.hpp"
#include "lake/grant_refusals.h"

namespace roost {

namespace {

bool is_engines(const std::string &catalog) { return catalog == TEMP_CATALOG || catalog == SYSTEM_CATALOG; }

class Grants {
public:
    explicit Grants(const Rights &rights) : rights_(rights) {}

    const Status &verdict() const { return verdict_; }

    void look(const duckdb::LogicalOperator &op) {
        if (!verdict_.ok()) return;
        judge(op);
        for (const auto &child : op.children) look(*child);
    }

private:
    void judge(const duckdb::LogicalOperator &op) {
        using Type = duckdb::LogicalOperatorType;
        switch (op.type) {
            case Type::LOGICAL_GET:
                return scan(op.Cast<duckdb::LogicalGet>());
            case Type::LOGICAL_INSERT:
                return table(op.Cast<duckdb::LogicalInsert>().table, Privilege::writer);
            case Type::LOGICAL_UPDATE:
                return table(op.Cast<duckdb::LogicalUpdate>().table, Privilege::writer);
            case Type::LOGICAL_DELETE:
                return table(op.Cast<duckdb::LogicalDelete>().table, Privilege::writer);
            case Type::LOGICAL_MERGE_INTO:
                return table(op.Cast<duckdb::LogicalMergeInto>().table, Privilege::writer);
            case Type::LOGICAL_CREATE_TABLE:
                return schema(op.Cast<duckdb::LogicalCreateTable>().schema);
            case Type::LOGICAL_CREATE_SCHEMA:
            case Type::LOGICAL_CREATE_VIEW:
            case Type::LOGICAL_CREATE_SEQUENCE:
            case Type::LOGICAL_CREATE_MACRO:
            case Type::LOGICAL_CREATE_TYPE: {
                const auto &create = op.Cast<duckdb::LogicalCreate>();
                if (create.info->temporary) return;
                if (create.schema) return schema(*create.schema);
                return names(create.info->catalog, "");
            }
            case Type::LOGICAL_ALTER: {
                const auto &info = op.Cast<duckdb::LogicalSimple>().info->Cast<duckdb::AlterInfo>();
                return names(info.catalog, info.schema);
            }
            case Type::LOGICAL_DROP: {
                const auto &info = op.Cast<duckdb::LogicalSimple>().info->Cast<duckdb::DropInfo>();
                return names(info.catalog, info.type == duckdb::CatalogType::SCHEMA_ENTRY ? "" : info.schema);
            }
            default:
                return;
        }
    }

    void scan(const duckdb::LogicalGet &get) {
        if (const auto entry = get.GetTable()) return table(*entry, Privilege::reader);
        // The lake's past, its changes, its snapshots: of tables that only an argument names.
        if (!duckdb::StringUtil::StartsWith(duckdb::StringUtil::Lower(get.function.name), "ducklake_")) return;
        const bool all =
            std::ranges::all_of(rights_, [](const auto &entry) { return entry.second.all >= Privilege::reader; });
        if (!all) verdict_ = too_little_granted("the lake's snapshots and changes", Privilege::reader);
    }

    void table(const duckdb::TableCatalogEntry &entry, Privilege needed) {
        const std::string catalog = entry.ParentCatalog().GetName();
        if (is_engines(catalog)) return;
        const std::string in = entry.ParentSchema().name;
        const Privilege held = rights_in(rights_, catalog).of_table(in, entry.name);
        if (held >= needed) return;
        const std::string what = (in == "main" ? "" : in + ".") + entry.name;
        if (held == Privilege::none) {
            verdict_ = not_to_be_seen(what);
        } else {
            verdict_ = too_little_granted("table " + what, needed);
        }
    }

    void schema(const duckdb::SchemaCatalogEntry &entry) { names(entry.ParentCatalog().GetName(), entry.name); }

    // Making and altering what is in a schema; a schema itself is its catalog's.
    void names(const std::string &catalog, const std::string &in) {
        if (is_engines(catalog)) return;
        const auto held_in = [&in](const CatalogRights &rights) {
            return in.empty() ? rights.all : rights.of_schema(in);
        };
        Privilege held = held_in(rights_in(rights_, catalog));
        // The binder leaves the active catalog unsaid: it may be any of the caller's.
        if (catalog.empty() && !rights_.empty()) {
            held = Privilege::writer;
            for (const auto &[name, rights] : rights_) held = std::min(held, held_in(rights));
        }
        if (held < Privilege::writer)
            verdict_ = too_little_granted(in.empty() ? "catalog " + catalog : "schema " + in, Privilege::writer);
    }

    const Rights &rights_;
    Status verdict_;
};

}  // namespace

Status check_grants(const duckdb::LogicalOperator &plan, const Rights &rights) {
    if (!stands(Wall::bound_plan)) return Status();
    Grants grants(rights);
    grants.look(plan);
    return grants.verdict();
}

}  // namespace roost
