#include "front/http/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "obs/json_text.h"

namespace roost::http {
namespace {

using Kind = JsonValue::Kind;

Status bad_json(std::string message) {
    return Status(Code::invalid_argument, std::move(message)).with_name("bad_request");
}

// Receives the parser's events. Level 1 is the object itself, level 2 the elements of an array field; what is nested
// deeper is written out again as text.
class FieldsReader final : public nlohmann::json_sax<nlohmann::json> {
public:
    FieldsReader(std::initializer_list<std::string_view> known, const JsonLimits &limits)
        : known_(known), limits_(limits) {}

    bool null() override { return scalar(Kind::null, "null"); }
    bool boolean(bool value) override { return scalar(Kind::boolean, value ? "true" : "false"); }
    bool number_integer(number_integer_t value) override { return scalar(Kind::integer, std::to_string(value)); }
    bool number_unsigned(number_unsigned_t value) override { return scalar(Kind::integer, std::to_string(value)); }
    // Integers that fit no machine word come here as well; their text is what counts.
    bool number_float(number_float_t, const string_t &written) override {
        const bool is_integer = written.find_first_of(".eE") == std::string::npos;
        return scalar(is_integer ? Kind::integer : Kind::real, written);
    }
    bool string(string_t &value) override { return scalar(Kind::string, std::move(value)); }
    bool binary(binary_t &) override { return false; }
    bool start_object(size_t) override { return open(Kind::object, '{'); }
    bool end_object() override { return close('}'); }
    bool start_array(size_t) override { return open(Kind::array, '['); }
    bool end_array() override { return close(']'); }
    bool key(string_t &name) override {
        if (depth_ > 1) {
            if (text_) write_key(name);
            return true;
        }
        field_ = nullptr;
        if (std::ranges::find(known_, std::string_view(name)) == known_.end()) return true;
        field_ = &fields_[name];
        *field_ = {};
        return true;
    }
    bool parse_error(size_t position, const std::string &, const nlohmann::detail::exception &) override {
        return fail("The body is not valid JSON (byte " + std::to_string(position) + ").");
    }

    Status status() const { return status_; }
    JsonFields take() { return std::move(fields_); }

private:
    bool fail(std::string message) {
        if (status_.ok()) status_ = bad_json(std::move(message));
        return false;
    }

    bool scalar(Kind kind, std::string value) {
        if (depth_ == 0) return fail("The body must be a JSON object.");
        if (text_) {
            write_separator();
            if (kind == Kind::string) {
                obs::append_json_string(*text_, value);
            } else {
                text_->append(value);
            }
            return true;
        }
        if (!field_) return true;
        JsonValue *target = slot();
        if (!target) return false;
        target->kind = kind;
        target->text = std::move(value);
        return true;
    }

    bool open(Kind kind, char bracket) {
        if (depth_ == 0 && kind != Kind::object) return fail("The body must be a JSON object.");
        if (++depth_ > limits_.depth_max) return fail("The body is nested too deeply.");
        if (depth_ == 1 || (!text_ && !field_)) return true;
        if (text_) {
            write_separator();
        } else {
            JsonValue *target = slot();
            if (!target) return false;
            target->kind = kind;
            if (depth_ == 2 && kind == Kind::array) {
                in_array_ = true;
                return true;
            }
            text_ = &target->text;
            text_depth_ = depth_;
        }
        text_->push_back(bracket);
        after_open_ = true;
        return true;
    }

    bool close(char bracket) {
        if (text_) {
            text_->push_back(bracket);
            after_open_ = false;
            if (depth_ == text_depth_) text_ = nullptr;
        }
        --depth_;
        if (depth_ == 1 && !text_) in_array_ = false;
        return true;
    }

    // Where the value that starts now goes: the field, or a new element of it.
    JsonValue *slot() {
        if (!in_array_) return field_;
        if (++item_count_ > limits_.items_max) {
            fail("The body has more than " + std::to_string(limits_.items_max) + " array elements.");
            return nullptr;
        }
        return &field_->items.emplace_back();
    }

    void write_separator() {
        if (!after_open_ && text_->back() != ':') text_->push_back(',');
        after_open_ = false;
    }
    void write_key(std::string_view name) {
        write_separator();
        obs::append_json_string(*text_, name);
        text_->push_back(':');
    }

    const std::vector<std::string_view> known_;
    const JsonLimits limits_;
    JsonFields fields_;
    Status status_;
    JsonValue *field_ = nullptr;   // the known field whose value is being read
    std::string *text_ = nullptr;  // set inside of a nested container that is kept as text
    uint32_t depth_ = 0, text_depth_ = 0;
    size_t item_count_ = 0;
    bool in_array_ = false;
    bool after_open_ = false;
};

}  // namespace

JsonObject &JsonObject::raw(std::string_view name, std::string_view json) {
    if (text_.size() > 1) text_ += ',';
    text_.append("\"").append(name).append("\":").append(json);
    return *this;
}

JsonObject &JsonObject::text(std::string_view name, std::string_view value) {
    raw(name, "");
    obs::append_json_string(text_, value);
    return *this;
}

JsonObject &JsonObject::text_or_null(std::string_view name, std::string_view value) {
    return value.empty() ? null(name) : text(name, value);
}

JsonObject &JsonObject::real(std::string_view name, double value) {
    if (!std::isfinite(value)) return null(name);
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof(digits), value);
    return raw(name, std::string_view(digits, static_cast<size_t>(end.ptr - digits)));
}

std::string JsonObject::take() {
    text_ += '}';
    return std::move(text_);
}

std::string json_string(std::string_view text) {
    std::string out;
    obs::append_json_string(out, text);
    return out;
}

std::string to_json(const JsonValue &value) {
    if (value.kind == Kind::string) return json_string(value.text);
    if (value.kind == Kind::array && value.text.empty()) return json_array(value.items, to_json);
    return value.text;
}

Result<JsonFields> parse_fields(std::string_view text, std::initializer_list<std::string_view> known,
                                const JsonLimits &limits) {
    FieldsReader reader(known, limits);
    if (!nlohmann::json::sax_parse(text.begin(), text.end(), &reader)) {
        if (!reader.status().ok()) return reader.status();
        return bad_json("The body is not valid JSON.");
    }
    return reader.take();
}

}  // namespace roost::http
