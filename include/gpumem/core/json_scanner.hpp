// Input: JSON as programs print it (json_tokens.hpp).
// Output: its values as events, in order, each text as a view; or "no", and then the caller asks the full parser. It
// accepts only what the full parser accepts.
#pragma once

#include <string_view>

#include "gpumem/core/json_tokens.hpp"

namespace gpumem::core {

/// Events: open_object(), open_list(), close(), key(view), value(Value); each returns
/// false to end the scan.
template <typename Events, typename Value>
class JsonScanner {
 public:
  /// `reached` shows how far the scan has come whenever an object opens: just behind its brace.
  JsonScanner(std::string_view text, Events& events, const char*& reached)
      : tokens_(text), events_(events), reached_(reached) {}

  /// True if the text is one value, and no event refused any of it.
  [[nodiscard]] bool scan() { return tokens_.skip_space() && value(0) && tokens_.skip_space() && tokens_.at_end(); }

 private:
  static constexpr int kDeepest = 64;

  bool value(int depth) {
    switch (tokens_.front()) {
      case '{': return object(depth + 1);
      case '[': return list(depth + 1);
      case '"': {
        std::string_view text;
        return tokens_.take_text(text) && events_.value(Value::text(text));
      }
      case 't': return tokens_.take_word("true") && events_.value(Value::boolean(true));
      case 'f': return tokens_.take_word("false") && events_.value(Value::boolean(false));
      case 'n': return tokens_.take_word("null") && events_.value(Value::null());
      default: return number();
    }
  }

  bool object(int depth) {
    (void)tokens_.take('{');
    reached_ = tokens_.at();
    if (depth > kDeepest || !events_.open_object() || !tokens_.skip_space()) return false;
    if (tokens_.take('}')) return events_.close();
    do {
      if (!tokens_.skip_space() || !field(depth) || !tokens_.skip_space()) return false;
    } while (tokens_.take(','));
    return tokens_.take('}') && events_.close();
  }

  bool field(int depth) {
    std::string_view name;
    return tokens_.take_text(name) && events_.key(name) && tokens_.skip_space() && tokens_.take(':') &&
           tokens_.skip_space() && value(depth);
  }

  bool list(int depth) {
    (void)tokens_.take('[');
    if (depth > kDeepest || !events_.open_list() || !tokens_.skip_space()) return false;
    if (tokens_.take(']')) return events_.close();
    do {
      if (!tokens_.skip_space() || !value(depth) || !tokens_.skip_space()) return false;
    } while (tokens_.take(','));
    return tokens_.take(']') && events_.close();
  }

  bool number() {
    JsonNumber number;
    if (!tokens_.take_number(number)) return false;
    return events_.value(number.is_real ? Value::real(number.real) : Value::integer(number.integer));
  }

  JsonTokens tokens_;
  Events& events_;
  const char*& reached_;
};

}  // namespace gpumem::core
