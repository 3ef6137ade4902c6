// What goes into the audit, and how fast: refusals and failed logins are noted here at once and written in batches. A
// flood neither fills the disk nor holds up the gateway: each caller, and all together, have an allowance; what comes
// faster is counted, and the count is a record of its own. Loop thread only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "meta/audit.h"

namespace roost::service {

struct Principal;
struct Session;

struct AuditLimits {
    uint32_t queue_max_records = 2'000;
    // Records at once, and from then on a second. Five a second are half a gigabyte a day at the most.
    double caller_burst_records = 200, caller_records_per_s = 1;
    double all_burst_records = 5'000, all_records_per_s = 5;
    uint32_t callers_max = 10'000;  // known at a time
    uint32_t sql_max_bytes = 1'024, message_max_bytes = 512, name_max_bytes = 128;
    int64_t left_out_every_ms = 10'000;  // how often a count of what was left out is a record
};

class Audit {
public:
    explicit Audit(const Clock &clock, AuditLimits limits = {}) : clock_(clock), limits_(limits) {}

    // A statement of `session` that was refused; `statement`: its id when a node refused it, else nil.
    void refused(const Session &session, std::string_view sql, const Status &refusal, const Uuid &statement);
    // Who may do what was changed.
    void changed(const Principal &who, std::string_view workspace, std::string_view event, std::string_view what);
    void login_failed(std::string_view front, std::string_view user, std::string_view peer);
    // All that gathered. Ones that could not be written may be given back.
    std::vector<meta::AuditRecord> take();
    void give_back(std::vector<meta::AuditRecord> records);

private:
    // Tokens that fill up by themselves.
    struct Allowance {
        double left = 0;
        int64_t since_us = 0;
        bool take(double burst, double per_s, int64_t now_us);
    };
    void note(meta::AuditRecord record);
    bool allowed(const meta::AuditRecord &record);

    const Clock &clock_;
    const AuditLimits limits_;
    std::vector<meta::AuditRecord> gathered_;
    std::unordered_map<std::string, Allowance> callers_;
    Allowance all_;
    uint64_t left_out_ = 0;
    int64_t left_out_told_us_ = 0;
};

// The rule as a metric's label: names that callers made up are one value.
std::string rule_label(std::string_view rule);

// The text as it is kept: cut at a character, and without its literals where it speaks of secrets.
std::string audited_text(std::string_view sql, size_t max_bytes);

}  // namespace roost::service
