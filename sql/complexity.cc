#include "sql/complexity.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "sql/lexer.h"

namespace roost::sql {
namespace {

// One token makes about one node of 100–200 bytes. Ordinary statements stay far below all of these; each bound is about
// half a second of work.
constexpr uint64_t copied_nodes_max = 1'000'000;     // nodes that copying may make
constexpr uint64_t assigned_steps_max = 50'000'000;  // steps over the right side of SET (a, b, …) = …
constexpr uint64_t grouped_steps_max = 4'000'000;    // elements of grouping sets, written out
constexpr uint64_t grouping_sets_max = 65'535;       // DuckDB refuses more itself
constexpr uint32_t conjunction_max = 10'000;         // terms of one AND or OR chain

enum class Group : uint8_t { none, list, cube, rollup, sets };

// The statement, a pair of brackets, or a CASE … END.
struct Frame {
    bool is_case = false;
    // What the parser copies: the argument of CASE for each WHEN, the ORDER BY of ARRAY(…) twice.
    uint64_t nodes = 1;         // of the whole, copies counted
    uint64_t repeated = 0;      // of the part that is copied
    uint64_t times = 0;         // how often
    bool repeating = false;     // inside that part
    bool array = false;         // ARRAY(…)
    uint32_t conjunctions = 0;  // AND and OR since the last token that ends a chain
    uint32_t commas = 0;
    bool may_assign = false;    // opened after SET or a comma: may be the left side of SET (a, b) = …
    bool pivot = false;         // PIVOT seen
    bool pivot_on = false;      // its ON seen: commas separate columns
    Group group = Group::none;  // what the brackets hold of a GROUP BY
    bool grouping = false;      // inside a GROUP BY list at this level
    uint64_t group_items = 0;   // its items
    uint64_t group_terms = 0;   // its expressions, those inside CUBE and ROLLUP too
    uint64_t group_sets = 1;    // sets that its items multiply to
};

class Meter {
public:
    Meter(std::string_view text, uint32_t depth_max) : text_(text), depth_max_(depth_max) { frames_.emplace_back(); }

    Status run();

private:
    Status open(char bracket);
    Status close(const Token &next);
    Status comma();
    Status word(std::string_view word);
    Status clause(std::string_view word);
    Status pop();
    Status end_grouping();
    void close_group(const Frame &closed);
    Status at_end() const;
    void add_nodes(uint64_t nodes) {
        Frame &frame = frames_.back();
        frame.nodes += nodes;
        if (frame.repeating) frame.repeated += nodes;
    }
    Status refuse(const std::string &why) const {
        return too_complex(why, static_cast<uint32_t>(count_characters(text_.substr(0, token_.begin))) + 1);
    }
    static bool is(std::string_view word, std::string_view lower) { return equals_folded(word, lower); }
    // The innermost frame that is no CASE: where clauses belong.
    Frame &bracket() {
        size_t i = frames_.size() - 1;
        while (frames_[i].is_case) --i;
        return frames_[i];
    }

