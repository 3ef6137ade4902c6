#include "lake/mirror.h"

#include <list>
#include <utility>

#include "base/mutex.h"
#include "lake/lake_loader.h"

namespace roost {

namespace {

using StatePtr = std::shared_ptr<const LakeState>;

// States of the past that are kept: by number and by memory.
constexpr size_t kPastStatesMax = 8;
constexpr size_t kPastBytesMax = 64 << 20;

std::shared_ptr<const TableData> data_of(const LakeLoader::DataMap &data, uint64_t id) {
    static const auto kEmpty = std::make_shared<const TableData>();
    const auto found = data.find(id);
    return found == data.end() ? kEmpty : found->second;
}

// Ends the read transaction when it goes.
class Transaction {
public:
    explicit Transaction(MetadataReader &reader) : reader_(reader) {}
    ~Transaction() { reader_.end(); }
    Transaction(const Transaction &) = delete;
    Transaction &operator=(const Transaction &) = delete;

private:
    MetadataReader &reader_;
};

Result<StatePtr> load(LakeLoader &loader, const LakeSnapshot &snapshot) {
    ROOST_ASSIGN_OR_RETURN(LakeLoader::Definitions definitions, loader.definitions(snapshot.id));
    ROOST_ASSIGN_OR_RETURN(const LakeLoader::DataMap data,
                           loader.data(snapshot.id, definitions.tables, std::nullopt, true));
    LakeState::Tables tables;
    tables.reserve(definitions.tables.size());
    for (auto &[id, definition] : definitions.tables) {
        tables.push_back(
            std::make_shared<TableState>(TableState{.definition = std::move(definition), .data = data_of(data, id)}));
    }
    return StatePtr(std::make_shared<LakeState>(snapshot, std::move(definitions.data_path), definitions.encrypted,
                                                std::move(definitions.names), std::move(tables)));
}

// Brings a state forward when nothing but tables' contents has changed.
std::shared_ptr<LakeState> advance_data(const LakeState &base, const LakeSnapshot &newest,
                                        const LakeLoader::DataMap &data) {
    LakeState::Tables tables = base.tables();
    for (auto &table : tables) {
        const auto fresh = data.find(table->id());
        if (fresh == data.end()) continue;
        table = std::make_shared<TableState>(TableState{.definition = table->definition, .data = fresh->second});
    }
    return std::make_shared<LakeState>(base, newest, std::move(tables));
}

StatePtr advance_all(const LakeState &base, const LakeSnapshot &newest, LakeLoader::Definitions definitions,
                     const LakeLoader::DataMap &data) {
    LakeState::Tables tables;
    for (auto &[id, definition] : definitions.tables) {
        const auto before = base.table(id);
        const auto fresh = data.find(id);
        if (!before) {
            tables.push_back(std::make_shared<TableState>(
                TableState{.definition = std::move(definition), .data = data_of(data, id)}));
            continue;
        }
        const bool same = *before->definition == *definition;
        if (same && fresh == data.end()) {
            tables.push_back(before);
            continue;
        }
        tables.push_back(
            std::make_shared<TableState>(TableState{.definition = same ? before->definition : std::move(definition),
                                                    .data = fresh == data.end() ? before->data : fresh->second}));
    }
    auto names = *base.shared_names() == *definitions.names ? base.shared_names() : std::move(definitions.names);
    return std::make_shared<LakeState>(newest, std::move(definitions.data_path), definitions.encrypted,
                                       std::move(names), std::move(tables));
}

// The state after the commits that `changes` sums up, made from the one before them.
Result<StatePtr> advance(LakeLoader &loader, const LakeState &base, const LakeSnapshot &newest,
                         const LakeChanges &changes) {
    const bool redefined = changes.definitions || newest.schema_version != base.snapshot().schema_version;
    LakeLoader::Definitions definitions;
    if (redefined) {
        ROOST_ASSIGN_OR_RETURN(definitions, loader.definitions(newest.id));
    } else {
        for (const auto &table : base.tables()) definitions.tables.emplace(table->id(), table->definition);
    }
    // What is not there any more is not read, what was not there before is read whole.
    std::set<uint64_t> whole, onward, lossy;
    for (const auto &[id, definition] : definitions.tables) {
        if (changes.rewritten.contains(id) || !base.table(id)) {
            whole.insert(id);
        } else if (changes.changed.contains(id)) {
            onward.insert(id);
            lossy.insert(id);
        } else if (changes.appended.contains(id)) {
            onward.insert(id);
        }
    }
    ROOST_ASSIGN_OR_RETURN(LakeLoader::DataMap data, loader.data(newest.id, definitions.tables, whole, true));
    ROOST_ASSIGN_OR_RETURN(LakeLoader::DataMap brought, loader.advance(base, newest.id, onward, lossy));
    data.merge(brought);
    for (const uint64_t id : whole) data.emplace(id, data_of(data, id));
    if (!redefined) return StatePtr(advance_data(base, newest, data));
    return advance_all(base, newest, std::move(definitions), data);
}

// Callers that wait for something done by one of them at a time.
class Turn {
public:
    // True: this caller does it and says done(). False: it was done by another since the call began, `status` is how it
    // ended; or the limits are over.
    bool take(const CallLimits &limits, Status &status) ROOST_EXCLUDES(mutex_) {
        const std::stop_callback wake(limits.cancelled, [this] {
            MutexLock lock(mutex_);
            changed_.notify_all();
        });
        MutexLock lock(mutex_);
        uint64_t mine = started_ + 1;
        for (;;) {
            if (done_ >= mine) {
                status = last_;
                // Its doer ran out of time, or was cancelled: no reason for others to fail.
                const bool for_itself = status.code() == Code::timeout || status.code() == Code::cancelled;
                if (!for_itself) return false;
                mine = started_ + 1;
            }
            if (limits.over()) {
                status = limits.end("reading the lake's catalog");
                return false;
            }
            if (!running_) {
                running_ = true;
                started_++;
                return true;
            }
            changed_.wait_for(mutex_, limits.left());
        }
    }
    void done(Status status) ROOST_EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        running_ = false;
        done_ = started_;
        last_ = std::move(status);
        changed_.notify_all();
    }

private:
    Mutex mutex_;
    CondVar changed_;
    bool running_ ROOST_GUARDED_BY(mutex_) = false;
    uint64_t started_ ROOST_GUARDED_BY(mutex_) = 0;
    uint64_t done_ ROOST_GUARDED_BY(mutex_) = 0;
    Status last_ ROOST_GUARDED_BY(mutex_);
};

}  // namespace

