// JSON of single values in both dialects: see JsonDialect.
#include <nlohmann/json.hpp>

#include "duckdb/common/types/interval.hpp"
#include "duckdb/common/types/variant.hpp"
#include "duckdb/function/scalar/variant_utils.hpp"
#include "engine/scalar_text.h"
#include "engine/type_map.h"
#include "engine/value_writer.h"

namespace roost {

using duckdb::idx_t;
using duckdb::LogicalType;
using duckdb::LogicalTypeId;
using duckdb::string_t;

namespace {

// The largest integer that every JSON reader holds exactly.
constexpr int64_t kMaxSafeInteger = (int64_t{1} << 53) - 1;

template <class Format>
void append_fixed(const Format &format, const VectorView &view, idx_t row, std::string &out) {
    char buffer[Format::kRoom];
    out.append(buffer, format(buffer, view.value<typename Format::Value>(row)));
}

// Text as it is: numbers.
template <class Format>
class BareWriter final : public ValueWriter {
public:
    explicit BareWriter(Format format) : format_(format) {}
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        append_fixed(format_, view, row, out);
    }

private:
    Format format_;
};

// Text in quotes that holds nothing to escape.
template <class Format>
class QuotedWriter final : public ValueWriter {
public:
    explicit QuotedWriter(Format format) : format_(format) {}
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        out += '"';
        append_fixed(format_, view, row, out);
        out += '"';
    }

private:
    Format format_;
};

// Clients of pages hold dates of the years 1 to 9999 only and no infinities; the contract lets them be null.
template <class Format, int64_t kUnitsPerDay>
class PageDateWriter final : public ValueWriter {
public:
    explicit PageDateWriter(Format format) : format_(format) {}
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        const int64_t value = view.value<typename Format::Value>(row);
        // A day short at each end for zones: the local date may lie on the other side.
        constexpr int64_t kMargin = std::is_same_v<Format, scalar_text::TimestampTz> ? 1 : 0;
        const int64_t days = value / kUnitsPerDay - (value % kUnitsPerDay < 0 ? 1 : 0);
        using Limits = std::numeric_limits<typename Format::Value>;
        const bool infinite = value == Limits::max() || value == -Limits::max();
        if (infinite || !value_text::is_common_era(days - kMargin) || !value_text::is_common_era(days + kMargin)) {
            out += "null";
            return;
        }
        out += '"';
        append_fixed(format_, view, row, out);
        out += '"';
    }

private:
    Format format_;
};

constexpr int64_t kMicrosPerDay = 86'400'000'000;

class BooleanWriter final : public ValueWriter {
public:
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        out += view.value<bool>(row) ? "true" : "false";
    }
};

// A number where every reader holds it exactly, else its digits as a string.
template <class T>
class PageIntegerWriter final : public ValueWriter {
public:
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        const T value = view.value<T>(row);
        const bool safe =
            std::cmp_less_equal(value, kMaxSafeInteger) && std::cmp_greater_equal(value, -kMaxSafeInteger);
        if (!safe) out += '"';
        append_fixed(scalar_text::Integer<T>{}, view, row, out);
        if (!safe) out += '"';
    }
};

template <class T>
class FloatWriter final : public ValueWriter {
public:
    explicit FloatWriter(JsonDialect dialect) : dialect_(dialect) {}
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        const T value = view.value<T>(row);
        char buffer[40];
        char *end;
        if constexpr (sizeof(T) == 4) {
            end = dialect_ == JsonDialect::page ? value_text::put_json_float4(buffer, value)
                                                : value_text::put_float4(buffer, value);
        } else {
            end = dialect_ == JsonDialect::page ? value_text::put_json_float8(buffer, value)
                                                : value_text::put_float8(buffer, value);
        }
        // NaN and infinities: bare for the contract's clients, strings for PostgreSQL's strict JSON.
        const bool quoted = dialect_ == JsonDialect::postgres && !std::isfinite(value);
        if (quoted) out += '"';
        out.append(buffer, end);
        if (quoted) out += '"';
    }

private:
    JsonDialect dialect_;
};

