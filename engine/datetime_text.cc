#include "engine/datetime_text.h"

#include <array>
#include <charconv>
#include <cmath>

#include "duckdb/common/types/date.hpp"

namespace roost {

namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;
constexpr int64_t kMicrosPerSecond = 1'000'000;
constexpr int64_t kMicrosPerDay = 86'400 * kMicrosPerSecond;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// A position in the text with the few steps that both grammars need.
class Scanner {
public:
    explicit Scanner(std::string_view text) : text_(text) {}
    bool at_end() const { return at_ == text_.size(); }
    char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
    char previous() const { return at_ > 0 ? text_[at_ - 1] : '\0'; }
    void skip(size_t count = 1) { at_ += count; }
    void skip_spaces() {
        while (!at_end() && is_space(peek())) ++at_;
    }
    bool take(char c) {
        if (at_end() || peek() != c) return false;
        ++at_;
        return true;
    }
    // The run of digits here; at most `most`.
    std::string_view digits(size_t most = SIZE_MAX) {
        const size_t begin = at_;
        while (!at_end() && is_digit(peek()) && at_ - begin < most) ++at_;
        return text_.substr(begin, at_ - begin);
    }
    // The run of letters here, lower case.
    std::string word() {
        std::string out;
        for (; !at_end() && is_letter(peek()); ++at_) out += to_lower(peek());
        return out;
    }
    std::string_view rest() const { return text_.substr(at_); }

private:
    std::string_view text_;
    size_t at_ = 0;
};

// A number of at most `most_digits` digits; −1 when there is none.
int64_t small_number(std::string_view digits) {
    if (digits.empty() || digits.size() > 9) return -1;
    int64_t value = 0;
    for (const char c : digits) value = value * 10 + (c - '0');
    return value;
}

// Nanoseconds of a fraction's digits, rounded at the ninth.
int64_t fraction_nanos(std::string_view digits) {
    int64_t nanos = 0;
    for (size_t i = 0; i < 9; ++i) nanos = nanos * 10 + (i < digits.size() ? digits[i] - '0' : 0);
    return nanos + (digits.size() > 9 && digits[9] >= '5' ? 1 : 0);
}

class DateTimeParser {
public:
    explicit DateTimeParser(std::string_view text) : in_(text) {}

    DateTimeText run() {
        in_.skip_spaces();
        if (is_letter(in_.peek()) || (!is_digit(in_.peek()) && is_letter(in_.peek(1)))) {
            special();
        } else {
            fields();
        }
        return std::move(out_);
    }

private:
    void fail(TextFault fault) {
        if (out_.fault == TextFault::none) out_.fault = fault;
    }

    void special() {
        const bool minus = in_.take('-');
        if (!minus) in_.take('+');
        const std::string word = in_.word();
        in_.skip_spaces();
        if (word == "infinity" || word == "inf") {
            out_.special = minus ? DateTimeText::Special::minus_infinity : DateTimeText::Special::infinity;
        } else if (word == "epoch" && !minus) {
            out_.special = DateTimeText::Special::epoch;
        } else {
            fail(TextFault::syntax);
        }
        if (!in_.at_end()) fail(TextFault::syntax);
    }

    void fields() {
        if (!looks_like_time()) {
            date();
            if (out_.fault != TextFault::none) return;
            if ((in_.peek() == 'T' || in_.peek() == 't') && is_digit(in_.peek(1))) in_.skip();
            in_.skip_spaces();
        }
        if (is_digit(in_.peek()) && out_.fault == TextFault::none) time();
        if (out_.fault == TextFault::none) zone_and_era();
        in_.skip_spaces();
        if (!in_.at_end()) fail(TextFault::syntax);
        if (out_.has_date && out_.fault == TextFault::none) set_days();
    }

    bool looks_like_time() const {
        size_t i = 0;
        while (is_digit(in_.peek(i))) ++i;
        return i > 0 && i <= 2 && in_.peek(i) == ':';
    }

