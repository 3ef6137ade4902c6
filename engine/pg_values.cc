// PostgreSQL's text and binary form of single values: what value_writer.h promises for variable-size scalars and
// arrays.
#include "duckdb/common/types/bignum.hpp"
#include "duckdb/common/types/bit.hpp"
#include "engine/scalar_binary.h"
#include "engine/scalar_text.h"
#include "engine/type_map.h"
#include "engine/value_writer.h"

namespace roost {

using duckdb::idx_t;
using duckdb::LogicalType;
using duckdb::LogicalTypeId;
using duckdb::string_t;

namespace {

template <class Format>
class FixedWriter final : public ValueWriter {
public:
    explicit FixedWriter(Format format) : format_(format) {}
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        char buffer[Format::kRoom];
        char *end = format_(buffer, view.value<typename Format::Value>(row));
        out.append(buffer, end);
    }

private:
    Format format_;
};

class StringWriter final : public ValueWriter {
public:
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        const auto &text = view.value<string_t>(row);
        out.append(text.GetData(), text.GetSize());
    }
};

class EnumWriter final : public ValueWriter {
public:
    explicit EnumWriter(LogicalType type) : type_(std::move(type)) {}
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        const string_t name = duckdb::EnumType::GetString(type_, position(view, row));
        out.append(name.GetData(), name.GetSize());
    }

private:
    idx_t position(const VectorView &view, idx_t row) const {
        switch (type_.InternalType()) {
            case duckdb::PhysicalType::UINT8:
                return view.value<uint8_t>(row);
            case duckdb::PhysicalType::UINT16:
                return view.value<uint16_t>(row);
            default:
                return view.value<uint32_t>(row);
        }
    }
    LogicalType type_;
};

class ByteaTextWriter final : public ValueWriter {
public:
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        const auto &bytes = view.value<string_t>(row);
        const size_t before = out.size();
        out.resize(before + 2 + 2 * bytes.GetSize());
        out[before] = '\\';
        out[before + 1] = 'x';
        value_text::put_hex(out.data() + before + 2, bytes.GetData(), bytes.GetSize());
    }
};

class BitTextWriter final : public ValueWriter {
public:
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        const auto &bits = view.value<string_t>(row);
        const size_t before = out.size();
        out.resize(before + duckdb::Bit::BitLength(bits));
        duckdb::Bit::ToString(bits, out.data() + before);
    }
};

// DuckDB pads a bit string in front (a byte that counts, then ones), PostgreSQL behind.
class BitBinaryWriter final : public ValueWriter {
public:
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        const auto &bits = view.value<string_t>(row);
        const auto *data = reinterpret_cast<const uint8_t *>(bits.GetData()) + 1;
        const size_t bytes = bits.GetSize() - 1;
        const unsigned padding = static_cast<uint8_t>(bits.GetData()[0]);
        char length[4];
        scalar_binary::put_be32(length, static_cast<uint32_t>(duckdb::Bit::BitLength(bits)));
        out.append(length, 4);
        for (size_t i = 0; i < bytes; ++i) {
            const unsigned next = i + 1 < bytes ? data[i + 1] : 0;
            out += static_cast<char>(static_cast<uint8_t>((unsigned{data[i]} << 8 | next) << padding >> 8));
        }
    }
};

std::string bignum_digits(const VectorView &view, idx_t row) {
    return duckdb::Bignum::BignumToVarchar(view.value<duckdb::bignum_t>(row));
}

class BignumTextWriter final : public ValueWriter {
public:
    void append(const VectorView &view, idx_t row, std::string &out) const override { out += bignum_digits(view, row); }
};

class BignumBinaryWriter final : public ValueWriter {
public:
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        const std::string text = bignum_digits(view, row);
        std::string_view digits = text;
        const bool negative = digits.starts_with('-');
        if (negative) digits.remove_prefix(1);
        // The count of base-10 000 digits is 16 bits, and PostgreSQL's own limit lies below.
        if (digits.size() > kMaxNumericDigits) scalar_binary::throw_out_of_range("numeric");
        const size_t before = out.size();
        out.resize(before + 8 + 2 * (digits.size() / 4 + 2));
        const char *end = scalar_binary::put_numeric(out.data() + before, digits, negative, 0);
        out.resize(static_cast<size_t>(end - out.data()));
    }

private:
    static constexpr size_t kMaxNumericDigits = 131'072;
};

// What has no form of its own: the engine's text.
class EngineTextWriter final : public ValueWriter {
public:
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        out += view.vector->GetValue(row).ToString();
    }
};

struct Elements {
    const VectorView &view;
    idx_t begin, count;
};

// The elements of a LIST or ARRAY value.
Elements elements_of(const VectorView &view, idx_t row) {
    const auto &type = view.vector->GetType();
    if (type.id() == LogicalTypeId::ARRAY) {
        const idx_t size = duckdb::ArrayType::GetSize(type);
        return {view.children[0], view.index(row) * size, size};
    }
    const auto &entry = view.value<duckdb::list_entry_t>(row);
    return {view.children[0], entry.offset, entry.length};
}

