#include "admission/line.h"

#include <algorithm>
#include <cassert>

namespace roost::admission {

Line::Line(std::vector<GroupOptions> groups) {
    groups_.emplace_back();
    for (GroupOptions &options : groups) {
        if (!(options.weight > 0)) options.weight = 1;
        if (options.name.empty()) {
            groups_[0].options = std::move(options);
        } else {
            groups_.emplace_back().options = std::move(options);
        }
    }
}

uint32_t Line::group_of(const std::string &name) const {
    for (uint32_t i = 0; i < groups_.size(); ++i) {
        if (groups_[i].options.name == name) return i;
    }
    return 0;
}

std::vector<GroupOptions> Line::groups() const {
    std::vector<GroupOptions> groups;
    for (const Group &group : groups_) groups.push_back(group.options);
    return groups;
}

Line::Standing Line::standing(size_t index) const {
    const Group &group = groups_[index];
    return {group.running, static_cast<uint32_t>(group.waiting), group.required_bytes};
}

void Line::charge(uint32_t group, uint64_t bytes) {
    ++groups_[group].running;
    groups_[group].required_bytes += bytes;
}

void Line::discharge(uint32_t group, uint64_t bytes) {
    assert(groups_[group].running > 0 && groups_[group].required_bytes >= bytes);
    --groups_[group].running;
    groups_[group].required_bytes -= bytes;
}

uint64_t Line::room_bytes(uint32_t index) const {
    const Group &group = groups_[index];
    const uint64_t most = group.options.required_max_bytes;
    if (most == 0) return UINT64_MAX;
    return most - std::min(most, group.required_bytes);
}

bool Line::may_run(uint32_t index, uint64_t floor_bytes) const {
    const Group &group = groups_[index];
    if (group.running == 0) return true;
    if (group.options.running_max != 0 && group.running >= group.options.running_max) return false;
    return room_bytes(index) >= floor_bytes;
}

bool Line::eligible(uint32_t index) const {
    const Group &group = groups_[index];
    if (group.due.empty()) return false;
    const Uuid &next = group.users.at(group.due.begin()->second).waiters.begin()->second;
    return may_run(index, waiters_.at(next).floor_bytes);
}

// The user's first waiter is due.
void Line::enter(Group &group, const std::string &name, User &user) {
    if (!user.waiters.empty()) group.due.insert({{user.next, user.waiters.begin()->first}, name});
}

void Line::withdraw(Group &group, const std::string &name, const User &user) {
    if (!user.waiters.empty()) group.due.erase({{user.next, user.waiters.begin()->first}, name});
}

void Line::join(Waiter waiter) {
    assert(find(waiter.statement) == nullptr);
    Group &group = groups_[waiter.group];
    if (group.waiting == 0) group.next = std::max(group.next, now_);
    User &user = group.users[waiter.user];
    if (user.waiters.empty()) {
        user.next = std::max(user.next, group.now);
        user.waiters.emplace(waiter.arrival, waiter.statement);
        enter(group, waiter.user, user);
    } else {
        user.waiters.emplace(waiter.arrival, waiter.statement);
    }
    ++group.waiting;
    group.wanted_bytes += waiter.want_bytes;
    deadlines_.insert({waiter.deadline_us, waiter.arrival});
    by_arrival_.emplace(waiter.arrival, waiter.statement);
    const Uuid statement = waiter.statement;
    waiters_.emplace(statement, std::move(waiter));
}

template <typename May>
std::optional<uint32_t> Line::choose(const std::vector<Group> &groups, May &&may) {
    std::optional<uint32_t> best;
    for (uint32_t i = 0; i < groups.size(); ++i) {
        if (groups[i].due.empty() || !may(i)) continue;
        if (!best) {
            best = i;
            continue;
        }
        const Group &one = groups[i], &other = groups[*best];
        const bool sooner =
            std::pair(one.next, one.due.begin()->first) < std::pair(other.next, other.due.begin()->first);
        if (one.options.priority != other.options.priority ? one.options.priority > other.options.priority : sooner) {
            best = i;
        }
    }
    return best;
}

const Waiter *Line::head() {
    if (head_) {
        const Waiter &waiter = waiters_.at(*head_);
        if (may_run(waiter.group, waiter.floor_bytes)) return &waiter;
        head_.reset();
    }
    const auto index = choose(groups_, [this](uint32_t i) { return eligible(i); });
    if (!index) return nullptr;
    Group &group = groups_[*index];
    const User &user = group.users.at(group.due.begin()->second);
    head_ = user.waiters.begin()->second;
    // It is this turn now: who comes while the head waits starts no earlier.
    now_ = std::max(now_, group.next);
    group.now = std::max(group.now, user.next);
    return &waiters_.at(*head_);
}

// A turn of the group and of its user is over.
void Line::take_turn(std::vector<Group> &groups, Turn &now, uint32_t index, User &user) {
    Group &group = groups[index];
    // A group that was at its cap saved up no turns.
    now = std::max(group.next, now);
    group.next = now + 1 / group.options.weight;
    group.now = std::max(group.now, user.next);
    user.next += 1;
}

void Line::remove(const Uuid &statement, bool served) {
    const auto found = waiters_.find(statement);
    assert(found != waiters_.end());
    const Waiter &waiter = found->second;
    Group &group = groups_[waiter.group];
    User &user = group.users.at(waiter.user);
    withdraw(group, waiter.user, user);
    user.waiters.erase(waiter.arrival);
    if (served) take_turn(groups_, now_, waiter.group, user);
    enter(group, waiter.user, user);
    --group.waiting;
    group.wanted_bytes -= waiter.want_bytes;
    deadlines_.erase({waiter.deadline_us, waiter.arrival});
    by_arrival_.erase(waiter.arrival);
    if (head_ == statement) head_.reset();
    waiters_.erase(found);
    tidy();
}

void Line::serve(const Uuid &statement) { remove(statement, true); }
void Line::leave(const Uuid &statement) { remove(statement, false); }

// Forgets users who wait for nothing: all of them when nobody waits, else when they have become the most.
void Line::tidy() {
    if (waiters_.empty()) {
        now_ = 0;
        for (Group &group : groups_) {
            group.next = group.now = 0;
            group.users.clear();
        }
        return;
    }
    for (Group &group : groups_) {
        if (group.users.size() <= 2 * group.due.size() + 64) continue;
        std::erase_if(group.users, [&](const auto &entry) { return entry.second.waiters.empty(); });
    }
}

const Waiter *Line::find(const Uuid &statement) const {
    const auto found = waiters_.find(statement);
    return found == waiters_.end() ? nullptr : &found->second;
}

bool Line::has_eligible() const {
    for (uint32_t i = 0; i < groups_.size(); ++i) {
        if (eligible(i)) return true;
    }
    return false;
}

unsigned __int128 Line::wanted_bytes() const {
    unsigned __int128 bytes = 0;
    for (uint32_t i = 0; i < groups_.size(); ++i) {
        if (eligible(i)) bytes += groups_[i].wanted_bytes;
    }
    return bytes;
}

std::optional<int64_t> Line::next_deadline_us() const {
    if (deadlines_.empty()) return std::nullopt;
    return deadlines_.begin()->first;
}

std::vector<Uuid> Line::overdue(int64_t now_us) const {
    std::vector<uint64_t> arrivals;
    for (auto it = deadlines_.begin(); it != deadlines_.end() && it->first <= now_us; ++it)
        arrivals.push_back(it->second);
    std::sort(arrivals.begin(), arrivals.end());
    std::vector<Uuid> statements;
    for (const uint64_t arrival : arrivals) statements.push_back(by_arrival_.at(arrival));
    return statements;
}

std::vector<Uuid> Line::order() const {
    std::vector<Uuid> statements;
    std::vector<Group> groups = groups_;
    Turn now = now_;
    const auto take = [&](uint32_t index, const std::string &name) {
        Group &group = groups[index];
        User &user = group.users.at(name);
        withdraw(group, name, user);
        statements.push_back(user.waiters.begin()->second);
        user.waiters.erase(user.waiters.begin());
        take_turn(groups, now, index, user);
        enter(group, name, user);
    };
    if (head_) take(waiters_.at(*head_).group, waiters_.at(*head_).user);
    while (const auto index = choose(groups, [](uint32_t) { return true; })) {
        take(*index, std::string(groups[*index].due.begin()->second));
    }
    return statements;
}

uint32_t Line::place(const Uuid &statement) const {
    if (find(statement) == nullptr) return 0;
    if (head_ == statement) return 1;
    const std::vector<Uuid> statements = order();
    const auto found = std::find(statements.begin(), statements.end(), statement);
    return static_cast<uint32_t>(found - statements.begin() + 1);
}

}  // namespace roost::admission
