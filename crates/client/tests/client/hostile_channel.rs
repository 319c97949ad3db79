//! What a gateway can't do to a channel: fill its memory, keep it busy, or stop it with garbage.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use countersign_client::{
    channel::{Channel, Event, Settings, Transport},
    clock::SystemClock,
    http::Http,
    profile::{GatewayUrl, Party},
};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::{Instant, sleep, timeout},
};
use tokio_tungstenite::{accept_async, tungstenite::Message};

/// A gateway that does this with every connection, and counts them.
async fn gateway<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> (Http, Arc<AtomicUsize>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = GatewayUrl::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(serve(stream));
        }
    });
    (Http::new(url, None).unwrap(), calls)
}

fn channel(http: Http, transport: Transport) -> Channel {
    channel_with_silence(http, transport, Duration::from_secs(1))
}

fn channel_with_silence(http: Http, transport: Transport, silence: Duration) -> Channel {
    let settings = Settings { transports: vec![transport], silence, ..Settings::default() };
    Channel::open(http, Party::Approver("ada".parse().unwrap()), Arc::new(SystemClock), settings)
}

fn message(number: usize, payload: &str) -> String {
    format!(
        r#"{{"msgId":"m-{number}","msgType":"approval.request","requestId":"r-{number}","createdAt":"2026-11-15T12:00:00Z","sender":{{"gatewayId":"gw"}},"body":{{"payload":"{payload}"}}}}"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_waits_at_the_gateway_and_not_in_the_memory() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    let (http, _) = gateway(move |stream| {
        let sent = counted.clone();
        async move {
            // What is not an upgrade is not answered.
            let Ok(mut socket) = accept_async(stream).await else { return };
            let payload = "x".repeat(1 << 20);
            for number in 0..1_000 {
                if socket.send(Message::text(message(number, &payload))).await.is_err() {
                    return;
                }
                sent.fetch_add(1, Ordering::SeqCst);
            }
        }
    })
    .await;
    let mut channel = channel(http, Transport::Websocket);
    assert!(matches!(channel.next().await.unwrap(), Event::Connected { .. }));
    // The caller is busy with something else. Some megabytes are in the system's buffers, a few in the queue.
    let until = Instant::now() + Duration::from_secs(30);
    let taken = loop {
        let before = sent.load(Ordering::SeqCst);
        sleep(Duration::from_secs(1)).await;
        if before > 0 && sent.load(Ordering::SeqCst) == before {
            break before;
        }
        assert!(Instant::now() < until, "it is read without end: {before} MB");
    };
    assert!(taken < 32, "{taken} MB were taken");
    // Nothing was lost, and it goes on when the caller does.
    for number in 0..100 {
        match timeout(Duration::from_secs(30), channel.next()).await.unwrap().unwrap() {
            Event::Request(pushed) => assert_eq!(pushed.request_id.as_str(), format!("r-{number}")),
            other => assert!(matches!(other, Event::Gone { .. }), "{other:?}"),
        }
    }
}