    std::string_view text_;
    const uint32_t depth_max_;
    Token token_;
    std::string_view previous_;
    std::vector<Frame> frames_;
    uint64_t tokens_ = 0;
    uint64_t copies_ = 0;
    uint64_t grouped_steps_ = 0;
    uint64_t pivot_columns_ = 0;
    uint64_t window_uses_ = 0;
    uint64_t window_tokens_ = 0;
    uint64_t assigned_columns_ = 0;
    bool in_window_clause_ = false;
};

// Ends the innermost frame; its nodes become its parent's.
Status Meter::pop() {
    if (frames_.back().grouping) ROOST_RETURN_IF_ERROR(end_grouping());
    const Frame closed = frames_.back();
    frames_.pop_back();
    const uint64_t copied = closed.repeated * closed.times;
    copies_ += copied;
    if (copies_ > copied_nodes_max) {
        return refuse(closed.is_case ? "CASE repeats its argument too often" : "ARRAY repeats its ORDER BY too often");
    }
    add_nodes(closed.nodes + copied);
    return Status();
}

Status Meter::open(char character) {
    if (frames_.size() > depth_max_)
        return refuse("it is nested deeper than " + std::to_string(depth_max_) + " levels");
    const Frame &parent = frames_.back();
    Frame frame;
    if (character == '(') {
        frame.may_assign = previous_ == "," || is(previous_, "set");
        frame.array = is(previous_, "array") || (previous_ == "(" && parent.array);
        if (is(previous_, "cube")) {
            frame.group = Group::cube;
        } else if (is(previous_, "rollup")) {
            frame.group = Group::rollup;
        } else if (is(previous_, "sets")) {
            frame.group = Group::sets;
        } else if (parent.grouping || parent.group != Group::none) {
            frame.group = Group::list;
        }
    }
    frames_.push_back(frame);
    return Status();
}

// What a CUBE, ROLLUP, GROUPING SETS or a list in brackets adds to the GROUP BY around it: items of the GROUP BY itself
// multiply, those of GROUPING SETS add up.
void Meter::close_group(const Frame &closed) {
    const uint64_t items = closed.commas + 1;
    uint64_t sets = 1;
    if (closed.group == Group::cube) sets = items < 16 ? 1ULL << items : grouping_sets_max;
    if (closed.group == Group::rollup) sets = items + 1;
    if (closed.group == Group::sets) sets = items + closed.group_sets - 1;
    Frame &parent = frames_.back();
    parent.group_terms += closed.group_terms + items;
    parent.group_sets = parent.grouping ? parent.group_sets * sets : parent.group_sets + sets - 1;
    parent.group_sets = std::min(parent.group_sets, grouping_sets_max);
}

Status Meter::close(const Token &next) {
    // A CASE without END inside the brackets is a syntax error; its frame must not swallow what follows.
    while (frames_.back().is_case) ROOST_RETURN_IF_ERROR(pop());
    if (frames_.size() == 1) return Status();
    const Frame closed = frames_.back();
    ROOST_RETURN_IF_ERROR(pop());
    if (closed.group != Group::none) close_group(closed);
    if (closed.may_assign && next.kind == Token::Kind::op && next.in(text_) == "=") {
        assigned_columns_ = std::max<uint64_t>(assigned_columns_, closed.commas + 1);
    }
    return Status();
}

Status Meter::comma() {
    Frame &frame = bracket();
    ++frame.commas;
    frame.conjunctions = 0;
    frames_.back().conjunctions = 0;
    if (frame.pivot_on) ++pivot_columns_;
    if (frame.grouping) {
        ++frame.group_items;
        ++frame.group_terms;
    }
    return Status();
}

// Every item of a GROUP BY list copies all sets that the items before it made.
Status Meter::end_grouping() {
    Frame &frame = frames_.back();
    frame.grouping = false;
    grouped_steps_ += frame.group_sets * frame.group_terms * frame.group_items;
    if (grouped_steps_ > grouped_steps_max) return refuse("GROUP BY makes too many grouping sets");
    return Status();
}

// Words that begin a clause, and so end what was before them.
Status Meter::clause(std::string_view word) {
    static constexpr std::string_view enders[] = {"select", "from",      "where", "having", "order",
                                                  "window", "qualify",   "limit", "union",  "using",
                                                  "except", "intersect", "offset"};
    Frame &frame = frames_.back();
    const bool ends =
        std::any_of(std::begin(enders), std::end(enders), [&](std::string_view e) { return is(word, e); });
    if (ends || is(word, "on") || is(word, "then") || is(word, "else")) frame.conjunctions = 0;
    if (frame.grouping && ends) ROOST_RETURN_IF_ERROR(end_grouping());
    if (is(word, "on") && frame.pivot) {
        frame.pivot_on = true;
        ++pivot_columns_;
    } else if (is(word, "order") && frame.array) {
        frame.repeating = true;
        frame.times = 2;
    } else if (is(word, "by") && is(previous_, "group") && !frame.is_case) {
        frame.grouping = true;
        frame.group_items = frame.group_terms = frame.group_sets = 1;
    } else if (is(word, "window")) {
        in_window_clause_ = true;
    }
    return Status();
}

Status Meter::word(std::string_view word) {
    // After AS or a dot every word is a name.
    if (previous_ == "." || is(previous_, "as")) return Status();
    Frame &frame = frames_.back();
    if (is(word, "and") || is(word, "or")) {
        if (++frame.conjunctions <= conjunction_max) return Status();
        return refuse("more than " + std::to_string(conjunction_max) + " conditions are joined by AND or OR");
    }
    if (is(word, "case")) {
        if (frames_.size() > depth_max_) {
            return refuse("CASE is nested deeper than " + std::to_string(depth_max_) + " levels");
        }
        Frame inner;
        inner.is_case = true;
        inner.repeating = true;
        frames_.push_back(inner);
    } else if (is(word, "when")) {
        frame.conjunctions = 0;
        if (!frame.is_case) return Status();
        if (frame.repeating) --frame.repeated;  // this WHEN itself
        frame.repeating = false;
        ++frame.times;
    } else if (is(word, "end")) {
        if (frame.is_case) return pop();
    } else if (is(word, "pivot") || is(word, "pivot_wider")) {
        frame.pivot = true;
        ++pivot_columns_;
    } else if (is(word, "over")) {
        ++window_uses_;
    } else {
        return clause(word);
    }
    return Status();
}

Status Meter::at_end() const {
    if (pivot_columns_ * tokens_ > copied_nodes_max) return refuse("PIVOT repeats its source for too many columns");
    if (window_uses_ * window_tokens_ > copied_nodes_max) return refuse("a named window is used too often");
    if (assigned_columns_ * tokens_ > assigned_steps_max) return refuse("SET assigns to too many columns at once");
    return Status();
}

Status Meter::run() {
    Lexer lexer(text_);
    token_ = lexer.next();
    while (token_.kind != Token::Kind::end) {
        const Token next = lexer.next();
        ++tokens_;
        if (in_window_clause_) ++window_tokens_;
        add_nodes(1);
        const char c = text_[token_.begin];
        if (token_.kind == Token::Kind::word) ROOST_RETURN_IF_ERROR(word(token_.in(text_)));
        if (token_.kind == Token::Kind::punct) {
            if (c == '(' || c == '[' || c == '{') ROOST_RETURN_IF_ERROR(open(c));
            if (c == ')' || c == ']' || c == '}') ROOST_RETURN_IF_ERROR(close(next));
            if (c == ',') ROOST_RETURN_IF_ERROR(comma());
        }
        previous_ = token_.in(text_);
        token_ = next;
    }
    while (frames_.size() > 1) ROOST_RETURN_IF_ERROR(pop());
    if (frames_.back().grouping) ROOST_RETURN_IF_ERROR(end_grouping());
    return at_end();
}

}  // namespace

Status too_complex(const std::string &why, uint32_t position) {
    return Status(Code::invalid_argument, "the statement is too complex: " + why)
        .with_name("statement_too_complex")
        .with_sqlstate("54001")
        .with_hint("split the statement, or put parts of it into a table or a view")
        .with_position(position);
}

Status check_complexity(std::string_view text, uint32_t depth_max) { return Meter(text, depth_max).run(); }

}  // namespace roost::sql
