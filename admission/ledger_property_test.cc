// Random lives of the ledger with an engine that is late, fails, loses reports and does not give memory back. What must
// hold is computed here from what the engine and the statements really have, not from the ledger's own books.
// ROOST_TEST_SEED repeats a run; ROOST_TEST_TRANSITIONS makes it longer or shorter than a million.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "admission/ledger.h"

namespace roost::admission {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

struct Counts {
    uint64_t transitions = 0, grants = 0, waited = 0, ends = 0, stuck = 0, called_back = 0, lent = 0, overdue = 0;
};

// What an account's instance of the engine really has.
struct Instance {
    uint64_t limit = 0, used = 0;
    uint64_t order = 0;    // the last that was carried out
    bool pinned = false;   // gives nothing back for now
    uint64_t granted = 0;  // required by the statement that runs on it
    bool running = false, keeps_slot = false;
    std::string group;
};

struct Waiting {
    Uuid id;
    std::string user, group;
    int64_t deadline_us = 0, own_deadline_us = 0;
    bool no_wait = false;
};

struct Order {
    Uuid account;
    uint64_t number = 0, bytes = 0;
};

class World final : public EngineOrders {
public:
    World(uint64_t seed, Counts &counts)
        : random_(seed),
          counts_(counts),
          users_(1 + random_.below(3)),
          groups_(random_.chance(0.3)),
          overruns_(random_.chance(0.2)),
          ledger_(options()) {}