// TIME 24:00:00 is none of the times that clients know.
class PageTimeWriter final : public ValueWriter {
public:
    explicit PageTimeWriter(int64_t units_per_second) : units_per_second_(units_per_second) {}
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        const int64_t value = view.value<int64_t>(row);
        if (value >= 86'400 * units_per_second_) {
            out += "null";
            return;
        }
        char buffer[32];
        char *end = units_per_second_ == 1'000'000 ? value_text::put_time(buffer, value)
                                                   : value_text::put_time_ns(buffer, value);
        out += '"';
        out.append(buffer, end);
        out += '"';
    }

private:
    int64_t units_per_second_;
};

// All nine digits, which PostgreSQL's text cuts.
struct NanosecondTimestamp {
    using Value = int64_t;
    static constexpr size_t kRoom = 44;
    char *operator()(char *to, int64_t nanos) const { return value_text::put_timestamp_ns(to, nanos); }
};

struct EngineInterval {
    using Value = duckdb::interval_t;
    static constexpr size_t kRoom = 80;
    char *operator()(char *to, const Value &value) const {
        const std::string text = duckdb::Interval::ToString(value);
        std::memcpy(to, text.data(), std::min(text.size(), kRoom));
        return to + std::min(text.size(), kRoom);
    }
};

class BlobHexWriter final : public ValueWriter {
public:
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        const auto &bytes = view.value<string_t>(row);
        out += '"';
        const size_t before = out.size();
        out.resize(before + 2 * bytes.GetSize());
        value_text::put_hex(out.data() + before, bytes.GetData(), bytes.GetSize());
        out += '"';
    }
};

class StringWriter final : public ValueWriter {
public:
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        const auto &text = view.value<string_t>(row);
        append_json_string(out, {text.GetData(), text.GetSize()});
    }
};

// A JSON document inside a json value stands as it is, if it is one (files may claim the type for any text).
class DocumentWriter final : public ValueWriter {
public:
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        const auto &text = view.value<string_t>(row);
        const std::string_view document(text.GetData(), text.GetSize());
        if (nlohmann::json::accept(document)) {
            out += document;
        } else {
            append_json_string(out, document);
        }
    }
};

// The text another writer makes, as a JSON string or bare.
class TextWriter final : public ValueWriter {
public:
    TextWriter(std::unique_ptr<ValueWriter> text, bool bare) : text_(std::move(text)), bare_(bare) {}
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        if (bare_) return text_->append(view, row, out);
        std::string text;
        text_->append(view, row, text);
        append_json_string(out, text);
    }

private:
    std::unique_ptr<ValueWriter> text_;
    bool bare_;
};

void append_or_null(const ValueWriter &writer, const VectorView &view, idx_t row, std::string &out) {
    if (view.is_null(row)) {
        out += "null";
    } else {
        writer.append(view, row, out);
    }
}

class ListWriter final : public ValueWriter {
public:
    explicit ListWriter(std::unique_ptr<ValueWriter> element) : element_(std::move(element)) {}
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        const auto &type = view.vector->GetType();
        idx_t begin, count;
        if (type.id() == LogicalTypeId::ARRAY) {
            count = duckdb::ArrayType::GetSize(type);
            begin = view.index(row) * count;
        } else {
            const auto &entry = view.value<duckdb::list_entry_t>(row);
            begin = entry.offset;
            count = entry.length;
        }
        out += '[';
        for (idx_t i = begin; i < begin + count; ++i) {
            if (i > begin) out += ',';
            append_or_null(*element_, view.children[0], i, out);
        }
        out += ']';
    }

private:
    std::unique_ptr<ValueWriter> element_;
};

// An object; an array when the members have no names.
class StructWriter final : public ValueWriter {
public:
    StructWriter(const LogicalType &type, JsonDialect dialect, ZoneOffsets &zone)
        : unnamed_(duckdb::StructType::IsUnnamed(type)) {
        for (const auto &[name, member] : duckdb::StructType::GetChildTypes(type)) {
            members_.push_back(make_json_writer(member, dialect, zone));
            keys_.emplace_back();
            if (unnamed_) continue;
            append_json_string(keys_.back(), name);
            keys_.back() += ':';
        }
    }
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        out += unnamed_ ? '[' : '{';
        const idx_t index = view.index(row);
        for (size_t i = 0; i < members_.size(); ++i) {
            if (i > 0) out += ',';
            out += keys_[i];
            append_or_null(*members_[i], view.children[i], index, out);
        }
        out += unnamed_ ? ']' : '}';
    }

