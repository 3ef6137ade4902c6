#include "front/pg/sql_arguments.h"

#include <algorithm>
#include <array>
#include <string>

#include "sql/lexer.h"

namespace roost::pg {
namespace {

using sql::Lexer;
using sql::Token;

struct TypeName {
    std::string_view name;
    uint32_t oid;
    uint32_t array_oid;
};

constexpr std::array<TypeName, 37> kTypes{{{"bigint", 20, 1016},
                                           {"bit varying", 1562, 1563},
                                           {"blob", 17, 1001},
                                           {"bool", 16, 1000},
                                           {"boolean", 16, 1000},
                                           {"bpchar", 25, 1009},
                                           {"bytea", 17, 1001},
                                           {"char", 25, 1009},
                                           {"character varying", 25, 1009},
                                           {"date", 1082, 1182},
                                           {"dec", 1700, 1231},
                                           {"decimal", 1700, 1231},
                                           {"double", 701, 1022},
                                           {"double precision", 701, 1022},
                                           {"float", 701, 1022},
                                           {"float4", 700, 1021},
                                           {"float8", 701, 1022},
                                           {"int", 23, 1007},
                                           {"int2", 21, 1005},
                                           {"int4", 23, 1007},
                                           {"int8", 20, 1016},
                                           {"integer", 23, 1007},
                                           {"interval", 1186, 1187},
                                           {"json", 114, 199},
                                           {"numeric", 1700, 1231},
                                           {"real", 700, 1021},
                                           {"smallint", 21, 1005},
                                           {"string", 25, 1009},
                                           {"text", 25, 1009},
                                           {"time", 1083, 1183},
                                           {"time without time zone", 1083, 1183},
                                           {"timestamp", 1114, 1115},
                                           {"timestamp with time zone", 1184, 1185},
                                           {"timestamp without time zone", 1114, 1115},
                                           {"timestamptz", 1184, 1185},
                                           {"uuid", 2950, 2951},
                                           {"varchar", 25, 1009}}};

Status not_constant() {
    return Status(Code::unimplemented, "EXECUTE takes constants only")
        .with_hint("Compute the value first, or use the protocol's own parameters.");
}

// Reads the list token by token.
class Arguments {
public:
    explicit Arguments(std::string_view text) : text_(text), lexer_(text), token_(lexer_.next()) {}

    Result<std::vector<Param>> parse() {
        std::vector<Param> out;
        if (token_.kind == Token::Kind::end) return out;
        if (!take_punct('(')) return broken();
        if (take_punct(')')) return out;
        while (true) {
            ROOST_ASSIGN_OR_RETURN(Param param, constant());
            out.push_back(std::move(param));
            if (take_punct(')')) break;
            if (!take_punct(',')) return token_.kind == Token::Kind::end ? broken() : not_constant();
        }
        if (token_.kind != Token::Kind::end) return broken();
        return out;
    }

private:
    static Status broken() { return Status(Code::syntax_error, "syntax error in the arguments of EXECUTE"); }

    void advance() { token_ = lexer_.next(); }
    std::string_view word() const { return token_.in(text_); }

    bool take_punct(char character) {
        const bool is = token_.is_punct(text_, character);
        if (is) advance();
        return is;
    }

    Result<Param> constant() {
        Param param;
        bool is_negative = false;
        if (token_.kind == Token::Kind::op && (word() == "-" || word() == "+")) {
            is_negative = word() == "-";
            advance();
            if (token_.kind != Token::Kind::number) return not_constant();
        }
        if (token_.kind == Token::Kind::number) {
            param.value = (is_negative ? "-" : "") + std::string(word());
        } else if (token_.kind == Token::Kind::string) {
            param.value = sql::string_value(text_, token_);
        } else if (token_.kind == Token::Kind::word && sql::equals_folded(word(), "true")) {
            param.value = "t";
        } else if (token_.kind == Token::Kind::word && sql::equals_folded(word(), "false")) {
            param.value = "f";
        } else if (token_.kind != Token::Kind::word || !sql::equals_folded(word(), "null")) {
            return token_.kind == Token::Kind::end || token_.kind == Token::Kind::broken ? broken() : not_constant();
        }
        advance();
        if (token_.kind == Token::Kind::op && word() == "::") {
            advance();
            if (token_.kind != Token::Kind::word) return not_constant();
            param.pg_oid = type_oid(word());
            if (param.pg_oid == 0) return not_constant();
            advance();
        }
        return param;
    }

    std::string_view text_;
    Lexer lexer_;
    Token token_;
};

}  // namespace

Result<std::vector<Param>> parse_arguments(std::string_view text) { return Arguments(text).parse(); }

uint32_t type_oid(std::string_view name) {
    std::string folded = sql::fold(name);
    const bool is_array = folded.ends_with("[]");
    if (is_array) folded.resize(folded.size() - 2);
    if (const size_t modifier = folded.find('('); modifier != std::string::npos) {
        const size_t close = folded.find(')', modifier);
        if (close == std::string::npos) return 0;
        folded.erase(modifier, close - modifier + 1);
    }
    folded.erase(folded.find_last_not_of(' ') + 1);
    const auto at = std::lower_bound(kTypes.begin(), kTypes.end(), folded,
                                     [](const TypeName &type, const std::string &key) { return type.name < key; });
    if (at == kTypes.end() || at->name != folded) return 0;
    return is_array ? at->array_oid : at->oid;
}

}  // namespace roost::pg
