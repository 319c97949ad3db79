//! Which texts we accept as JSON, and which we reject although many parsers accept them.

use countersign_wire::{Error, JsonFault, RawObject, limits::MAX_NESTING};

fn fault(text: &[u8]) -> JsonFault {
    match RawObject::parse(text) {
        Err(Error::Json(fault)) => fault,
        other => unreachable!("{other:?} for {}", String::from_utf8_lossy(text)),
    }
}

#[test]
fn a_member_named_twice_is_refused_at_any_depth_and_in_any_spelling() {
    for text in [
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"b":2,"a":3}"#,
        r#"{"a":{"b":{"c":1,"c":2}}}"#,
        r#"{"a":[[{"c":1,"c":2}]]}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"é":1,"\u00e9":2}"#,
        r#"{"😀":1,"\ud83d\ude00":2}"#,
        r#"{"":1,"":2}"#,
    ] {
        assert_eq!(fault(text.as_bytes()), JsonFault::DuplicateMember, "{text}");
    }
}

#[test]
fn names_that_only_look_alike_are_different_members() {
    for text in [
        r#"{"a":1,"A":2}"#,
        "{\"\u{e9}\":1,\"e\u{301}\":2}",
        r#"{"a":{"a":{"a":1}}}"#,
        r#"[{"a":1},{"a":2}]"#,
    ] {
        let text = format!(r#"{{"object":{text}}}"#);
        assert!(RawObject::parse(text.as_bytes()).is_ok(), "{text}");
    }
}

#[test]
fn lone_surrogates_are_refused_in_values_and_names() {
    for text in [
        r#"{"a":"\ud800"}"#,
        r#"{"a":"\udc00"}"#,
        r#"{"a":"\ud800\ud800"}"#,
        r#"{"a":"\ud800x"}"#,
        r#"{"\udfff":1}"#,
        r#"{"a":["\udbff\u0061"]}"#,
    ] {
        assert!(matches!(fault(text.as_bytes()), JsonFault::Syntax { .. }), "{text}");
    }
    assert!(RawObject::parse(br#"{"a":"\ud83d\ude00"}"#).is_ok());
}

#[test]
fn a_byte_order_mark_and_broken_utf_8_are_refused() {
    assert_eq!(fault(b"\xef\xbb\xbf{}"), JsonFault::ByteOrderMark);
    assert_eq!(fault(b"{\"a\":\"\xff\"}"), JsonFault::NotUtf8);
    assert_eq!(fault(b"{\"a\":\"\xed\xa0\x80\"}"), JsonFault::NotUtf8);
    assert_eq!(fault(b"{\"a\":\"\xc0\x80\"}"), JsonFault::NotUtf8);
}

#[test]
fn nesting_is_counted_through_arrays_and_objects_alike() {
    let arrays = |levels: usize| format!(r#"{{"a":{}1{}}}"#, "[".repeat(levels - 1), "]".repeat(levels - 1));
    let objects = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    for nested in [arrays, objects] {
        assert!(RawObject::parse(nested(MAX_NESTING).as_bytes()).is_ok());
        assert_eq!(fault(nested(MAX_NESTING + 1).as_bytes()), JsonFault::TooDeep);
        assert_eq!(fault(nested(100_000).as_bytes()), JsonFault::TooDeep);
    }
}

#[test]
fn the_deepest_text_can_be_hashed() {
    let deepest = format!("{}1{}", r#"{"a":"#.repeat(MAX_NESTING), "}".repeat(MAX_NESTING));
    assert_eq!(countersign_wire::canonical::form(deepest.as_bytes()).unwrap(), deepest.as_bytes());
}

#[test]
fn grammar_is_that_of_rfc_8259() {
    for text in [
        "",
        " ",
        "{",
        "{}{}",
        "{} x",
        "{,}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        "{a:1}",
        "{'a':1}",
        r#"{"a":01}"#,
        r#"{"a":+1}"#,
        r#"{"a":.5}"#,
        r#"{"a":1.}"#,
        r#"{"a":1e}"#,
        r#"{"a":-}"#,
        r#"{"a":NaN}"#,
        r#"{"a":Infinity}"#,
        r#"{"a":0x1}"#,
        r#"{"a":tru}"#,
        r#"{"a":"\x"}"#,
        r#"{"a":"\u12"}"#,
        "{\"a\":\"\n\"}",
        "{\"a\":\"\u{0}\"}",
        "{}\u{0}",
        "{\u{a0}}",
        "// c\n{}",
        r#"{"a":1e400}"#,
    ] {
        assert!(matches!(fault(text.as_bytes()), JsonFault::Syntax { .. }), "{text}");
    }
}

#[test]
fn a_value_that_is_no_object_is_refused_as_such() {
    for text in ["[]", "1", "\"{}\"", "null", "true"] {
        let refused = RawObject::parse(text.as_bytes()).unwrap_err();
        assert_eq!(refused.to_string(), "the value is not an object", "{text}");
    }
}

#[test]
fn broken_grammar_is_located() {
    assert_eq!(fault(b"{\n  \"a\": 1,\n  \"b\": ?\n}"), JsonFault::Syntax { line: 3, column: 8 });
}
