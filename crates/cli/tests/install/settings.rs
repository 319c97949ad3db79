//! Settings as people have them.

/// Settings that every host accepts.
pub(crate) const SETTINGS: &[(&str, &str)] = &[
    ("empty file", ""),
    ("blank lines only", "\n\n"),
    ("empty object", "{}"),
    ("empty object with a line break", "{}\n"),
    ("empty object over two lines", "{\n}\n"),
    ("empty object with blanks", "{ }\n"),
    ("two spaces", "{\n  \"model\": \"opus\",\n  \"theme\": \"dark\"\n}\n"),
    ("four spaces", "{\n    \"model\": \"opus\",\n    \"permissions\": {\n        \"allow\": []\n    }\n}\n"),
    ("tabs", "{\n\t\"model\": \"opus\",\n\t\"env\": {\n\t\t\"A\": \"1\"\n\t}\n}\n"),
    ("no line break at the end", "{\n  \"model\": \"opus\"\n}"),
    ("carriage returns", "{\r\n  \"model\": \"opus\",\r\n  \"hooks\": {\r\n    \"Stop\": []\r\n  }\r\n}\r\n"),
    ("minified", "{\"model\":\"opus\",\"env\":{\"A\":\"1\"},\"list\":[1,2,3]}"),
    (
        "minified with hooks",
        "{\"hooks\":{\"PreToolUse\":[{\"matcher\":\"Bash\",\"hooks\":[{\"type\":\"command\",\"command\":\"x\"}]}]},\"a\":1}\n",
    ),
    ("one line with blanks", "{ \"model\": \"opus\", \"hooks\": {} }\n"),
    ("empty hooks", "{\n  \"hooks\": {},\n  \"model\": \"opus\"\n}\n"),
    ("hooks alone", "{\"hooks\": {}}"),
    ("empty hooks over lines", "{\n  \"hooks\": {\n  }\n}\n"),
    (
        "empty lists for our events",
        "{\n  \"hooks\": {\n    \"PreToolUse\": [],\n    \"BeforeTool\": [ ],\n    \"SessionStart\": [\n    ]\n  }\n}\n",
    ),
    (
        "hooks of others for the same event",
        "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        \"matcher\": \"Bash\",\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": \"~/check.sh\"\n          }\n        ]\n      }\n    ],\n    \"BeforeTool\": [\n      { \"matcher\": \"write_file\", \"hooks\": [{ \"type\": \"command\", \"command\": \"lint\" }] }\n    ]\n  },\n  \"model\": \"opus\"\n}\n",
    ),
    (
        "lists on one line",
        "{\n  \"hooks\": {\n    \"PreToolUse\": [{\"matcher\": \"Edit\", \"hooks\": []}, {\"hooks\": []}]\n  }\n}\n",
    ),
    (
        "unicode and escapes",
        "{\n  \"näme\": \"日本語 \\u00e9 \\\"quoted\\\" \\\\ // no comment /* nor this */\",\n  \"emoji\": \"🦀\"\n}\n",
    ),
    ("deep nesting", "{\"a\":[[[[[[[[[[{\"b\":{\"c\":{\"d\":[{\"e\":[[[]]]}]}}}]]]]]]]]]]}\n"),
    ("numbers and literals", "{\n  \"a\": -1.50e+10,\n  \"b\": true,\n  \"c\": null,\n  \"d\": 0.10\n}\n"),
    ("no indentation", "{\n\"a\": 1,\n\"b\": {\n\"c\": 2\n}\n}\n"),
    ("commas first", "{\n    \"a\": 1\n  , \"b\": 2\n}\n"),
    ("blank lines between", "\n\n{\n\n  \"a\": 1,\n\n\n  \"b\": 2\n\n}\n\n\n"),
    ("closing brackets together", "{\n  \"hooks\": {\n    \"Stop\": [{\n      \"hooks\": []}]}}\n"),
    (
        "a value before and after",
        "{\n  \"a\": 1,\n  \"hooks\": {\n    \"Other\": [ 1 ]\n  },\n  \"b\": 2\n}\n",
    ),
];

/// Settings with comments, which Gemini CLI reads.
pub(crate) const WITH_COMMENTS: &[(&str, &str)] = &[
    (
        "comments everywhere",
        "// head\n{\n  // first\n  \"a\": 1, // after a\n  /* block */ \"b\": 2 /* last */ // and more\n  // before the end\n}\n// tail",
    ),
    ("a comment behind the only value", "{\"a\":1 // note\n}\n"),
    ("a comment in empty hooks", "{\n  \"hooks\": { /* none yet */ },\n  \"a\": 1\n}\n"),
    ("a comment in an empty list", "{\n  \"hooks\": {\n    \"BeforeTool\": [ // later\n    ]\n  }\n}\n"),
    ("only a comment", "{\n  // nothing here\n}\n"),
    ("comments that look like code", "{\n  \"a\": \"//\", // \"b\": 2,\n  \"c\": \"/*\" /* } */\n}\n"),
];

/// What no host could read, with the line that is wrong.
pub(crate) const MALFORMED: &[(&str, usize)] = &[
    ("{\n  \"a\": 1,\n}\n", 3),
    ("{\n  \"a\": 1\n  \"b\": 2\n}\n", 3),
    ("{\n  \"a\": 1\n", 3),
    ("{\"a\": 01}", 1),
    ("{'a': 1}", 1),
    ("[]", 1),
    ("\n\n\"text\"", 3),
    ("{}\n{}", 2),
    ("{\n  \"a\": 1,\n  \"a\": 2\n}\n", 3),
    ("{\n  \"x\": { \"hooks\": 1,\n    \"\\u0068ooks\": 2 }\n}\n", 3),
    ("{\n  \"hooks\": []\n}\n", 2),
    ("{\n  \"hooks\": {\n    \"PreToolUse\": {},\n    \"BeforeTool\": \"x\"\n  }\n}\n", 3),
    ("{\n  \"a\": \"tab\tinside\"\n}\n", 2),
    ("\u{feff}{}\n", 1),
    ("{\n  \"a\": NaN\n}\n", 2),
];
