//! A model on the loopback interface that wants one command to be run, in the four formats that hosts speak.
//!
//! `doctor` starts a host against it. It asks for the command until something comes back for it, and then it is done.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderValue},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

/// The largest request that is read. Hosts send long instructions.
const MAX_BODY: usize = 16 << 20;

/// What the model wants.
#[derive(Debug, Clone)]
pub struct Wish {
    /// The host's tool for shell commands.
    pub tool: &'static str,
    /// The arguments of the call.
    pub arguments: Value,
}

/// A model that listens. It ends when it is dropped.
#[derive(Debug)]
pub struct Model {
    address: SocketAddr,
    results: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Model {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Model {
    /// Starts to listen on a free port.
    pub async fn start(wish: Wish) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let results = Arc::<Mutex<Vec<String>>>::default();
        let task = tokio::spawn(serve(listener, wish, Arc::clone(&results)));
        Ok(Self { address, results, task })
    }

    /// Where hosts find it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What the host said became of the command, newest last.
    pub fn results(&self) -> Vec<String> {
        self.results.lock().clone()
    }
}

async fn serve(listener: TcpListener, wish: Wish, results: Arc<Mutex<Vec<String>>>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        let (wish, results) = (wish.clone(), Arc::clone(&results));
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(request, wish.clone(), Arc::clone(&results)));
            let connection =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // A host that goes away is no concern of the model.
            drop(connection.await);
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    wish: Wish,
    results: Arc<Mutex<Vec<String>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    if request.method() != Method::POST {
        return Ok(respond("application/json", json!({ "data": [], "models": [] }).to_string()));
    }
    let body = Limited::new(request.into_body(), MAX_BODY).collect().await;
    let body: Value = match body.map(|body| serde_json::from_slice(&body.to_bytes())) {
        Ok(Ok(body)) => body,
        _ => Value::Null,
    };
    let Some(format) = Format::of(&path) else {
        let mut missing =
            respond("application/json", json!({ "input_tokens": 1, "totalTokens": 1 }).to_string());
        if !path.to_lowercase().contains("count") {
            *missing.status_mut() = StatusCode::NOT_FOUND;
        }
        return Ok(missing);
    };
    let come_back = format.results(&body);
    let is_done = !come_back.is_empty() || !format.has_tools(&body);
    results.lock().extend(come_back);
    let wish = (!is_done).then_some(&wish);
    let is_stream = format == Format::Responses || path.contains("stream") || body["stream"] == true;
    Ok(match is_stream {
        true => respond("text/event-stream", format.stream(wish, &body)),
        false => respond("application/json", format.whole(wish, &body).to_string()),
    })
}

fn respond(kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// The formats of the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// The messages of Anthropic.
    Messages,
    /// The responses of `OpenAI`.
    Responses,
    /// The `generateContent` of Google.
    Generate,
    /// The chat completions of `OpenAI`.
    Chat,
}

impl Format {
    fn of(path: &str) -> Option<Self> {
        match path {
            path if path.ends_with("/messages") => Some(Self::Messages),
            path if path.ends_with("/responses") => Some(Self::Responses),
            path if path.to_lowercase().ends_with("generatecontent") => Some(Self::Generate),
            path if path.ends_with("/chat/completions") => Some(Self::Chat),
            _ => None,
        }
    }

    /// A request without tools is one of the host's own: a title, a summary.
    fn has_tools(self, body: &Value) -> bool {
        let given = |tools: &Value| tools.as_array().is_some_and(|tools| !tools.is_empty());
        let items = || body["input"].as_array().into_iter().flatten();
        given(&body["tools"]) || (self == Self::Responses && items().any(|item| given(&item["tools"])))
    }