/// The specification lets a gateway leave the id of a message out.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_an_id_arrives_once() {
    let (http, _) = gateway(|stream| async move {
        let Ok(mut socket) = accept_async(stream).await else { return };
        for number in [1, 1, 2] {
            let text = message(number, "x").replace(&format!(r#""msgId":"m-{number}","#), "");
            drop(socket.send(Message::text(text)).await);
        }
        sleep(Duration::from_mins(1)).await;
    })
    .await;
    let mut channel = channel_with_silence(http, Transport::Websocket, Duration::from_mins(1));
    let mut requests = Vec::new();
    while requests.len() < 2 {
        if let Event::Request(pushed) =
            timeout(Duration::from_secs(30), channel.next()).await.unwrap().unwrap()
        {
            requests.push(pushed.request_id.as_str().to_owned());
        }
    }
    assert_eq!(requests, ["r-1", "r-2"]);
}

/// All that the specification has of a refresh is its type. Each one counts: the first may have come too early.
#[tokio::test(flavor = "multi_thread")]
async fn a_bare_refresh_without_an_id_arrives_each_time() {
    let (http, _) = gateway(|stream| async move {
        let Ok(mut socket) = accept_async(stream).await else { return };
        for request in ["r-1", "r-1", "r-2"] {
            let text = format!(r#"{{"msgType":"refresh.request","requestId":"{request}"}}"#);
            drop(socket.send(Message::text(text)).await);
        }
        sleep(Duration::from_mins(1)).await;
    })
    .await;
    let mut channel = channel_with_silence(http, Transport::Websocket, Duration::from_mins(1));
    let mut refreshes = Vec::new();
    while refreshes.len() < 3 {
        match timeout(Duration::from_secs(30), channel.next()).await.unwrap().unwrap() {
            Event::Refresh(pushed) => refreshes.push(pushed.request_id.as_str().to_owned()),
            other => assert!(matches!(other, Event::Connected { .. }), "{other:?}"),
        }
    }
    assert_eq!(refreshes, ["r-1", "r-1", "r-2"]);
}

const SSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// Garbage as frames, as bytes that are no frames, and as events.
fn garbage() -> Vec<(Transport, Vec<u8>)> {
    let frame = |first: u8, payload: &[u8]| {
        let mut bytes = vec![first, u8::try_from(payload.len()).unwrap()];
        bytes.extend_from_slice(payload);
        bytes
    };
    let mut cases = vec![
        (Transport::Websocket, frame(0x81, b"{")),
        (Transport::Websocket, frame(0x81, b"[]")),
        (Transport::Websocket, frame(0x81, br#"{"msgType":"approval.request"}"#)),
        (Transport::Websocket, frame(0x81, br#"{"msgType":"refresh.request","reason":"r"}"#)),
        (Transport::Websocket, frame(0x81, &[b'['; 125])),
        (Transport::Websocket, frame(0x81, b"\xff\xff")),
        (Transport::Websocket, frame(0x82, b"\xff\xff")),
        // A frame of 2^63 bytes, a reserved opcode, a close with a broken code.
        (Transport::Websocket, vec![0x82, 127, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
        (Transport::Websocket, frame(0x83, b"x")),
        // After something that is understood.
        (Transport::Websocket, [frame(0x8a, b""), frame(0x81, b"{")].concat()),
        (Transport::Sse, b"retry: 1\n\n: ping\n\ndata: {\n\n".to_vec()),
        (Transport::Websocket, frame(0x88, b"\x00")),
        (Transport::Sse, b"data: {\n\n".to_vec()),
        (Transport::Sse, b"data: \xff\n\n".to_vec()),
        (Transport::Sse, b"data: {\"msgId\":1}\n\n".to_vec()),
    ];
    // A good message that is larger than the protocol allows.
    let large = message(0, &"x".repeat(8 << 20));
    let mut frame = vec![0x81, 127];
    frame.extend_from_slice(&u64::try_from(large.len()).unwrap().to_be_bytes());
    cases.push((Transport::Websocket, [frame.as_slice(), large.as_bytes()].concat()));
    cases.push((Transport::Sse, format!("data: {large}\n\n").into_bytes()));
    let mut state = 0x5eed_u64;
    for round in 0..20 {
        let random = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        });
        let transport = if round % 2 == 0 { Transport::Websocket } else { Transport::Sse };
        cases.push((transport, random.take(300).collect()));
    }
    cases
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_ends_a_connection_and_the_next_one_comes_later_each_time() {
    let mut running = Vec::new();
    for (transport, bytes) in garbage() {
        running.push(tokio::spawn(async move {
            let shown = format!("{transport} {:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(300)]));
            let opened = Arc::new(AtomicUsize::new(0));
            let counted = opened.clone();
            let (http, _) = gateway(move |stream| {
                let (bytes, opened) = (bytes.clone(), counted.clone());
                async move {
                    let mut stream = if transport == Transport::Websocket {
                        let Ok(socket) = accept_async(stream).await else { return };
                        socket.into_inner()
                    } else {
                        let (mut stream, mut head) = (stream, [0; 4_096]);
                        let read = stream.read(&mut head).await.unwrap_or(0);
                        if !head[..read].starts_with(b"GET /v1/sse/") {
                            return;
                        }
                        stream.write_all(SSE).await.unwrap();
                        stream
                    };
                    opened.fetch_add(1, Ordering::SeqCst);
                    let _written = stream.write_all(&bytes).await;
                    // It stays open, as if more was to come.
                    let _read = stream.read_to_end(&mut Vec::new()).await;
                }
            })
            .await;
            let (began, mut was_disconnected) = (Instant::now(), false);
            let mut channel = channel(http, transport);
            // In 6 s it would show that the pauses don't grow; a slow machine may need longer for the second connection.
            while began.elapsed() < Duration::from_secs(6)
                || opened.load(Ordering::SeqCst) < 2
                || !was_disconnected
            {
                assert!(began.elapsed() < Duration::from_secs(30), "{shown}: no second connection");
                let Ok(event) = timeout(Duration::from_millis(100), channel.next()).await else { continue };
                let event = event.unwrap_or_else(|error| unreachable!("{shown}: {error}"));
                was_disconnected |= matches!(event, Event::Disconnected { .. });
                assert!(
                    matches!(event, Event::Connected { .. } | Event::Disconnected { .. }),
                    "{shown}: {event:?}"
                );
            }
            let (opened, seconds) = (opened.load(Ordering::SeqCst), began.elapsed().as_secs());
            let limit = 1 + usize::try_from(seconds / 2).unwrap();
            assert!(opened <= limit, "{shown}: {opened} connections in {seconds} s");
        }));
    }
    for case in running {
        case.await.expect("no panic");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_on_which_nothing_is_heard_is_dead() {
    let (http, _) = gateway(|mut stream| async move {
        let mut head = [0; 4_096];
        let _read = stream.read(&mut head).await;
        let _written = stream.write_all(SSE).await;
        let _read = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let mut channel = channel(http, Transport::Sse);
    assert!(matches!(channel.next().await.unwrap(), Event::Connected { .. }));
    let ended = timeout(Duration::from_secs(20), channel.next()).await.unwrap().unwrap();
    assert!(
        matches!(&ended, Event::Disconnected { reason } if reason.to_string().contains("nothing was heard")),
        "{ended:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_accepted_and_closed_is_tried_once_a_second_at_most() {
    let (http, _) = gateway(|stream| async move {
        let Ok(mut socket) = accept_async(stream).await else { return };
        // Something is heard each time, so the transport works.
        let _sent = socket.send(Message::Ping(Vec::new().into())).await;
        sleep(Duration::from_millis(50)).await;
        let _closed = socket.close(None).await;
        while let Some(Ok(_)) = socket.next().await {}
    })
    .await;
    let (began, mut connections) = (Instant::now(), 0);
    let mut channel = channel(http, Transport::Websocket);
    while began.elapsed() < Duration::from_secs(4) || connections < 2 {
        assert!(began.elapsed() < Duration::from_secs(30), "no second connection");
        let Ok(event) = timeout(Duration::from_millis(100), channel.next()).await else { continue };
        connections += u64::from(matches!(event.unwrap(), Event::Connected { .. }));
    }
    let seconds = began.elapsed().as_secs();
    assert!(connections <= 1 + seconds, "{connections} connections in {seconds} s");
}

/// Acknowledges the next request, if one comes soon; returns how many that were.
async fn acknowledge_next(channel: &mut Channel) -> usize {
    let Ok(event) = timeout(Duration::from_millis(100), channel.next()).await else { return 0 };
    let Event::Request(pushed) = event.unwrap() else { return 0 };
    channel.acknowledge(&pushed, "received");
    1
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_again_is_not_handed_out_again_and_is_acknowledged_again() {
    const ACCEPTED: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    let acks = Arc::new(AtomicUsize::new(0));
    let counted = acks.clone();
    let (http, _) = gateway(move |mut stream| {
        let acks = counted.clone();
        async move {
            let mut head = [0; 4_096];
            let read = stream.peek(&mut head).await.unwrap_or(0);
            if head[..read].starts_with(b"GET /v1/ws") {
                let mut socket = accept_async(stream).await.unwrap();
                for sent in 0..3 {
                    socket.send(Message::text(message(7, ""))).await.unwrap();
                    // What comes again before it was acknowledged is passed over.
                    while acks.load(Ordering::SeqCst) <= sent {
                        sleep(Duration::from_millis(20)).await;
                    }
                }
                while let Some(Ok(_)) = socket.next().await {}
            } else if head[..read].starts_with(b"POST /v1/acks") {
                acks.fetch_add(1, Ordering::SeqCst);
                let _read = stream.read(&mut head).await;
                let _written = stream.write_all(ACCEPTED).await;
            }
        }
    })
    .await;
    let mut channel = channel_with_silence(http, Transport::Websocket, Duration::from_mins(1));
    let (until, mut requests) = (Instant::now() + Duration::from_secs(20), 0);
    while acks.load(Ordering::SeqCst) < 3 {
        assert!(Instant::now() < until, "{} acknowledgements", acks.load(Ordering::SeqCst));
        requests += acknowledge_next(&mut channel).await;
    }
    // Long enough for a request that is handed out again, and for one more acknowledgement.
    let until = Instant::now() + Duration::from_millis(500);
    while Instant::now() < until {
        requests += acknowledge_next(&mut channel).await;
    }
    assert_eq!((requests, acks.load(Ordering::SeqCst)), (1, 3));
}