private:
    bool unnamed_;
    std::vector<std::unique_ptr<ValueWriter>> members_;
    std::vector<std::string> keys_;
};

// An object keyed by the text of the keys.
class MapWriter final : public ValueWriter {
public:
    MapWriter(std::unique_ptr<ValueWriter> key, std::unique_ptr<ValueWriter> value)
        : key_(std::move(key)), value_(std::move(value)) {}
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        const auto &entry = view.value<duckdb::list_entry_t>(row);
        const auto &entries = view.children[0];
        std::string key;
        out += '{';
        for (idx_t i = entry.offset; i < entry.offset + entry.length; ++i) {
            if (i > entry.offset) out += ',';
            const idx_t index = entries.index(i);
            key.clear();
            append_or_null(*key_, entries.children[0], index, key);
            if (key.starts_with('"')) {
                out += key;
            } else {
                append_json_string(out, key);
            }
            out += ':';
            append_or_null(*value_, entries.children[1], index, out);
        }
        out += '}';
    }

private:
    std::unique_ptr<ValueWriter> key_, value_;
};

// A page shows the member's value, a json column the tag with it.
class UnionWriter final : public ValueWriter {
public:
    UnionWriter(const LogicalType &type, JsonDialect dialect, ZoneOffsets &zone)
        : tagged_(dialect == JsonDialect::postgres) {
        for (idx_t i = 0; i < duckdb::UnionType::GetMemberCount(type); ++i) {
            members_.push_back(make_json_writer(duckdb::UnionType::GetMemberType(type, i), dialect, zone));
            tags_.emplace_back("{");
            append_json_string(tags_.back(), duckdb::UnionType::GetMemberName(type, i));
            tags_.back() += ':';
        }
    }
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        const idx_t index = view.index(row);
        if (view.children[0].is_null(index)) {
            out += "null";
            return;
        }
        const size_t tag = view.children[0].value<uint8_t>(index);
        if (tagged_) out += tags_.at(tag);
        append_or_null(*members_.at(tag), view.children[tag + 1], index, out);
        if (tagged_) out += '}';
    }

private:
    bool tagged_;
    std::vector<std::unique_ptr<ValueWriter>> members_;
    std::vector<std::string> tags_;
};

// Objects and arrays are walked here; a leaf becomes a value of its own type.
class VariantWriter final : public ValueWriter {
public:
    VariantWriter(JsonDialect dialect, ZoneOffsets &zone) : dialect_(dialect), zone_(zone) {}
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        append_node(duckdb::UnifiedVariantVectorData(*view.variant), row, 0, out);
    }

private:
    void append_node(const duckdb::UnifiedVariantVectorData &data, idx_t row, uint32_t node, std::string &out) const {
        const auto kind = data.GetTypeId(row, node);
        const bool object = kind == duckdb::VariantLogicalType::OBJECT;
        if (!object && kind != duckdb::VariantLogicalType::ARRAY) return append_leaf(data, row, node, out);
        const auto nested = duckdb::VariantUtils::DecodeNestedData(data, row, node);
        out += object ? '{' : '[';
        for (uint32_t i = 0; i < nested.child_count; ++i) {
            if (i > 0) out += ',';
            if (object) {
                const auto &key = data.GetKey(row, data.GetKeysIndex(row, nested.children_idx + i));
                append_json_string(out, {key.GetData(), key.GetSize()});
                out += ':';
            }
            append_node(data, row, data.GetValuesIndex(row, nested.children_idx + i), out);
        }
        out += object ? '}' : ']';
    }

    void append_leaf(const duckdb::UnifiedVariantVectorData &data, idx_t row, uint32_t node, std::string &out) const {
        const duckdb::Value value = duckdb::VariantUtils::ConvertVariantToValue(data, row, node);
        if (value.IsNull()) {
            out += "null";
            return;
        }
        duckdb::Vector vector(value);
        VectorView view;
        view.bind(vector, 1);
        make_json_writer(value.type(), dialect_, zone_)->append(view, 0, out);
    }

    JsonDialect dialect_;
    ZoneOffsets &zone_;
};