    // YYYY-MM-DD (or with slashes), YYYYMMDD.
    void date() {
        const std::string_view year = in_.digits();
        int64_t month, day;
        if (year.size() == 8 && in_.peek() != '-') {
            year_ = small_number(year.substr(0, 4));
            month = small_number(year.substr(4, 2));
            day = small_number(year.substr(6, 2));
        } else {
            const char separator = in_.peek();
            if (year.size() < 3 || (separator != '-' && separator != '/')) return fail(TextFault::syntax);
            in_.skip();
            year_ = small_number(year);
            month = small_number(in_.digits(2));
            if (!in_.take(separator)) return fail(TextFault::syntax);
            day = small_number(in_.digits(2));
            if (is_digit(in_.peek())) return fail(TextFault::syntax);
        }
        if (year.size() > 7) {
            if (year.size() != 8 || year_ < 0) return fail(TextFault::out_of_range);
        }
        if (month < 0 || day < 0) return fail(TextFault::syntax);
        out_.has_date = true;
        month_ = static_cast<int32_t>(month);
        day_ = static_cast<int32_t>(day);
    }

    // H:MM[:SS[.fraction]]
    void time() {
        const int64_t hour = small_number(in_.digits(2));
        if (!in_.take(':')) return fail(TextFault::syntax);
        const std::string_view minute_digits = in_.digits(2);
        const int64_t minute = small_number(minute_digits);
        int64_t second = 0, nanos = 0;
        if (in_.take(':')) {
            second = small_number(in_.digits(2));
            if (in_.take('.')) nanos = fraction_nanos(in_.digits());
        }
        if (hour < 0 || minute < 0 || second < 0 || is_digit(in_.peek())) return fail(TextFault::syntax);
        const bool midnight_end = hour == 24 && minute == 0 && second == 0 && nanos == 0;
        // A leap second counts as the next minute's first, as in PostgreSQL.
        if ((hour > 23 && !midnight_end) || minute > 59 || second > 60) return fail(TextFault::out_of_range);
        out_.has_time = true;
        out_.nanos = ((hour * 60 + minute) * 60 + second) * kNanosPerSecond + nanos;
        if (out_.nanos > 86'400 * kNanosPerSecond) fail(TextFault::out_of_range);
    }

    void zone_and_era() {
        for (int parts = 0; parts < 3 && !in_.at_end(); ++parts) {
            in_.skip_spaces();
            const bool attached = !is_space(in_.previous());
            if (in_.peek() == '+' || in_.peek() == '-') {
                numeric_zone();
            } else if (is_letter(in_.peek()) && (!attached || out_.has_time)) {
                name_or_era();
            } else {
                return;
            }
        }
    }

    // +HH, +HHMM, +HH:MM, +HH:MM:SS
    void numeric_zone() {
        if (out_.seconds_east || !out_.zone.empty()) return fail(TextFault::syntax);
        const bool west = in_.peek() == '-';
        in_.skip();
        const std::string_view run = in_.digits(4);
        int64_t hours, minutes = 0, seconds = 0;
        if (run.size() > 2) {
            hours = small_number(run.substr(0, run.size() - 2));
            minutes = small_number(run.substr(run.size() - 2));
        } else {
            hours = small_number(run);
            if (in_.take(':')) minutes = small_number(in_.digits(2));
            if (in_.take(':')) seconds = small_number(in_.digits(2));
        }
        if (hours < 0 || minutes < 0 || seconds < 0 || is_digit(in_.peek())) return fail(TextFault::syntax);
        if (hours > 15 || minutes > 59 || seconds > 59) return fail(TextFault::out_of_range);
        const auto magnitude = static_cast<int32_t>((hours * 60 + minutes) * 60 + seconds);
        out_.seconds_east = west ? -magnitude : magnitude;
    }

    void name_or_era() {
        const std::string_view rest = in_.rest();
        size_t length = 0;
        while (length < rest.size() && !is_space(rest[length])) ++length;
        std::string name(rest.substr(0, length));
        std::string lower = name;
        for (auto &c : lower) c = to_lower(c);
        in_.skip(length);
        if (lower == "bc" || lower == "ad") {
            if (!out_.has_date || era_seen_) return fail(TextFault::syntax);
            era_seen_ = true;
            before_christ_ = lower == "bc";
        } else if (lower == "z" || lower == "utc" || lower == "gmt") {
            if (out_.seconds_east || !out_.zone.empty()) return fail(TextFault::syntax);
            out_.seconds_east = 0;
        } else {
            if (out_.seconds_east || !out_.zone.empty() || length > 64) return fail(TextFault::syntax);
            out_.zone = std::move(name);
        }
    }

    void set_days() {
        if (year_ == 0) return fail(TextFault::out_of_range);  // there was none
        const auto year = static_cast<int32_t>(before_christ_ ? 1 - year_ : year_);
        duckdb::date_t date;
        if (!duckdb::Date::TryFromDate(year, month_, day_, date)) return fail(TextFault::out_of_range);
        out_.days = date.days;
    }

    Scanner in_;
    DateTimeText out_;
    int64_t year_ = 0;
    int32_t month_ = 0, day_ = 0;
    bool era_seen_ = false;
    bool before_christ_ = false;
};

enum class Unit : uint8_t {
    microsecond,
    millisecond,
    second,
    minute,
    hour,
    day,
    week,
    month,
    year,
    decade,
    century,
    millennium
};

std::optional<Unit> unit_of(std::string_view word) {
    struct Name {
        std::string_view text;
        Unit unit;
    };
    static constexpr Name kNames[] = {
        {"us", Unit::microsecond},
        {"usec", Unit::microsecond},
        {"usecs", Unit::microsecond},
        {"microsecond", Unit::microsecond},
        {"microseconds", Unit::microsecond},
        {"microsecon", Unit::microsecond},
        {"ms", Unit::millisecond},
        {"msec", Unit::millisecond},
        {"msecs", Unit::millisecond},
        {"millisecond", Unit::millisecond},
        {"milliseconds", Unit::millisecond},
        {"s", Unit::second},
        {"sec", Unit::second},
        {"secs", Unit::second},
        {"second", Unit::second},
        {"seconds", Unit::second},
        {"m", Unit::minute},
        {"min", Unit::minute},
        {"mins", Unit::minute},
        {"minute", Unit::minute},
        {"minutes", Unit::minute},
        {"h", Unit::hour},
        {"hr", Unit::hour},
        {"hrs", Unit::hour},
        {"hour", Unit::hour},
        {"hours", Unit::hour},
        {"d", Unit::day},
        {"day", Unit::day},
        {"days", Unit::day},
        {"w", Unit::week},
        {"week", Unit::week},
        {"weeks", Unit::week},
        {"mon", Unit::month},
        {"mons", Unit::month},
        {"month", Unit::month},
        {"months", Unit::month},
        {"y", Unit::year},
        {"yr", Unit::year},
        {"yrs", Unit::year},
        {"year", Unit::year},
        {"years", Unit::year},
        {"dec", Unit::decade},
        {"decade", Unit::decade},
        {"decades", Unit::decade},
        {"c", Unit::century},
        {"cent", Unit::century},
        {"century", Unit::century},
        {"centuries", Unit::century},
        {"mil", Unit::millennium},
        {"mils", Unit::millennium},
        {"millennium", Unit::millennium},
        {"millennia", Unit::millennium},
    };
    for (const auto &name : kNames) {
        if (name.text == word) return name.unit;
    }
    return std::nullopt;
}

// A decimal number: whole part and fraction apart, so that whole parts stay exact.
struct Number {
    int64_t whole = 0;
    double fraction = 0;  // same sign as the number
    bool negative = false;
};

class IntervalParser {
public:
    explicit IntervalParser(std::string_view text) : in_(text) {}