struct LakeMirror::Impl {
    explicit Impl(const MetadataAddress &address)
        : reader(make_metadata_reader(address)), past_reader(make_metadata_reader(address)) {}

    Status bring_forward(const CallLimits &limits);
    Result<StatePtr> newer_state(const LakeState *base, bool &past_holds, const CallLimits &limits);
    Result<StatePtr> read_past(uint64_t snapshot, std::span<const TableName> tables, const StatePtr &kept,
                               uint64_t epoch, const CallLimits &limits);
    Result<StatePtr> past(const std::function<Result<LakeSnapshot>(LakeLoader &)> &which,
                          std::span<const TableName> tables, const CallLimits &limits);

    Turn turn;
    std::unique_ptr<MetadataReader> reader;  // of whoever has the turn
    Turn past_turn;
    std::unique_ptr<MetadataReader> past_reader;  // of whoever has the past's turn

    mutable Mutex mutex;
    StatePtr current ROOST_GUARDED_BY(mutex);
    std::list<StatePtr> past_states ROOST_GUARDED_BY(mutex);  // the last used one first
    uint64_t past_epoch ROOST_GUARDED_BY(mutex) = 0;          // counts the times when past_states was emptied
    MirrorCounts counts ROOST_GUARDED_BY(mutex);
};

LakeMirror::LakeMirror(MetadataAddress address) : impl_(std::make_unique<Impl>(address)) {}
LakeMirror::~LakeMirror() = default;

StatePtr LakeMirror::current() const {
    MutexLock lock(impl_->mutex);
    return impl_->current;
}

MirrorCounts LakeMirror::counts() const {
    MutexLock lock(impl_->mutex);
    return impl_->counts;
}

Result<StatePtr> LakeMirror::refresh(const CallLimits &limits) {
    Status status;
    if (impl_->turn.take(limits, status)) {
        status = impl_->bring_forward(limits);
        impl_->turn.done(status);
    }
    if (!status.ok()) return status;
    return current();
}

Status LakeMirror::Impl::bring_forward(const CallLimits &limits) {
    StatePtr base;
    {
        MutexLock lock(mutex);
        base = current;
        counts.checks++;
    }
    LakeLoader loader(*reader, limits);
    ROOST_ASSIGN_OR_RETURN(const LakeSnapshot newest, loader.newest());
    if (base && base->snapshot() == newest) return Status();
    bool past_holds = false;
    ROOST_ASSIGN_OR_RETURN(StatePtr state, newer_state(base.get(), past_holds, limits));
    MutexLock lock(mutex);
    current = std::move(state);
    if (!past_holds) {
        past_states.clear();
        past_epoch++;
    }
    return Status();
}

