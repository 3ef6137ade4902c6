#include "engine/lake_redactions.h"

#include <algorithm>

#include "lake/postgres_dsn.h"

namespace roost {

Redactions in_order(Redactions redactions) {
    for (auto &[path, name] : redactions) {
        while (path.size() > 1 && path.back() == '/') path.pop_back();
    }
    std::erase_if(redactions, [](const auto &entry) { return entry.first.size() < 2; });
    // A directory inside another is named by its own word.
    std::stable_sort(redactions.begin(), redactions.end(),
                     [](const auto &a, const auto &b) { return a.first.size() > b.first.size(); });
    return redactions;
}

Redactions redactions_of(const LakeLocation &lake) {
    Redactions redactions{{lake.data_path, lake.catalog + ":data"},
                          {lake.metadata_path, lake.catalog + ":catalog"},
                          {lake.staging_path, lake.catalog + ":staging"}};
    if (lake.on_postgres) {
        if (const auto dsn = complete_dsn(lake.metadata_path, lake.catalog_timeout_ms); dsn.ok()) {
            redactions.emplace_back(*dsn, lake.catalog + ":catalog");
        }
        if (const auto places = places_of(lake.metadata_path); places.ok()) {
            for (const auto &secret : places->secrets) redactions.emplace_back(secret, "***");
        }
    }
    if (lake.store) {
        redactions.emplace_back(lake.store->endpoint, lake.catalog + ":store");
        for (const auto &key : {lake.store->access_key_id, lake.store->secret_access_key, lake.store->session_token}) {
            redactions.emplace_back(key, "***");
        }
    }
    return in_order(std::move(redactions));
}

}  // namespace roost