    IntervalText run() {
        in_.skip_spaces();
        if (in_.at_end()) fail(TextFault::syntax);
        if (in_.peek() == 'P' || in_.peek() == 'p') {
            in_.skip();
            iso();
        } else {
            verbose();
        }
        IntervalText out;
        out.fault = fault_;
        if (fault_ != TextFault::none) return out;
        if (months_ != static_cast<int32_t>(months_) || days_ != static_cast<int32_t>(days_) ||
            micros_ != static_cast<int64_t>(micros_)) {
            out.fault = TextFault::out_of_range;
            return out;
        }
        out.value.months = static_cast<int32_t>(months_);
        out.value.days = static_cast<int32_t>(days_);
        out.value.micros = static_cast<int64_t>(micros_);
        return out;
    }

private:
    bool failed() const { return fault_ != TextFault::none; }
    void fail(TextFault fault) {
        if (!failed()) fault_ = fault;
    }

    // [sign] digits [. digits]
    std::optional<Number> number() {
        Number out;
        if (in_.peek() == '-' || in_.peek() == '+') {
            out.negative = in_.peek() == '-';
            in_.skip();
        }
        const std::string_view whole = in_.digits();
        std::string_view fraction;
        if (in_.take('.')) fraction = in_.digits();
        if (whole.empty() && fraction.empty()) {
            fail(TextFault::syntax);
            return std::nullopt;
        }
        if (!whole.empty()) {
            const auto read = std::from_chars(whole.data(), whole.data() + whole.size(), out.whole);
            if (read.ec != std::errc()) {
                fail(TextFault::out_of_range);
                return std::nullopt;
            }
        }
        double scale = 1;
        for (const char c : fraction.substr(0, 15)) {
            scale /= 10;
            out.fraction += (c - '0') * scale;
        }
        if (out.negative) {
            out.whole = -out.whole;
            out.fraction = -out.fraction;
        }
        return out;
    }

