//! A canonical form is strict JSON, is its own canonical form, and has the same value as the text.

#![no_main]

use countersign_wire::{Error, canonical};
use libfuzzer_sys::fuzz_target;
use serde_json::{Deserializer, Value};

fn read(text: &[u8]) -> Value {
    let mut reader = Deserializer::from_slice(text);
    reader.disable_recursion_limit();
    serde::Deserialize::deserialize(&mut reader).expect("JSON")
}

/// Equal as JSON: numbers as doubles, members in any order.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, left)| right.get(name).is_some_and(|right| same(left, right)))
        }
        (left, right) => left == right,
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(form) = canonical::form(data) else { return };
    match canonical::form(&form) {
        Ok(again) => assert_eq!(again, form),
        // 1e20 is no integer literal, but its canonical form is one.
        Err(error) => assert_eq!(error, Error::UnsafeInteger),
    }
    assert!(same(&read(data), &read(&form)));
});
