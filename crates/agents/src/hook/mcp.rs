//! A server of the Model Context Protocol with one tool, over the standard streams: the permission tool of headless runs.
//!
//! Only what that needs is here: `initialize`, `tools/list`, `tools/call`, `ping`; one message a line.

use serde_json::{Value, json};

/// The name of the tool.
pub const TOOL: &str = "approve";

/// The newest version of the protocol whose messages look like these.
const VERSION: &str = "2025-11-25";

/// Versions that a client may ask for and gets.
const VERSIONS: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", VERSION];

/// What to do with a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Write this line back.
    Answer(Value),
    /// Decide the call with these arguments, and answer under this id.
    Decide(Value, Value),
    /// It wants no answer.
    Nothing,
}

/// Takes one line of the client.
pub fn take(line: &str) -> Step {
    let Ok(message) = serde_json::from_str::<Value>(line) else {
        return Step::Answer(failure(&Value::Null, -32_700, "this is no JSON"));
    };
    let id = message["id"].clone();
    let Some(method) = message["method"].as_str() else { return Step::Nothing };
    if id.is_null() {
        return Step::Nothing;
    }
    match method {
        "initialize" => {
            let wanted = message["params"]["protocolVersion"].as_str().unwrap_or_default();
            let version = VERSIONS.iter().find(|version| **version == wanted).unwrap_or(&VERSION);
            Step::Answer(result(
                &id,
                &json!({
                    "protocolVersion": version, "capabilities": { "tools": {} },
                    "serverInfo": { "name": "countersign", "version": env!("CARGO_PKG_VERSION") },
                }),
            ))
        }
        "ping" => Step::Answer(result(&id, &json!({}))),
        "tools/list" => Step::Answer(result(&id, &json!({ "tools": [tool()] }))),
        "tools/call" if message["params"]["name"] == TOOL => {
            Step::Decide(id, message["params"]["arguments"].clone())
        }
        "tools/call" => Step::Answer(failure(&id, -32_602, "there is only the tool approve")),
        _ => Step::Answer(failure(&id, -32_601, "this method is not known here")),
    }
}

fn tool() -> Value {
    json!({
        "name": TOOL,
        "description": "Asks a person whether a tool may be used, and returns their signed decision.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "tool_name": { "type": "string" }, "input": { "type": "object" }, "tool_use_id": { "type": "string" },
            },
            "required": ["tool_name", "input"],
        },
    })
}

/// The result of a call: one text that is the verdict as JSON.
pub fn verdict(id: &Value, verdict: &Value) -> Value {
    result(id, &json!({ "content": [{ "type": "text", "text": verdict.to_string() }] }))
}

fn result(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn failure(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(line: &str) -> Value {
        match take(line) {
            Step::Answer(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn messages_of_the_protocol_are_answered() {
        let first = answer(
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#,
        );
        assert_eq!(first["result"]["protocolVersion"], "2025-06-18");
        let other =
            answer(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"1999"}}"#);
        assert_eq!(other["result"]["protocolVersion"], VERSION);
        assert_eq!(answer(r#"{"id":"a","method":"tools/list"}"#)["result"]["tools"][0]["name"], TOOL);
        assert_eq!(answer(r#"{"id":2,"method":"ping"}"#)["result"], json!({}));
        assert_eq!(answer("nonsense")["error"]["code"], -32_700);
        assert_eq!(answer(r#"{"id":3,"method":"resources/list"}"#)["error"]["code"], -32_601);
        assert_eq!(
            answer(r#"{"id":3,"method":"tools/call","params":{"name":"other"}}"#)["error"]["code"],
            -32_602
        );
        assert_eq!(take(r#"{"method":"notifications/initialized"}"#), Step::Nothing);
        let line =
            r#"{"id":4,"method":"tools/call","params":{"name":"approve","arguments":{"tool_name":"Bash"}}}"#;
        assert_eq!(take(line), Step::Decide(json!(4), json!({ "tool_name": "Bash" })));
    }
}