// {1,NULL,"a b"}
class ArrayTextWriter final : public ValueWriter {
public:
    // `plain`: the element's text never holds what must be quoted.
    ArrayTextWriter(std::unique_ptr<ValueWriter> element, bool plain) : element_(std::move(element)), plain_(plain) {}
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        const auto [child, begin, count] = elements_of(view, row);
        out += '{';
        for (idx_t i = begin; i < begin + count; ++i) {
            if (i > begin) out += ',';
            if (child.is_null(i)) {
                out += "NULL";
                continue;
            }
            const size_t start = out.size();
            element_->append(child, i, out);
            if (!plain_ && needs_quotes(std::string_view(out).substr(start))) quote_from(out, start);
        }
        out += '}';
    }

private:
    static bool needs_quotes(std::string_view text) {
        if (text.empty()) return true;
        if (text.size() == 4 && duckdb::StringUtil::CIEquals(std::string(text), "null")) return true;
        return text.find_first_of("{},\"\\ \t\n\r\v\f") != std::string_view::npos;
    }
    static void quote_from(std::string &out, size_t start) {
        const std::string text = out.substr(start);
        out.resize(start);
        out += '"';
        for (const char c : text) {
            if (c == '"' || c == '\\') out += '\\';
            out += c;
        }
        out += '"';
    }
    std::unique_ptr<ValueWriter> element_;
    bool plain_;
};

// ndim, has-null flag, element oid, then per dimension length and lower bound, then the elements with their lengths.
class ArrayBinaryWriter final : public ValueWriter {
public:
    ArrayBinaryWriter(uint32_t element_oid, std::unique_ptr<ValueWriter> element)
        : oid_(element_oid), element_(std::move(element)) {}
    void append(const VectorView &view, idx_t row, std::string &out) const override {
        const auto [child, begin, count] = elements_of(view, row);
        bool has_null = false;
        for (idx_t i = begin; i < begin + count && !has_null; ++i) has_null = child.is_null(i);
        put(out, count == 0 ? 0 : 1);
        put(out, has_null ? 1 : 0);
        put(out, oid_);
        if (count == 0) return;
        put(out, static_cast<uint32_t>(count));
        put(out, 1);
        for (idx_t i = begin; i < begin + count; ++i) {
            if (child.is_null(i)) {
                put(out, UINT32_MAX);
                continue;
            }
            const size_t at = out.size();
            put(out, 0);
            element_->append(child, i, out);
            scalar_binary::put_be32(out.data() + at, static_cast<uint32_t>(out.size() - at - 4));
        }
    }

private:
    static void put(std::string &out, uint32_t value) {
        char bytes[4];
        scalar_binary::put_be32(bytes, value);
        out.append(bytes, 4);
    }
    uint32_t oid_;
    std::unique_ptr<ValueWriter> element_;
};

}  // namespace

std::unique_ptr<ValueWriter> make_pg_text_writer(const LogicalType &type, ZoneOffsets &zone) {
    std::unique_ptr<ValueWriter> writer;
    const auto take = [&](auto format) { writer = std::make_unique<FixedWriter<decltype(format)>>(format); };
    if (scalar_text::visit_type(type, zone, take)) return writer;
    if (is_pg_json(type)) return make_json_writer(type, JsonDialect::postgres, zone);
    if (is_pg_array(type)) {
        const auto &element = element_type(type);
        const bool plain =
            element.IsNumeric() || element.id() == LogicalTypeId::BOOLEAN || element.id() == LogicalTypeId::UUID;
        return std::make_unique<ArrayTextWriter>(make_pg_text_writer(element, zone), plain);
    }
    switch (type.id()) {
        case LogicalTypeId::VARCHAR:
        case LogicalTypeId::CHAR:
            return std::make_unique<StringWriter>();
        case LogicalTypeId::BLOB:
            return std::make_unique<ByteaTextWriter>();
        case LogicalTypeId::BIT:
            return std::make_unique<BitTextWriter>();
        case LogicalTypeId::BIGNUM:
            return std::make_unique<BignumTextWriter>();
        case LogicalTypeId::ENUM:
            return std::make_unique<EnumWriter>(type);
        default:
            return std::make_unique<EngineTextWriter>();
    }
}

std::unique_ptr<ValueWriter> make_pg_binary_writer(const LogicalType &type, ZoneOffsets &zone) {
    std::unique_ptr<ValueWriter> writer;
    const auto take = [&](auto format) { writer = std::make_unique<FixedWriter<decltype(format)>>(format); };
    if (scalar_binary::visit_type(type, take)) return writer;
    if (is_pg_array(type)) {
        const auto &element = element_type(type);
        return std::make_unique<ArrayBinaryWriter>(pg_type_of(element).oid, make_pg_binary_writer(element, zone));
    }
    switch (type.id()) {
        case LogicalTypeId::BLOB:
            return std::make_unique<StringWriter>();
        case LogicalTypeId::BIT:
            return std::make_unique<BitBinaryWriter>();
        case LogicalTypeId::BIGNUM:
            return std::make_unique<BignumBinaryWriter>();
        default:
            return make_pg_text_writer(type, zone);  // text and json: the same bytes
    }
}

}  // namespace roost
