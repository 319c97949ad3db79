//! `/v1/presence/enforcers`: who is online.

use std::io;

use axum::{
    body::Body,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use bytes::Bytes;
use countersign_core::{Error, use_cases::presence::PresencePage};
use countersign_wire::{
    failure::Failure,
    id::{EnforcerId, TenantId},
};
use futures_util::stream;

use crate::{
    auth::Caller,
    error::ApiError,
    ids::HttpRequestId,
    rest::{params::PathId, response},
    state::SharedState,
};

/// The whole list, however long: written page by page as it is read, so that it costs no memory.
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Caller,
    http_id: HttpRequestId,
) -> Result<Response, ApiError> {
    let first = app.gateway.presence_page(&caller.tenant, None).await?;
    let writing = Writing { app, tenant: caller.tenant, http_id, rest: Rest::Read(first), is_first: true };
    let mut response = Response::new(Body::from_stream(stream::try_unfold(writing, Writing::next)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

struct Writing {
    app: SharedState,
    tenant: TenantId,
    http_id: HttpRequestId,
    rest: Rest,
    is_first: bool,
}

/// What is to be written next.
enum Rest {
    /// A page that was read.
    Read(PresencePage),
    /// What comes after this id. Not read before it is its turn: a slow reader keeps one page in memory.
    After(String),
    Complete,
}

impl Writing {
    /// The text of one page, and what is to be written after it. The head has said 200, so a failure can only be told by
    /// breaking the connection off: without the last chunk a client knows that the list is not whole.
    async fn next(self) -> Result<Option<(Bytes, Self)>, io::Error> {
        let http_id = self.http_id.clone();
        self.read_next().await.map_err(|error| {
            ApiError::from(error).log(&http_id);
            io::ErrorKind::ConnectionAborted.into()
        })
    }

    async fn read_next(mut self) -> Result<Option<(Bytes, Self)>, Error> {
        let page = match std::mem::replace(&mut self.rest, Rest::Complete) {
            Rest::Read(page) => page,
            Rest::After(id) => self.app.gateway.presence_page(&self.tenant, Some(&id)).await?,
            Rest::Complete => return Ok(None),
        };
        let mut text = Vec::new();
        for record in &page.records {
            text.push(if std::mem::take(&mut self.is_first) { b'[' } else { b',' });
            text.extend(serde_json::to_vec(record).map_err(|_| Failure::Internal)?);
        }
        match page.next {
            Some(after) => self.rest = Rest::After(after),
            None if self.is_first => text.extend(b"[]"),
            None => text.push(b']'),
        }
        Ok(Some((text.into(), self)))
    }
}

pub(crate) async fn one(
    State(app): State<SharedState>,
    caller: Caller,
    PathId(enforcer): PathId<EnforcerId>,
) -> Result<Response, ApiError> {
    response::json(StatusCode::OK, app.gateway.presence_of(&caller.tenant, &enforcer).await?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use countersign_core::{model::credential::Role, use_cases::presence::SelfDescription};
    use countersign_wire::presence::Transport;
    use parking_lot::Mutex;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::{TcpListener, TcpStream},
    };

    use super::*;
    use crate::{
        limits::Peer,
        net::{
            connection::{Admitted, serve},
            stream::Stream,
        },
        router::router,
        test_node::TestNode,
    };

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0.lock().extend(text);
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The whole answer to a request for the list, as it is on the wire.
    async fn answer(app: &SharedState, key: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, address) = listener.accept().await.unwrap();
        let peer = Peer { address, is_direct: false, is_tls: false };
        let admitted = Admitted { stream: Stream::Plain(stream), peer, name: None };
        let request = format!(
            "GET /v1/presence/enforcers HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\r\n"
        );
        client.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        let read = client.read_to_string(&mut text);
        let ((), read) = tokio::join!(serve(admitted, router(app.clone()), app.drain.clone()), read);
        read.unwrap();
        text
    }

    #[tokio::test]
    async fn a_list_that_the_store_does_not_finish_has_no_last_chunk_and_is_logged() {
        let node = TestNode::new();
        let (app, gateway, store) = (node.app.clone(), &node.app.gateway, node.store.clone());
        let acme: TenantId = "acme".parse().unwrap();
        for number in 0..1_001 {
            let (enforcer, says) = (format!("robot-{number}").parse().unwrap(), SelfDescription::default());
            gateway.record_presence(&acme, &enforcer, Transport::Poll, says).await.unwrap();
        }
        let key = gateway.create_key(&acme, Role::Operator, &app.mac_key).await.unwrap().key.expose();
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
        let _guard = tracing::subscriber::set_default(subscriber);
        let whole = answer(&app, &key).await;
        assert!(whole.ends_with("]\r\n0\r\n\r\n"), "the last chunk says that it is whole");
        assert!(!String::from_utf8_lossy(&log.0.lock()).contains("ERROR"));
        store.fail_scans_after(2);
        let broken = answer(&app, &key).await;
        assert!(
            broken.starts_with("HTTP/1.1 200") && broken.contains("transfer-encoding: chunked"),
            "{broken:.200}"
        );
        assert!(broken.contains("robot-0") && broken.len() < whole.len());
        assert!(!broken.ends_with("0\r\n\r\n"), "a client must not take it for the whole list");
        let logged = String::from_utf8_lossy(&log.0.lock()).into_owned();
        assert!(logged.contains("ERROR") && logged.contains("the test says so"), "{logged}");
    }
}
