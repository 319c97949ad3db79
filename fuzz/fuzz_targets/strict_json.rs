//! What our strict reader accepts, serde_json accepts with the same meaning, and the text is unchanged.

#![no_main]

use countersign_wire::{Error, JsonFault, RawObject};
use libfuzzer_sys::fuzz_target;
use serde_json::{Deserializer, Value};

fn read(text: &[u8]) -> serde_json::Result<Value> {
    let mut reader = Deserializer::from_slice(text);
    reader.disable_recursion_limit();
    let value = serde::Deserialize::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

fuzz_target!(|data: &[u8]| {
    match RawObject::parse(data) {
        Ok(object) => {
            let value = read(data).expect("strict JSON is JSON");
            let text = object.as_str();
            assert_eq!(text, std::str::from_utf8(data).unwrap().trim_matches([' ', '\t', '\r', '\n']));
            // The counts are equal, so there is no duplicate name.
            let members = object.members().unwrap();
            assert_eq!(members.rest().count(), value.as_object().unwrap().len());
            assert_eq!(object.text_without(&[]).unwrap(), text);
            for (name, _) in members.rest() {
                let less = object.text_without(&[name]).unwrap();
                let less = RawObject::parse(less.as_bytes()).expect("still an object");
                assert_eq!(less.members().unwrap().rest().count() + 1, members.rest().count());
            }
        }
        Err(Error::Json(JsonFault::Syntax { .. } | JsonFault::ByteOrderMark)) => {
            assert!(read(data).is_err(), "well-formed JSON was rejected as malformed");
        }
        Err(Error::Json(JsonFault::NotUtf8)) => assert!(std::str::from_utf8(data).is_err()),
        Err(_) => {}
    }
});