Result<StatePtr> LakeMirror::Impl::newer_state(const LakeState *base, bool &past_holds, const CallLimits &limits) {
    ROOST_RETURN_IF_ERROR(reader->begin(limits));
    const Transaction transaction(*reader);
    LakeLoader loader(*reader, limits);
    ROOST_ASSIGN_OR_RETURN(const LakeSnapshot newest, loader.newest());
    if (base != nullptr && newest.id > base->snapshot().id) {
        ROOST_ASSIGN_OR_RETURN(const LakeLoader::Since since, loader.since(base->snapshot(), newest));
        if (since.complete) {
            {
                MutexLock lock(mutex);
                counts.advances++;
            }
            past_holds = since.changes.changed.empty() && since.changes.rewritten.empty();
            return advance(loader, *base, newest, since.changes);
        }
    }
    {
        MutexLock lock(mutex);
        counts.loads++;
    }
    past_holds = false;
    return load(loader, newest);
}

Result<StatePtr> LakeMirror::at(uint64_t snapshot, std::span<const TableName> tables, const CallLimits &limits) {
    return impl_->past([&](LakeLoader &loader) { return loader.snapshot(snapshot); }, tables, limits);
}

Result<StatePtr> LakeMirror::at_time(int64_t time_us, std::span<const TableName> tables, const CallLimits &limits) {
    return impl_->past([&](LakeLoader &loader) { return loader.snapshot_at(time_us); }, tables, limits);
}

Result<StatePtr> LakeMirror::Impl::past(const std::function<Result<LakeSnapshot>(LakeLoader &)> &which,
                                        std::span<const TableName> tables, const CallLimits &limits) {
    // First of all a check whether the past that is kept still holds.
    Status status;
    if (turn.take(limits, status)) {
        status = bring_forward(limits);
        turn.done(status);
    }
    ROOST_RETURN_IF_ERROR(status);
    while (!past_turn.take(limits, status)) {
        // Others' reads are of other snapshots: this one has its own to do.
        if (limits.over()) return limits.end("reading the lake's catalog");
    }
    Result<StatePtr> state = [&]() -> Result<StatePtr> {
        uint64_t epoch = 0;
        {
            MutexLock lock(mutex);
            epoch = past_epoch;
        }
        ROOST_RETURN_IF_ERROR(past_reader->begin(limits));
        const Transaction transaction(*past_reader);
        LakeLoader loader(*past_reader, limits);
        ROOST_ASSIGN_OR_RETURN(const LakeSnapshot snapshot, which(loader));
        StatePtr kept;
        {
            MutexLock lock(mutex);
            if (current && current->snapshot() == snapshot) return current;
            for (const StatePtr &each : past_states) {
                if (each->snapshot() == snapshot) kept = each;
            }
        }
        return read_past(snapshot.id, tables, kept, epoch, limits);
    }();
    past_turn.done(state.status());
    return state;
}

Result<StatePtr> LakeMirror::Impl::read_past(uint64_t id, std::span<const TableName> wanted, const StatePtr &kept,
                                             uint64_t epoch, const CallLimits &limits) {
    LakeLoader loader(*past_reader, limits);
    StatePtr state = kept;
    ROOST_ASSIGN_OR_RETURN(const LakeSnapshot newest, loader.newest());
    if (!state) {
        ROOST_ASSIGN_OR_RETURN(const LakeSnapshot snapshot, loader.snapshot(id));
        ROOST_ASSIGN_OR_RETURN(LakeLoader::Definitions definitions, loader.definitions(id));
        LakeState::Tables tables;
        for (auto &[table_id, definition] : definitions.tables) {
            tables.push_back(
                std::make_shared<TableState>(TableState{.definition = std::move(definition), .data = nullptr}));
        }
        auto made = std::make_shared<LakeState>(snapshot, std::move(definitions.data_path), definitions.encrypted,
                                                std::move(definitions.names), std::move(tables));
        made->set_known_until(newest);
        state = std::move(made);
    }
    std::set<uint64_t> missing;
    LakeLoader::TableMap definitions;
    for (const TableName &name : wanted) {
        const auto table = state->table(name.schema, name.name);
        if (!table || table->data) continue;
        missing.insert(table->id());
        definitions.emplace(table->id(), table->definition);
    }
    if (!missing.empty()) {
        ROOST_ASSIGN_OR_RETURN(LakeLoader::DataMap data, loader.data(id, definitions, missing, false));
        for (const uint64_t table : missing) data.emplace(table, data_of(data, table));
        auto made = advance_data(*state, state->snapshot(), data);
        made->set_known_until(state->known_until());
        state = std::move(made);
    }
    MutexLock lock(mutex);
    if (state != kept) counts.past_loads++;
    // It was read before a commit that touched the past, and that commit is known by now.
    if (epoch != past_epoch) return state;
    std::erase_if(past_states, [&](const StatePtr &each) { return each->snapshot().id == id; });
    past_states.push_front(state);
    size_t bytes = 0, count = 0;
    std::erase_if(past_states, [&](const StatePtr &each) {
        for (const auto &table : each->tables()) bytes += table->data ? table->data->segments.memory_bytes() : 0;
        return ++count > kPastStatesMax || bytes > kPastBytesMax;
    });
    return state;
}

}  // namespace roost