    void add_micros(const Number &number, int64_t micros_per_unit) {
        micros_ += static_cast<__int128>(number.whole) * micros_per_unit;
        micros_ += std::llround(number.fraction * static_cast<double>(micros_per_unit));
    }
    // What does not fill a day goes into the time.
    void add_days(const Number &number, int64_t days_per_unit) {
        days_ += static_cast<__int128>(number.whole) * days_per_unit;
        const double rest = number.fraction * static_cast<double>(days_per_unit);
        days_ += static_cast<int64_t>(rest);
        micros_ += std::llround((rest - std::trunc(rest)) * static_cast<double>(kMicrosPerDay));
    }
    // The fraction of a month is days of a 30-day month; that of a year or more is whole months.
    void add_months(const Number &number, int64_t months_per_unit) {
        months_ += static_cast<__int128>(number.whole) * months_per_unit;
        if (months_per_unit == 1) {
            add_days({0, number.fraction, number.negative}, 30);
        } else {
            months_ += std::llround(number.fraction * static_cast<double>(months_per_unit));
        }
    }

    void add(const Number &number, Unit unit) {
        switch (unit) {
            case Unit::microsecond:
                return add_micros(number, 1);
            case Unit::millisecond:
                return add_micros(number, 1000);
            case Unit::second:
                return add_micros(number, kMicrosPerSecond);
            case Unit::minute:
                return add_micros(number, 60 * kMicrosPerSecond);
            case Unit::hour:
                return add_micros(number, 3600 * kMicrosPerSecond);
            case Unit::day:
                return add_days(number, 1);
            case Unit::week:
                return add_days(number, 7);
            case Unit::month:
                return add_months(number, 1);
            case Unit::year:
                return add_months(number, 12);
            case Unit::decade:
                return add_months(number, 120);
            case Unit::century:
                return add_months(number, 1200);
            case Unit::millennium:
                return add_months(number, 12'000);
        }
    }

    void verbose() {
        in_.skip_spaces();
        if (in_.take('@')) in_.skip_spaces();
        bool any = false;
        while (!failed() && !in_.at_end()) {
            if (is_letter(in_.peek())) {
                ago(any);
                break;
            }
            part();
            any = true;
            in_.skip_spaces();
        }
        if (!any) fail(TextFault::syntax);
    }

    void ago(bool any) {
        if (in_.word() != "ago" || !any) fail(TextFault::syntax);
        in_.skip_spaces();
        if (!in_.at_end()) fail(TextFault::syntax);
        months_ = -months_;
        days_ = -days_;
        micros_ = -micros_;
    }

    // One of: number unit, [sign] H:M[:S], years-months, a bare number (days in front of a time, else seconds).
    void part() {
        const auto value = number();
        if (!value) return;
        if (in_.peek() == ':') return clock(*value);
        if (in_.peek() == '-' && is_digit(in_.peek(1)) && value->fraction == 0) return years_months(*value);
        in_.skip_spaces();
        if (is_letter(in_.peek())) {
            const auto unit = unit_of(in_.word());
            if (!unit) return fail(TextFault::syntax);
            return add(*value, *unit);
        }
        if (in_.at_end()) return add_micros(*value, kMicrosPerSecond);
        if (!clock_ahead()) return fail(TextFault::syntax);
        add_days(*value, 1);
    }

    bool clock_ahead() const {
        size_t i = in_.peek() == '-' || in_.peek() == '+' ? 1 : 0;
        while (is_digit(in_.peek(i))) ++i;
        return in_.peek(i) == ':';
    }

    void clock(const Number &hours) {
        in_.skip();
        const int64_t minutes = small_number(in_.digits());
        int64_t seconds = 0, nanos = 0;
        if (in_.take(':')) seconds = small_number(in_.digits());
        if (in_.take('.')) nanos = fraction_nanos(in_.digits());
        if (hours.fraction != 0 || minutes < 0 || seconds < 0) return fail(TextFault::syntax);
        if (minutes > 59 || seconds > 60) return fail(TextFault::out_of_range);
        const __int128 sign = hours.negative ? -1 : 1;
        micros_ += static_cast<__int128>(hours.whole) * 3600 * kMicrosPerSecond;
        micros_ += sign * ((minutes * 60 + seconds) * kMicrosPerSecond + (nanos + 500) / 1000);
    }

    void years_months(const Number &years) {
        in_.skip();
        const int64_t months = small_number(in_.digits());
        if (months < 0 || months > 11) return fail(TextFault::out_of_range);
        months_ += static_cast<__int128>(years.whole) * 12 + (years.negative ? -months : months);
    }

    // P[nY][nM][nW][nD][T[nH][nM][nS]]
    void iso() {
        bool in_time = false, any = false;
        while (!failed() && !in_.at_end()) {
            if (!in_time && (in_.take('T') || in_.take('t'))) {
                in_time = true;
                any = false;
                continue;
            }
            const auto value = number();
            if (!value) return;
            const char letter = to_lower(in_.peek());
            in_.skip(in_.at_end() ? 0 : 1);
            any = true;
            if (in_time) {
                if (letter != 'h' && letter != 'm' && letter != 's') return fail(TextFault::syntax);
                add(*value, letter == 'h' ? Unit::hour : letter == 'm' ? Unit::minute : Unit::second);
            } else {
                if (letter != 'y' && letter != 'm' && letter != 'w' && letter != 'd') return fail(TextFault::syntax);
                add(*value, letter == 'y'   ? Unit::year
                            : letter == 'm' ? Unit::month
                            : letter == 'w' ? Unit::week
                                            : Unit::day);
            }
            in_.skip_spaces();
        }
        if (!any) fail(TextFault::syntax);
    }

    Scanner in_;
    TextFault fault_ = TextFault::none;
    __int128 months_ = 0, days_ = 0, micros_ = 0;
};

}  // namespace

DateTimeText parse_datetime(std::string_view text) { return DateTimeParser(text).run(); }

IntervalText parse_interval(std::string_view text) { return IntervalParser(text).run(); }

}  // namespace roost
