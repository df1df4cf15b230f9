"""The words for what is wrong with the text of a call: what is mended, and what is not."""

from __future__ import annotations

MENDINGS: dict[str, str] = {
    "call_arguments_encoded": "the arguments are a JSON string that holds the object",
    "call_backslash_unescaped": "a string holds backslashes that cannot be escapes",
    "call_brace_missing": "a bracket is missing although every string is closed",
    "call_brace_surplus": "closing brackets stand behind one complete object",
    "call_code_unclosed": "the code body lacks its closing tag",
    "call_comma_missing": "two members stand side by side without a comma",
    "call_comma_surplus": "a comma stands where no value was left out",
    "call_comment": "the object holds comments",
    "call_dialect": "the call is written in tags and not as JSON",
    "call_encoded": "the whole call is a JSON string that holds the object",
    "call_fenced": "a code fence stands round the call",
    "call_fullwidth_punctuation": "brackets, quotes, colons or commas are full-width characters",
    "call_key_repeated": "a key is given twice",
    "call_keys_unquoted": "keys have no quotes",
    "call_line_break_in_string": "a string holds raw control characters, such as line breaks",
    "call_parameters_key": "`parameters` stands for `arguments`",
    "call_python_literal": "values or escapes are Python's",
    "call_quote_unescaped": "a string holds quotes that are not escaped",
    "call_repeated": "the same object stands twice in one block",
    "call_single_quoted": "strings are in single quotes",
    "call_smart_quoted": "strings are in typographic quotes",
    "call_space_not_json": "white space between tokens is none of JSON's",
    "call_text_around": "text stands beside the object",
    "call_trailing_comma": "a comma stands before a closing bracket",
    "call_wrapped": "the call is wrapped in a list or in another object",
}

REFUSALS: dict[str, str] = {
    "call_ambiguous": "two mendings fit and give different calls",
    "call_arguments_missing": "the call has no arguments",
    "call_arguments_not_object": "the arguments are no object",
    "call_brackets_mismatched": "brackets close what they did not open",
    "call_colon_missing": "a key has no colon",
    "call_cut_off": "the call breaks off",
    "call_empty": "nothing stands between the tags",
    "call_name_missing": "the call has no name",
    "call_not_json": "the call is not JSON and cannot be mended",
    "call_not_object": "the call is JSON but no object",
    "call_number_not_json": "a number is not as JSON writes it",
    "call_several": "one block holds several calls",
    "call_too_deep": "the call is nested too deep",
    "call_value_missing": "a key has no value",
    "call_value_unquoted": "a value has no quotes",
}