// Scalars whose JSON differs from PostgreSQL's text in quotes. Null: no difference.
std::unique_ptr<ValueWriter> make_page_scalar(const LogicalType &type, ZoneOffsets &zone) {
    switch (type.id()) {
        case LogicalTypeId::BIGINT:
            return std::make_unique<PageIntegerWriter<int64_t>>();
        case LogicalTypeId::UBIGINT:
            return std::make_unique<PageIntegerWriter<uint64_t>>();
        case LogicalTypeId::DATE:
            return std::make_unique<PageDateWriter<scalar_text::Date, 1>>(scalar_text::Date{});
        case LogicalTypeId::TIMESTAMP:
            return std::make_unique<PageDateWriter<scalar_text::Timestamp, kMicrosPerDay>>(scalar_text::Timestamp{});
        case LogicalTypeId::TIMESTAMP_SEC: {
            using Seconds = scalar_text::CoarseTimestamp<1'000'000>;
            return std::make_unique<PageDateWriter<Seconds, 86'400>>(Seconds{});
        }
        case LogicalTypeId::TIMESTAMP_MS: {
            using Millis = scalar_text::CoarseTimestamp<1'000>;
            return std::make_unique<PageDateWriter<Millis, 86'400'000>>(Millis{});
        }
        case LogicalTypeId::TIMESTAMP_NS:
            return std::make_unique<PageDateWriter<NanosecondTimestamp, kMicrosPerDay * 1000>>(NanosecondTimestamp{});
        case LogicalTypeId::TIMESTAMP_TZ:
            return std::make_unique<PageDateWriter<scalar_text::TimestampTz, kMicrosPerDay>>(
                scalar_text::TimestampTz{&zone});
        case LogicalTypeId::TIME:
            return std::make_unique<PageTimeWriter>(1'000'000);
        case LogicalTypeId::TIME_NS:
            return std::make_unique<PageTimeWriter>(1'000'000'000);
        case LogicalTypeId::INTERVAL:
            return std::make_unique<QuotedWriter<EngineInterval>>(EngineInterval{});
        case LogicalTypeId::BLOB:
            return std::make_unique<BlobHexWriter>();
        default:
            return nullptr;
    }
}

bool is_number(const LogicalType &type, JsonDialect dialect) {
    switch (type.id()) {
        case LogicalTypeId::TINYINT:
        case LogicalTypeId::UTINYINT:
        case LogicalTypeId::SMALLINT:
        case LogicalTypeId::USMALLINT:
        case LogicalTypeId::INTEGER:
        case LogicalTypeId::UINTEGER:
            return true;
        case LogicalTypeId::BIGINT:
        case LogicalTypeId::UBIGINT:
        case LogicalTypeId::HUGEINT:
        case LogicalTypeId::UHUGEINT:
        case LogicalTypeId::DECIMAL:
        case LogicalTypeId::BIGNUM:
            return dialect == JsonDialect::postgres;
        default:
            return false;
    }
}

std::unique_ptr<ValueWriter> make_nested(const LogicalType &type, JsonDialect dialect, ZoneOffsets &zone) {
    switch (type.id()) {
        case LogicalTypeId::LIST:
        case LogicalTypeId::ARRAY:
            return std::make_unique<ListWriter>(make_json_writer(element_type(type), dialect, zone));
        case LogicalTypeId::STRUCT:
            return std::make_unique<StructWriter>(type, dialect, zone);
        case LogicalTypeId::MAP:
            return std::make_unique<MapWriter>(make_json_writer(duckdb::MapType::KeyType(type), dialect, zone),
                                               make_json_writer(duckdb::MapType::ValueType(type), dialect, zone));
        case LogicalTypeId::UNION:
            return std::make_unique<UnionWriter>(type, dialect, zone);
        case LogicalTypeId::VARIANT:
            return std::make_unique<VariantWriter>(dialect, zone);
        default:
            return nullptr;
    }
}

}  // namespace