    void step() {
        ++counts_.transitions;
        now_us_ += static_cast<int64_t>(random_.below(60'000));
        const uint64_t dice = random_.below(100);
        if (dice < 30) {
            ask();
        } else if (dice < 48) {
            end_statement();
        } else if (dice < 76) {
            carry_out();
        } else if (dice < 82) {
            report_use();
        } else if (dice < 92) {
            take(ledger_.tick(now_us_), true);
            for (const Waiting &waiting : line_) ASSERT_GT(waiting.deadline_us, now_us_) << "a wait goes on for ever";
        } else if (dice < 95) {
            leave();
        } else if (dice < 97) {
            unpin();
        } else if (dice < 98) {
            lane();
        } else {
            switch_something();
        }
        check();
    }

    // Nobody new, and an engine that works: all waits end, and all memory comes back.
    void drain() {
        take(ledger_.set_pressure(Pressure::none, now_us_), false);
        for (int i = 0; !(instances_.empty() && line_.empty()); ++i) {
            ASSERT_LT(i, 5'000) << "it does not end";
            now_us_ += 500'000;
            for (auto &[id, instance] : instances_) instance.pinned = false;
            if (!orders_.empty()) {
                obey(0, false);
            } else if (!instances_.empty()) {
                const Uuid id = instances_.begin()->first;
                instances_.erase(id);
                take(ledger_.release(id, now_us_), false);
            }
            take(ledger_.tick(now_us_), true);
            check();
        }
        ASSERT_EQ(ledger_.granted_bytes(), 0U);
        ASSERT_EQ(ledger_.required_bytes() + ledger_.elastic_bytes(), 0U);
        ASSERT_EQ(ledger_.running(), 0U);
    }

    void set_limit(const Uuid &account, uint64_t order, uint64_t bytes) override {
        // Invariant 4, where it would hurt.
        const auto found = instances_.find(account);
        if (found != instances_.end() && found->second.running && !starting_) {
            EXPECT_GE(bytes, found->second.granted) << "a running statement's memory is called back";
        }
        if (found != instances_.end()) (bytes < found->second.limit ? counts_.called_back : counts_.lent)++;
        orders_.push_back({account, order, bytes});
    }
    void cant_shrink(const Uuid &, uint64_t bytes) override {
        EXPECT_GT(bytes, 0U);
        ++counts_.stuck;
    }

private:
    LedgerOptions options() {
        LedgerOptions options;
        options.budget_bytes = 256 * kMiB + random_.below(8 * kGiB);
        options.profile = Profile::automatic;
        options.threads = 1 + static_cast<uint32_t>(random_.below(16));
        options.engine = this;
        options.random = &random_;
        options.always_audit = true;
        if (groups_) {
            options.groups = {{"etl", 1, 0, 2, 0}, {"bi", 3, 0, 0, options.budget_bytes / 4}, {"gold", 1, 5, 0, 0}};
        }
        return options;
    }

    Uuid new_id() {
        Uuid id;
        const uint64_t number = ++ids_;
        std::memcpy(id.bytes.data(), &number, sizeof(number));
        return id;
    }

    template <typename Map>
    typename Map::iterator any(Map &map) {
        auto it = map.begin();
        std::advance(it, random_.below(map.size()));
        return it;
    }

    void ask() {
        if (instances_.size() + line_.size() >= busy_) return;
        Request request;
        request.account = new_id();
        // An idle session comes back.
        if (!instances_.empty() && random_.chance(0.5)) {
            const auto &[id, instance] = *any(instances_);
            if (!instance.running && !leaving_.contains(id) && find(id) == line_.end()) request.account = id;
        }
        request.no_wait = random_.chance(0.2);
        request.wanted_bytes = random_.chance(0.1) ? 0 : random_.below(ledger_.budget_bytes());
        request.admission_wait_us = random_.chance(0.1) ? 0 : 1 + static_cast<int64_t>(random_.below(20'000'000));
        if (random_.chance(0.2)) request.timeout_us = 1 + static_cast<int64_t>(random_.below(20'000'000));
        request.fixed = random_.chance(0.1);
        request.user = std::string(1, static_cast<char>('a' + random_.below(users_)));
        if (groups_) request.group = std::vector<std::string>{"", "etl", "bi", "gold"}[random_.below(4)];
        const bool keeps = instances_.contains(request.account) && instances_[request.account].keeps_slot;
        const bool nothing_there = ledger_.granted_bytes() == 0 && line_.empty();
        const bool passes = anybody_may_run();
        starting_ = true;
        const auto answer = ledger_.request(request, now_us_);
        starting_ = false;
        using Kind = Ledger::Answer::Kind;
        if (answer.kind == Kind::granted) {
            ASSERT_TRUE(keeps || !passes) << "a newcomer passed a waiter";
            ASSERT_TRUE(!request.fixed || keeps || answer.grant.elastic_bytes == 0)
                << "lent to one that can't give back";
            Waiting waiting{request.account, request.user, request.group, 0, 0, false};
            start(waiting, answer.grant);
            return;
        }
        if (pressure_ != Pressure::refuse) {
            ASSERT_FALSE(nothing_there) << "waits though nothing runs";
        }
        if (answer.kind == Kind::waiting) {
            ASSERT_FALSE(request.no_wait && passes) << "no_wait stands in a line";
            Waiting waiting{request.account, request.user, request.group, 0, 0, request.no_wait};
            const int64_t most_us = std::max<int64_t>(request.admission_wait_us * 115 / 100 + 1, 2'000'000);
            waiting.deadline_us = now_us_ + most_us;
            if (request.timeout_us > 0) {
                waiting.own_deadline_us = now_us_ + request.timeout_us;
                waiting.deadline_us = std::min(waiting.deadline_us, waiting.own_deadline_us);
            }
            line_.push_back(waiting);
            if (random_.chance(0.05)) {
                ASSERT_GT(ledger_.place(request.account), 0U);
            }
            return;
        }
        ASSERT_TRUE(request.no_wait || request.admission_wait_us == 0);
        ASSERT_EQ(answer.kind, request.no_wait ? Kind::would_wait : Kind::refused);
    }

    // Somebody waits for memory and not for his own group's cap.
    bool anybody_may_run() const {
        if (!groups_) return !line_.empty();
        // The caps are the ledger's to know; what is seen from here: the uncapped groups.
        return std::any_of(line_.begin(), line_.end(),
                           [](const Waiting &w) { return w.group.empty() || w.group == "gold"; });
    }

    void start(const Waiting &waiting, const SlotGrant &grant) {
        Instance &instance = instances_[grant.statement];
        ASSERT_FALSE(instance.running) << "granted twice";
        ASSERT_FALSE(leaving_.contains(grant.statement));
        instance.running = true;
        if (!instance.keeps_slot) instance.group = waiting.group;  // a slot that is kept stays with its group
        instance.keeps_slot = false;
        instance.granted = grant.bytes;
        ASSERT_GE(grant.order, instance.order);
        // The instance is given the limit of its grant; what it was told before is void.
        std::erase_if(orders_, [&](const Order &order) {
            return order.account == grant.statement && order.number < grant.order;
        });
        instance.order = grant.order;
        instance.limit = grant.bytes + grant.elastic_bytes;
        if (instance.used <= instance.limit) {
            instance.used = random_.below(instance.limit + 1);
            instance.pinned = random_.chance(0.1);
        }
        confirm_later_.push_back({grant.statement, grant.order, 0});
        ++counts_.grants;
    }

    std::vector<Waiting>::iterator find(const Uuid &id) {
        return std::find_if(line_.begin(), line_.end(), [&](const Waiting &waiting) { return waiting.id == id; });
    }

    void take(const Outcome &outcome, bool at_deadlines) {
        // Some waits may have ended before others were granted; none that is granted had ended.
        for (const WaitEnd &end : outcome.ends) {
            const auto waiter = find(end.statement);
            ASSERT_NE(waiter, line_.end());
            if (end.why == WaitEnd::Why::own_timeout) {
                ASSERT_LE(waiter->own_deadline_us, now_us_);
            }
            line_.erase(waiter);
            ++counts_.ends;
        }
        for (const SlotGrant &grant : outcome.grants) {
            const auto waiter = find(grant.statement);
            ASSERT_NE(waiter, line_.end()) << "granted to one who does not wait";
            const bool overdue = grant.overdue;
            if (overdue) {
                ASSERT_TRUE(at_deadlines);
                ASSERT_LE(waiter->deadline_us, now_us_ + 6'000'001) << "before its wait could be over";
            }
            if (overdue) ++counts_.overdue;
            if (!overdue && users_ == 1 && !groups_) {
                ASSERT_EQ(waiter, line_.begin()) << "somebody was passed";
            }
            if (overdue) {
                std::erase_if(passed_, [&](const auto &entry) { return entry.first.first == waiter->user; });
            } else {
                check_turn(waiter);
            }
            ++counts_.waited;
            const Waiting waiting = *waiter;
            line_.erase(waiter);
            starting_ = true;
            start(waiting, grant);
            starting_ = false;
        }
    }

    // A user's own statements are served in order, and no other user is served thrice between two of his turns.
    void check_turn(std::vector<Waiting>::iterator waiter) {
        std::set<std::string> seen;
        for (auto it = line_.begin(); it != line_.end(); ++it) {
            if (it->user == waiter->user && it->group == waiter->group) {
                ASSERT_FALSE(it < waiter) << "a user's own statements changed places";
            } else if (!groups_ && it->user != waiter->user) {
                seen.insert(it->user);
            }
        }
        std::erase_if(passed_, [&](const auto &entry) {
            return entry.first.first == waiter->user || !seen.contains(entry.first.first);
        });
        for (const std::string &user : seen) {
            const int times = ++passed_[std::pair(user, waiter->user)];
            ASSERT_LE(times, 2) << user << " is held back by " << waiter->user;
        }
    }

    void end_statement() {
        if (instances_.empty()) return;
        const auto found = any(instances_);
        const Uuid id = found->first;
        Instance &instance = found->second;
        if (random_.chance(0.15)) {  // the process of the instance is gone with all it had
            instances_.erase(found);
            leaving_.erase(id);
            std::erase_if(orders_, [&](const Order &order) { return order.account == id; });
            return take(ledger_.release(id, now_us_), false);
        }
        const uint64_t dice = random_.below(10);
        const Keep keep = dice < 5 ? Keep::nothing : dice < 9 ? Keep::elastic : Keep::slot;
        const bool has_statement = instance.running || instance.keeps_slot;
        if (leaving_.contains(id) || (!has_statement && keep != Keep::nothing)) {  // no effect
            return take(ledger_.end(id, keep, now_us_), false);
        }
        instance.running = false;
        if (const auto waiter = find(id); waiter != line_.end()) line_.erase(waiter);
        const Outcome outcome = ledger_.end(id, keep, now_us_);
        const Ledger::View view = ledger_.view(id);
        instance.keeps_slot = keep != Keep::nothing && view.told_bytes > 0 && view.required_bytes == instance.granted;
        if (view.told_bytes == 0) leaving_.insert(id);
        take(outcome, false);
        sweep();
    }

    // Carries out one order, or reports one that was.
    void carry_out() {
        if (!confirm_later_.empty() && random_.chance(0.5)) {
            const size_t at = random_.below(confirm_later_.size());
            const Order order = confirm_later_[at];
            confirm_later_.erase(confirm_later_.begin() + static_cast<ptrdiff_t>(at));
            if (random_.chance(0.03)) return;  // lost
            const auto found = instances_.find(order.account);
            const uint64_t used = found == instances_.end() ? 0 : found->second.used;
            take(ledger_.limit_confirmed(order.account, order.number, used, now_us_), false);
            return sweep();
        }
        if (!orders_.empty()) obey(random_.below(orders_.size()), random_.chance(0.1));
    }

    void obey(size_t at, bool fails) {
        const Order order = orders_[at];
        orders_.erase(orders_.begin() + static_cast<ptrdiff_t>(at));
        const auto found = instances_.find(order.account);
        if (found == instances_.end()) return;
        Instance &instance = found->second;
        if (fails) return ledger_.limit_failed(order.account, order.number, now_us_);
        if (order.number < instance.order) return;  // an older one that comes late
        instance.order = order.number;
        instance.limit = order.bytes;
        if (!instance.pinned) instance.used = std::min(instance.used, instance.limit);
        if (random_.chance(0.5)) {
            confirm_later_.push_back(order);
            return;
        }
        take(ledger_.limit_confirmed(order.account, order.number, instance.used, now_us_), false);
        sweep();
    }

    // Instances whose last memory the ledger knows to be back are closed.
    void sweep() {
        for (auto it = leaving_.begin(); it != leaving_.end();) {
            const auto found = instances_.find(*it);
            if (found != instances_.end() && ledger_.view(*it).counted_bytes > 0) {
                ++it;
                continue;
            }
            if (found != instances_.end()) {
                ASSERT_EQ(found->second.used, 0U) << "forgotten before its memory was back";
                ASSERT_EQ(found->second.limit, 0U);
                instances_.erase(found);
            }
            it = leaving_.erase(it);
        }
        std::erase_if(instances_, [&](const auto &entry) {
            const Instance &instance = entry.second;
            return !instance.running && !instance.keeps_slot && instance.limit == 0 && instance.used == 0 &&
                   ledger_.view(entry.first).counted_bytes == 0;
        });
    }

    void report_use() {
        if (instances_.empty()) return;
        auto &[id, instance] = *any(instances_);
        if (overruns_ && random_.chance(0.1)) {
            instance.used = instance.limit + random_.below(kGiB / 4);  // aggregates that no limit holds
        } else if (instance.running && instance.used <= instance.limit) {
            instance.used = random_.below(instance.limit + 1);
        } else if (!instance.pinned) {
            instance.used = std::min(instance.used, instance.limit);
        }
        take(ledger_.used(id, instance.used, now_us_), false);
        sweep();
    }

    void unpin() {
        for (auto &[id, instance] : instances_) instance.pinned = false;
    }

    void leave() {
        if (line_.empty()) return;
        const auto waiter = line_.begin() + static_cast<ptrdiff_t>(random_.below(line_.size()));
        const Uuid id = waiter->id;
        line_.erase(waiter);
        take(ledger_.abandon(id, now_us_), false);
    }

    void lane() {
        const Uuid id = new_id();
        if (ledger_.enter_lane(id, random_.below(ledger_.budget_bytes() / 24))) in_lane_.push_back(id);
        if (in_lane_.size() > 3) {
            ledger_.leave_lane(in_lane_.front());
            in_lane_.erase(in_lane_.begin());
        }
    }

    void switch_something() {
        busy_ = 1 + random_.below(24);
        if (random_.chance(0.5)) {
            const auto profile = random_.chance(0.5) ? Profile::automatic : static_cast<Profile>(random_.below(5));
            return take(ledger_.set_profile(profile, now_us_), false), sweep();
        }
        const uint64_t dice = random_.below(10);
        pressure_ = dice < 7 ? Pressure::none : dice < 9 ? Pressure::shed : Pressure::refuse;
        take(ledger_.set_pressure(pressure_, now_us_), false);
        sweep();
    }

    void check() {
        std::erase_if(passed_, [this](const auto &entry) {
            return std::none_of(line_.begin(), line_.end(),
                                [&](const Waiting &w) { return w.user == entry.first.first; });
        });
        uint64_t required = 0, promised = 0, real = 0;
        std::map<std::string, std::pair<uint32_t, uint64_t>> groups;
        for (const auto &[id, instance] : instances_) {
            const Ledger::View view = ledger_.view(id);
            if (instance.running || instance.keeps_slot) {
                required += instance.granted;
                groups[instance.group].first++;
                groups[instance.group].second += instance.granted;
                ASSERT_EQ(view.required_bytes, instance.granted) << "4: required memory was taken";
            }
            promised += view.required_bytes + view.elastic_bytes;
            real += std::max(instance.limit, overruns_ ? 0 : instance.used);
            // The instance's own: what it may use or does use is counted for it, running or not.
            ASSERT_GE(view.counted_bytes, std::max(instance.limit, overruns_ ? 0 : instance.used))
                << "5: memory counts as back that is not";
        }
        ASSERT_LE(required, ledger_.lendable_bytes()) << "1: more is required than there is";
        ASSERT_LE(promised, ledger_.lendable_bytes()) << "2: more is promised than there is";
        ASSERT_LE(real, ledger_.lendable_bytes()) << "3: memory is lent twice";
        if (groups_) {
            ASSERT_LE(groups["etl"].first, 2U) << "a group is over its cap";
        }
        ASSERT_EQ(ledger_.waiting(), line_.size());
        ASSERT_TRUE(line_.empty() || ledger_.granted_bytes() > 0 || pressure_ == Pressure::refuse)
            << "7: a wait that nothing will end";
        ASSERT_TRUE(line_.empty() || ledger_.next_event_us().has_value()) << "7: a wait without an end";
        if (!line_.empty() && !groups_ && !overruns_ && pressure_ == Pressure::none && ledger_.running() == 0 &&
            ledger_.profile() == Profile::automatic) {
            const bool coming = std::any_of(instances_.begin(), instances_.end(), [this](const auto &entry) {
                const Ledger::View view = ledger_.view(entry.first);
                return view.counted_bytes > view.told_bytes && !view.stuck;
            });
            const uint64_t free = ledger_.lendable_bytes() - ledger_.granted_bytes();
            ASSERT_TRUE(coming || free < ledger_.sizes_of(1).floor_bytes) << "7: it waits though nothing runs";
        }
    }

    SeededRandom random_;
    Counts &counts_;
    const uint64_t users_;
    const bool groups_, overruns_;
    int64_t now_us_ = 1'000'000;
    uint64_t ids_ = 0;
    bool starting_ = false;
    uint64_t busy_ = 1 + random_.below(24);                      // accounts and waiters at most, for now
    std::map<std::pair<std::string, std::string>, int> passed_;  // (who waits, who was served): how often since
    Pressure pressure_ = Pressure::none;
    std::map<Uuid, Instance> instances_;
    std::set<Uuid> leaving_;
    std::vector<Waiting> line_;
    std::vector<Order> orders_, confirm_later_;
    std::vector<Uuid> in_lane_;
    Ledger ledger_;
};

uint64_t number_of(const char *name, uint64_t standard) {
    const char *given = std::getenv(name);
    return given != nullptr ? std::strtoull(given, nullptr, 10) : standard;
}

// The sanitizers make it twenty times slower; they look for other faults, of which less shows as much.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ROOST_SANITIZED 1
#endif
#endif
#ifdef ROOST_SANITIZED
constexpr uint64_t kTransitions = 100'000;
#else
constexpr uint64_t kTransitions = 1'000'000;
#endif

TEST(LedgerProperty, a_million_transitions_with_a_bad_engine_keep_all_seven_invariants) {
    const uint64_t seed = number_of("ROOST_TEST_SEED", std::random_device()());
    const uint64_t transitions = number_of("ROOST_TEST_TRANSITIONS", kTransitions);
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    constexpr uint64_t kSteps = 2'000;
    Counts counts;
    for (uint64_t run = 0; run * kSteps < transitions; ++run) {
        World world(seed + run, counts);
        for (uint64_t step = 0; step < kSteps; ++step) {
            world.step();
            ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << " run " << run << " step " << step;
        }
        world.drain();
        ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << " run " << run << " draining";
    }
    std::printf(
        "%llu grants (%llu after a wait, %llu of them at its end), %llu waits in vain, %llu limits raised, "
        "%llu lowered, %llu stuck\n",
        static_cast<unsigned long long>(counts.grants), static_cast<unsigned long long>(counts.waited),
        static_cast<unsigned long long>(counts.overdue), static_cast<unsigned long long>(counts.ends),
        static_cast<unsigned long long>(counts.lent), static_cast<unsigned long long>(counts.called_back),
        static_cast<unsigned long long>(counts.stuck));
    // The run went through what it is about.
    if (transitions < 100'000) return;
    for (const uint64_t count : {counts.grants, counts.waited, counts.ends, counts.called_back}) {
        EXPECT_GT(count, transitions / 100);
    }
    EXPECT_GT(counts.stuck, transitions / 1000);
    EXPECT_GT(counts.lent, transitions / 1000);
    EXPECT_GT(counts.overdue, transitions / 1000);
}

}  // namespace
}  // namespace roost::admission