    /// What has come back for calls.
    fn results(self, body: &Value) -> Vec<String> {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let found: Vec<Value> = match self {
            Self::Messages => {
                let blocks =
                    list(&body["messages"]).into_iter().flat_map(|message| list(&message["content"]));
                blocks
                    .filter(|block| block["type"] == "tool_result")
                    .map(|block| block["content"].clone())
                    .collect()
            }
            Self::Responses => {
                let is_output =
                    |item: &Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("_call_output"));
                list(&body["input"])
                    .into_iter()
                    .filter(is_output)
                    .map(|item| item["output"].clone())
                    .collect()
            }
            Self::Generate => {
                let parts = list(&body["contents"]).into_iter().flat_map(|content| list(&content["parts"]));
                parts
                    .map(|part| part["functionResponse"]["response"].clone())
                    .filter(|it| !it.is_null())
                    .collect()
            }
            Self::Chat => {
                let messages = list(&body["messages"]).into_iter();
                messages.filter(|it| it["role"] == "tool").map(|it| it["content"].clone()).collect()
            }
        };
        found.iter().map(ToString::to_string).collect()
    }

    fn stream(self, wish: Option<&Wish>, body: &Value) -> String {
        let named = |events: &[Value]| -> String {
            events
                .iter()
                .map(|it| format!("event: {}\ndata: {it}\n\n", it["type"].as_str().unwrap_or_default()))
                .collect::<Vec<_>>()
                .concat()
        };
        match self {
            Self::Messages => named(&messages_events(wish, body)),
            Self::Responses => named(&responses_events(wish)),
            Self::Generate => format!("data: {}\r\n\r\n", self.whole(wish, body)),
            Self::Chat => {
                let chunk = |delta: Value, reason: Value| {
                    json!({
                        "id": "chat", "object": "chat.completion.chunk", "created": 1, "model": body["model"],
                        "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
                        "usage": { "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 },
                    })
                };
                let first = chunk(chat_message(wish), Value::Null);
                let last = chunk(json!({}), chat_reason(wish).into());
                format!("data: {first}\n\ndata: {last}\n\ndata: [DONE]\n\n")
            }
        }
    }

    fn whole(self, wish: Option<&Wish>, body: &Value) -> Value {
        match self {
            Self::Messages => {
                let block = match wish {
                    Some(wish) => {
                        json!({ "type": "tool_use", "id": "toolu_1", "name": wish.tool, "input": wish.arguments })
                    }
                    None => json!({ "type": "text", "text": "done" }),
                };
                messages_message(wish, body, &json!([block]))
            }
            Self::Responses => Value::Null,
            Self::Generate => {
                let part = match wish {
                    Some(wish) => json!({ "functionCall": { "name": wish.tool, "args": wish.arguments } }),
                    None => json!({ "text": "done" }),
                };
                json!({
                    "candidates": [{ "content": { "role": "model", "parts": [part] }, "finishReason": "STOP", "index": 0 }],
                    "usageMetadata": { "promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2 },
                })
            }
            Self::Chat => json!({
                "id": "chat", "object": "chat.completion", "created": 1, "model": body["model"],
                "choices": [{ "index": 0, "message": chat_message(wish), "finish_reason": chat_reason(wish) }],
                "usage": { "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 },
            }),
        }
    }
}

fn messages_message(wish: Option<&Wish>, body: &Value, content: &Value) -> Value {
    let reason = if wish.is_some() { "tool_use" } else { "end_turn" };
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": content,
        "stop_reason": reason, "stop_sequence": null, "usage": { "input_tokens": 1, "output_tokens": 1 },
    })
}

fn messages_events(wish: Option<&Wish>, body: &Value) -> Vec<Value> {
    let mut start = messages_message(wish, body, &json!([]));
    let reason = std::mem::take(&mut start["stop_reason"]);
    let (block, delta) = match wish {
        Some(wish) => (
            json!({ "type": "tool_use", "id": "toolu_1", "name": wish.tool, "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": wish.arguments.to_string() }),
        ),
        None => (json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": "done" })),
    };
    vec![
        json!({ "type": "message_start", "message": start }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null }, "usage": { "output_tokens": 1 } }),
        json!({ "type": "message_stop" }),
    ]
}

fn responses_events(wish: Option<&Wish>) -> Vec<Value> {
    let item = match wish {
        Some(wish) => json!({
            "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": wish.tool,
            "arguments": wish.arguments.to_string(),
        }),
        None => json!({
            "type": "message", "id": "msg_1", "role": "assistant", "content": [{ "type": "output_text", "text": "done" }],
        }),
    };
    let usage = json!({
        "input_tokens": 1, "input_tokens_details": null, "output_tokens": 1, "output_tokens_details": null, "total_tokens": 2,
    });
    vec![
        json!({ "type": "response.created", "response": { "id": "resp_1" } }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": { "id": "resp_1", "usage": usage } }),
    ]
}

fn chat_message(wish: Option<&Wish>) -> Value {
    match wish {
        Some(wish) => {
            let function = json!({ "name": wish.tool, "arguments": wish.arguments.to_string() });
            let call = json!({ "index": 0, "id": "call_1", "type": "function", "function": function });
            json!({ "role": "assistant", "content": null, "tool_calls": [call] })
        }
        None => json!({ "role": "assistant", "content": "done" }),
    }
}

fn chat_reason(wish: Option<&Wish>) -> &'static str {
    if wish.is_some() { "tool_calls" } else { "stop" }
}