std::unique_ptr<ValueWriter> make_json_writer(const LogicalType &type, JsonDialect dialect, ZoneOffsets &zone) {
    if (auto nested = make_nested(type, dialect, zone)) return nested;
    if (type.id() == LogicalTypeId::BOOLEAN) return std::make_unique<BooleanWriter>();
    if (type.id() == LogicalTypeId::FLOAT) return std::make_unique<FloatWriter<float>>(dialect);
    if (type.id() == LogicalTypeId::DOUBLE) return std::make_unique<FloatWriter<double>>(dialect);
    if (type.IsJSONType() && dialect == JsonDialect::postgres) return std::make_unique<DocumentWriter>();
    if (type.id() == LogicalTypeId::VARCHAR || type.id() == LogicalTypeId::CHAR)
        return std::make_unique<StringWriter>();
    if (dialect == JsonDialect::page) {
        if (auto scalar = make_page_scalar(type, zone)) return scalar;
    }
    const bool bare = is_number(type, dialect);
    std::unique_ptr<ValueWriter> writer;
    const auto take = [&](auto format) {
        if (bare) {
            writer = std::make_unique<BareWriter<decltype(format)>>(format);
        } else {
            writer = std::make_unique<QuotedWriter<decltype(format)>>(format);
        }
    };
    if (scalar_text::visit_type(type, zone, take)) return writer;
    return std::make_unique<TextWriter>(make_pg_text_writer(type, zone), bare);
}

namespace {

// True when one of eight bytes is a control character, a quote or a backslash (or, rarely, when none is: then they are
// looked at one by one).
bool may_need_escape(const char *bytes) {
    constexpr uint64_t kOnes = 0x0101010101010101, kTops = 0x8080808080808080;
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    const auto zero_in = [](uint64_t value) { return (value - kOnes) & ~value & kTops; };
    const uint64_t control = (word - kOnes * 0x20) & ~word & kTops;
    return (control | zero_in(word ^ kOnes * '"') | zero_in(word ^ kOnes * '\\')) != 0;
}

}  // namespace

void append_json_string(std::string &out, std::string_view text) {
    static constexpr char kHex[] = "0123456789abcdef";
    out += '"';
    size_t clean = 0;  // start of what is not yet copied
    for (size_t i = 0; i < text.size(); ++i) {
        while (i + 8 <= text.size() && !may_need_escape(text.data() + i)) i += 8;
        if (i == text.size()) break;
        const auto c = static_cast<unsigned char>(text[i]);
        if (c >= 0x20 && c != '"' && c != '\\') continue;
        out.append(text, clean, i - clean);
        clean = i + 1;
        out += '\\';
        if (c == '"' || c == '\\') {
            out += static_cast<char>(c);
        } else if (c == '\n' || c == '\t' || c == '\r') {
            out += c == '\n' ? 'n' : c == '\t' ? 't' : 'r';
        } else {
            out += {'u', '0', '0', kHex[c >> 4], kHex[c & 15]};
        }
    }
    out.append(text, clean);
    out += '"';
}

bool shows_time_zone(const LogicalType &type) {
    switch (type.id()) {
        case LogicalTypeId::TIMESTAMP_TZ:
        case LogicalTypeId::VARIANT:
            return true;
        case LogicalTypeId::LIST:
        case LogicalTypeId::ARRAY:
            return shows_time_zone(element_type(type));
        case LogicalTypeId::MAP:
            return shows_time_zone(duckdb::ListType::GetChildType(type));
        case LogicalTypeId::UNION:
        case LogicalTypeId::STRUCT: {
            const auto &members = duckdb::StructType::GetChildTypes(type);
            return std::any_of(members.begin(), members.end(),
                               [](const auto &member) { return shows_time_zone(member.second); });
        }
        default:
            return false;
    }
}

}  // namespace roost
