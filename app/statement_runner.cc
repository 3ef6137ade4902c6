#include "app/statement_runner.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <thread>

#include "app/json_slices.h"

namespace roost::app {
namespace {

// The hold of the first request bounds how long Ctrl-C may go unheard.
constexpr int64_t kFirstWait_ms = 500;
constexpr int64_t kNextWait_ms = 1'000;
constexpr auto kMostSilence = std::chrono::seconds(15);
constexpr auto kSilentPause = std::chrono::milliseconds(200);
constexpr size_t kMostMarkedWidth = 150;

std::string upper(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
    return text;
}

void show(const StatementState &statement, double seconds) {
    const std::string what = !statement.wait.empty() ? statement.wait : statement.status;
    std::fprintf(stderr, "\r\033[K%s, %.0f s", printable(what).c_str(), seconds);
    if (statement.progress >= 0) std::fprintf(stderr, ", %.0f %%", statement.progress);
    std::fflush(stderr);
}

// Rows of a page, in the order of its columns; a row that lacks one has NULL there.
Status write_rows(const RowsPage &page, ResultWriter &writer) {
    ROOST_ASSIGN_OR_RETURN(const auto rows, json_elements(page.rows));
    for (const std::string_view text : rows) {
        ROOST_ASSIGN_OR_RETURN(const auto members, json_members(text));
        ResultRow row;
        for (size_t i = 0; i < page.columns.size(); ++i) {
            // The server writes them in order; looking is for when it does not.
            if (i < members.size() && members[i].first == page.columns[i].name) {
                row.push_back(members[i].second);
                continue;
            }
            const auto found = std::find_if(members.begin(), members.end(),
                                            [&](const auto &member) { return member.first == page.columns[i].name; });
            row.push_back(found == members.end() ? std::string_view("null") : found->second);
        }
        writer.row(row);
    }
    return {};
}

}  // namespace

StatementRunner::StatementRunner(PoolClient &client, Interrupt &interrupt, Options options, std::ostream &out)
    : client_(client), interrupt_(interrupt), options_(std::move(options)), out_(out) {}

Status StatementRunner::run(const std::string &sql) {
    const auto began = std::chrono::steady_clock::now();
    options_.submit.wait_ms = kFirstWait_ms;
    ROOST_ASSIGN_OR_RETURN(StatementState statement, client_.submit(sql, options_.submit));
    bool shown = false;
    ROOST_ASSIGN_OR_RETURN(statement,
                           follow(client_, interrupt_, std::move(statement), [&](const StatementState &state) {
                               const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
                               if (!options_.show_progress || seconds.count() < 1) return;
                               show(state, seconds.count());
                               shown = true;
                           }));
    if (shown) std::fputs("\r\033[K", stderr);
    return print(statement);
}

Status StatementRunner::print(const StatementState &statement) {
    ROOST_RETURN_IF_ERROR(outcome(statement));
    if (statement.has_result) return print_rows(statement);
    if (options_.format != OutputFormat::table) return {};
    out_ << upper(statement.kind.empty() ? "ok" : statement.kind);
    if (statement.row_count) out_ << " " << *statement.row_count;
    out_ << "\n" << std::flush;
    return {};
}

Status StatementRunner::print_rows(const StatementState &statement) {
    const auto writer = make_result_writer(options_.format, out_);
    RowsPage page;
    if (statement.first_page) {
        page = *statement.first_page;
    } else {
        ROOST_ASSIGN_OR_RETURN(page, client_.rows(statement.id, ""));
    }
    const std::vector<ResultColumn> columns = page.columns;
    writer->begin(columns);
    for (;;) {
        ROOST_RETURN_IF_ERROR(write_rows(page, *writer));
        if (page.cursor.empty()) break;
        if (interrupt_.take()) return Status(Code::cancelled, "interrupted; the rows above are not all");
        if (!out_) return Status(Code::io_error, "the output cannot be written");
        ROOST_ASSIGN_OR_RETURN(page, client_.rows(statement.id, page.cursor));
        page.columns = columns;
    }
    writer->end();
    out_ << std::flush;
    return out_ ? Status() : Status(Code::io_error, "the output cannot be written");
}

Result<StatementState> follow(PoolClient &client, Interrupt &interrupt, StatementState statement,
                              const std::function<void(const StatementState &)> &watch) {
    auto silent_since = std::chrono::steady_clock::now();
    while (!statement.is_over()) {
        watch(statement);
        if (interrupt.take()) ROOST_RETURN_IF_ERROR(client.cancel(statement.id));
        auto next = client.status(statement.id, kNextWait_ms);
        const auto now = std::chrono::steady_clock::now();
        if (next.ok()) {
            statement = std::move(*next);
            silent_since = now;
            continue;
        }
        // A gateway that was killed is back in a moment, and knows what became of the statement.
        if (next.status().code() != Code::unavailable || now - silent_since > kMostSilence) return next.status();
        std::this_thread::sleep_for(kSilentPause);
    }
    return statement;
}

Status outcome(const StatementState &statement) {
    if (statement.status == "done") return {};
    if (statement.status == "cancelled") {
        return Status(Code::cancelled, statement.error.empty() ? "the statement was cancelled" : statement.error);
    }
    return Status(Code::engine_error, statement.error.empty() ? "the statement failed" : statement.error)
        .with_position(statement.position);
}

std::string position_marker(std::string_view sql, uint32_t position) {
    if (position == 0) return {};
    size_t at = 0;
    const auto is_continuation = [&](size_t i) { return (static_cast<unsigned char>(sql[i]) & 0xc0) == 0x80; };
    for (uint32_t left = position - 1; left > 0 && at < sql.size(); --left) {
        do ++at;
        while (at < sql.size() && is_continuation(at));
    }
    if (at >= sql.size()) return {};
    const size_t before = at == 0 ? std::string_view::npos : sql.rfind('\n', at - 1);
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const std::string_view line = sql.substr(begin, std::min(sql.find('\n', at), sql.size()) - begin);
    const std::string label =
        "LINE " + std::to_string(1 + std::count(sql.begin(), sql.begin() + static_cast<std::ptrdiff_t>(begin), '\n')) +
        ": ";
    const std::string lead = printable(line.substr(0, at - begin));
    std::string shown = lead + printable(line.substr(at - begin));
    size_t column = display_width(lead);
    // A long line is shown around the place.
    if (shown.size() > kMostMarkedWidth && display_width(shown) == shown.size()) {
        const size_t from = column > kMostMarkedWidth / 2 ? column - kMostMarkedWidth / 2 : 0;
        shown = (from > 0 ? "…" : "") + shown.substr(from, kMostMarkedWidth) +
                (from + kMostMarkedWidth < shown.size() ? "…" : "");
        column = column - from + (from > 0 ? 1 : 0);
    }
    return label + shown + "\n" + std::string(label.size() + column, ' ') + "^\n";
}

}  // namespace roost::app
