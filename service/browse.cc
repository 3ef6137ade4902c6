// Browsing: schemas and tables of a catalog, as the gateway's mirror knows them. No node is asked.
#include <algorithm>

#include "service/gateway_service.h"

namespace roost::service {

namespace {

// Callers are tools that list before they act: an answer that is late is of no use to them.
constexpr int64_t kBrowseWithinMs = 15'000;

TableInfo table_info(const TableState &table) {
    TableInfo info;
    info.schema = table.definition->schema_name;
    info.name = table.definition->name;
    info.rows = table.data->live_rows();
    info.segments = table.data->segments.size();
    info.bytes = table.data->segments.file_size_bytes();
    info.columns = table.definition->columns.size();
    return info;
}

}  // namespace

net::Task<Result<std::shared_ptr<const LakeState>>> GatewayService::browse(const Principal &who, std::string workspace,
                                                                           std::string catalog) {
    const auto known = catalogs(who, workspace);
    if (!known.ok()) co_return known.status();
    const auto is_it = [&catalog](const meta::Catalog &one) {
        return one.slug == catalog || one.id.to_string() == catalog;
    };
    const auto found = std::ranges::find_if(*known, is_it);
    if (found == known->end()) {
        co_return Status(Code::not_found, "there is no catalog '" + catalog + "' in this workspace")
            .with_name("catalog_not_found")
            .with_sqlstate("3D000");
    }
    co_return co_await core_->mirrors.refresh(found->slug, kBrowseWithinMs);
}

net::Task<Result<std::vector<SchemaInfo>>> GatewayService::schemas(const Principal &who, std::string workspace,
                                                                   std::string catalog) {
    auto state = co_await browse(who, std::move(workspace), std::move(catalog));
    if (!state.ok()) co_return state.status();
    std::vector<SchemaInfo> out;
    for (const LakeSchema &schema : (*state)->names().schemas) {
        SchemaInfo info{schema.name, 0, 0};
        for (const auto &table : (*state)->tables()) info.tables += table->definition->schema_id == schema.id ? 1 : 0;
        for (const LakeView &view : (*state)->names().views) info.views += view.schema_id == schema.id ? 1 : 0;
        out.push_back(std::move(info));
    }
    std::ranges::sort(out, {}, &SchemaInfo::name);
    co_return out;
}

net::Task<Result<std::vector<TableInfo>>> GatewayService::tables(const Principal &who, std::string workspace,
                                                                 std::string catalog, std::string schema) {
    auto state = co_await browse(who, std::move(workspace), std::move(catalog));
    if (!state.ok()) co_return state.status();
    std::vector<TableInfo> out;
    const LakeSchema *found = (*state)->schema(schema);
    if (!found) co_return out;  // dropped by somebody since it was listed
    for (const auto &table : (*state)->tables()) {
        if (table->definition->schema_id == found->id) out.push_back(table_info(*table));
    }
    for (const LakeView &view : (*state)->names().views) {
        if (view.schema_id != found->id) continue;
        TableInfo info;
        info.schema = found->name;
        info.name = view.name;
        info.is_view = true;
        out.push_back(std::move(info));
    }
    std::ranges::sort(out, {}, &TableInfo::name);
    co_return out;
}

}  // namespace roost::service
