// What GatewayService asks of a statement before it runs: which catalogs it names and whether its caller may.
#include <algorithm>

#include "service/gateway_service.h"

namespace roost::service {

namespace {

// Views over views of other catalogs: each round brings the mirrors that the one before found missing.
constexpr int kRoundsMax = 8;
constexpr int64_t kMirrorWithinMs = 15'000;

}  // namespace

std::vector<std::string> GatewayService::catalog_names(const Principal &who, const Uuid &workspace) const {
    std::vector<std::string> names;
    for (const meta::Catalog &catalog : catalogs_) {
        if (catalog.workspace == workspace && core_->access.sees(who, catalog)) names.push_back(catalog.slug);
    }
    return names;
}

void GatewayService::take_access(std::vector<meta::Workspace> workspaces, std::vector<meta::Catalog> catalogs,
                                 meta::AccessTables tables) {
    workspaces_ = std::move(workspaces);
    // One that this pool no longer has is not there.
    std::erase_if(catalogs, [this](const auto &catalog) { return !core_->lakes.contains(catalog.slug); });
    catalogs_ = std::move(catalogs);
    core_->access.load(std::move(tables), catalogs_);
}

Status GatewayService::load_access() {
    ROOST_ASSIGN_OR_RETURN(auto workspaces, core_->meta.workspaces());
    ROOST_ASSIGN_OR_RETURN(auto catalogs, core_->meta.catalogs());
    ROOST_ASSIGN_OR_RETURN(auto tables, core_->meta.access());
    take_access(std::move(workspaces), std::move(catalogs), std::move(tables));
    return Status();
}

// What was changed elsewhere. A store that can't be read leaves what is known.
net::Task<void> GatewayService::reload_access() {
    struct Loaded {
        std::vector<meta::Workspace> workspaces;
        std::vector<meta::Catalog> catalogs;
        meta::AccessTables tables;
        std::vector<meta::User> users;
    };
    auto loaded = co_await core_->blocking([meta = &core_->meta]() -> Result<Loaded> {
        Loaded all;
        ROOST_ASSIGN_OR_RETURN(all.workspaces, meta->workspaces());
        ROOST_ASSIGN_OR_RETURN(all.catalogs, meta->catalogs());
        ROOST_ASSIGN_OR_RETURN(all.tables, meta->access());
        ROOST_ASSIGN_OR_RETURN(all.users, meta->users());
        return all;
    });
    if (loaded.ok()) {
        take_access(std::move(loaded->workspaces), std::move(loaded->catalogs), std::move(loaded->tables));
        apply_to_sessions(loaded->users);
    } else {
        core_->log.warn("access_not_reloaded", {{"error", loaded.status().message()}});
    }
}

// Who was made less, or shut out, is so in the sessions that are open as well.
void GatewayService::apply_to_sessions(const std::vector<meta::User> &users) {
    const std::vector<std::shared_ptr<Session>> open(sessions_.begin(), sessions_.end());
    for (const auto &session : open) {
        const auto user = std::ranges::find(users, session->principal.user_id, &meta::User::id);
        if (user == users.end()) continue;
        if (!user->active) {
            core_->log.info("session_ended", {{"session_id", session->id}, {"user", user->name}, {"why", "inactive"}});
            close_session(session);
            continue;
        }
        session->principal.role = user->role;
        session->catalogs = catalog_names(session->principal, session->workspace_id);
    }
}

net::Task<std::set<std::string>> GatewayService::macros_of(const Session &session) {
    const std::vector<std::string> catalogs = session.catalogs;  // the session may end meanwhile
    std::set<std::string> names;
    for (const std::string &catalog : catalogs) {
        const auto state = co_await core_->mirrors.refresh(catalog, kMirrorWithinMs);
        if (!state.ok()) continue;
        for (const LakeMacro &macro : (*state)->names().macros) names.insert(folded(macro.name));
    }
    co_return names;
}

net::Task<Result<Reach>> GatewayService::find_reach(std::shared_ptr<Session> session, const sql::Statement &statement) {
    const std::optional<Rights> rights = core_->access.rights_of(session->principal, session->workspace_id);
    // Somebody who may do everything in the only catalog there is.
    if (!rights && session->catalogs.size() == 1) co_return Reach{};
    ReachScope scope;
    scope.catalog = session->settings.catalog;
    scope.search_path = session->settings.search_path;
    if (scope.search_path.empty()) scope.search_path = {"main"};
    scope.catalogs = session->catalogs;
    scope.rights = rights ? &*rights : nullptr;
    ReachFinder::States states;
    ReachFinder finder(scope, states, [this](const std::string &text) -> Result<std::vector<sql::Statement>> {
        const auto parsed = core_->statements.parse(text);
        if (!parsed.ok()) return parsed.status();
        return (*parsed)->statements;
    });
    Status verdict;
    for (int round = 0; round < kRoundsMax; ++round) {
        verdict = finder.find(statement);
        if (!verdict.ok() || finder.missing().empty()) break;
        const std::set<std::string> missing = finder.missing();
        for (const std::string &catalog : missing) {
            auto state = co_await core_->mirrors.refresh(catalog, kMirrorWithinMs);
            if (!state.ok()) co_return state.status();
            states[catalog] = std::move(*state);
        }
    }
    if (!verdict.ok()) {
        core_->metrics.guard_refused("grant");
        core_->audit.refused(*session, statement.text, verdict, Uuid());
        co_return verdict;
    }
    co_return finder.reach();
}

// A transaction runs on one connection, which has the catalogs that its first statement named.
Status GatewayService::join_transaction(Session &session, StatementSpec &spec) {
    if (!session.pinned_node) {
        for (const auto &[catalog, lake] : core_->lakes) {
            session.begin_commits[catalog] = core_->leases->commits(catalog);
        }
        session.transaction_catalogs = spec.catalogs;
        return Status();
    }
    for (const std::string &catalog : spec.catalogs) {
        if (std::ranges::find(session.transaction_catalogs, catalog) != session.transaction_catalogs.end()) continue;
        session.transaction = TransactionState::failed;
        return Status(Code::unimplemented, "this transaction was begun without the catalog \"" + catalog + "\"")
            .with_hint(
                "name every catalog that a transaction needs in its first statement, or run this one outside it");
    }
    spec.catalogs = session.transaction_catalogs;
    return Status();
}

}  // namespace roost::service
