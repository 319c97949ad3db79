//! A gateway that lies: it stands before a real one, sees everything, and answers what it likes.

use std::{net::SocketAddr, sync::Arc};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// What an end asks.
#[derive(Debug, Clone)]
pub struct Call {
    pub method: String,
    pub path: String,
    headers: Vec<String>,
    pub body: Vec<u8>,
}

/// What it is answered.
#[derive(Debug, Clone)]
pub struct Given {
    pub status: u16,
    pub headers: Vec<String>,
    pub body: Vec<u8>,
}

impl Given {
    /// An answer that the real gateway never gave.
    pub fn invented(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }
}

/// Changes a question on its way to the real gateway, or answers it without asking anybody.
type Forth = Arc<dyn Fn(&mut Call) -> Option<Given> + Send + Sync>;

/// Changes an answer on its way back; `None` drops it with the connection.
type Back = Arc<dyn Fn(&Call, Given) -> Option<Given> + Send + Sync>;

struct State {
    forth: Mutex<Forth>,
    back: Mutex<Back>,
    /// Everything that was said, in both directions.
    heard: Mutex<Vec<u8>>,
}

/// A lying gateway on a port of its own. It is honest until it is told what to do.
#[derive(Clone)]
pub struct Evil {
    pub address: SocketAddr,
    state: Arc<State>,
}

impl Evil {
    pub async fn start(gateway: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (forth, back) = honest();
        let state = State { forth: Mutex::new(forth), back: Mutex::new(back), heard: Mutex::default() };
        let state = Arc::new(state);
        let serving = state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = serving.clone();
                tokio::spawn(async move { serve(stream, gateway, &state).await });
            }
        });
        Self { address, state }
    }

    /// Changes, or invents an answer to, what is asked from now on.
    pub fn forth(&self, forth: impl Fn(&mut Call) -> Option<Given> + Send + Sync + 'static) {
        *self.state.forth.lock() = Arc::new(forth);
    }

    /// Changes or drops what is answered from now on.
    pub fn back(&self, back: impl Fn(&Call, Given) -> Option<Given> + Send + Sync + 'static) {
        *self.state.back.lock() = Arc::new(back);
    }

    /// Passes everything on as it is, from now on.
    pub fn honest(&self) {
        (*self.state.forth.lock(), *self.state.back.lock()) = honest();
    }

    /// Everything that was said until now, in both directions.
    pub fn heard(&self) -> Vec<u8> {
        self.state.heard.lock().clone()
    }
}

fn honest() -> (Forth, Back) {
    (Arc::new(|_: &mut Call| None), Arc::new(|_: &Call, given| Some(given)))
}

impl State {
    fn hear(&self, bytes: &[u8]) {
        self.heard.lock().extend_from_slice(bytes);
    }
}

async fn serve(mut client: TcpStream, gateway: SocketAddr, state: &State) -> Option<()> {
    loop {
        let mut asked = ask(&mut client, state).await?;
        if asked.headers.iter().any(|line| line.eq_ignore_ascii_case("upgrade: websocket")) {
            return tunnel(client, gateway, &asked, state).await;
        }
        let forth = state.forth.lock().clone();
        let given = if let Some(invented) = forth(&mut asked) {
            invented
        } else {
            let given = answer(gateway, &asked).await?;
            state.hear(&given.body);
            let back = state.back.lock().clone();
            back(&asked, given)?
        };
        let mut head = vec![format!("HTTP/1.1 {} Said", given.status)];
        if given.status != 204 {
            head.push(format!("content-length: {}", given.body.len()));
        }
        head.extend(given.headers);
        let head = head.join("\r\n");
        state.hear(head.as_bytes());
        client.write_all(&[head.as_bytes(), b"\r\n\r\n", &given.body].concat()).await.ok()?;
    }
}

/// Reads one request; `None` when there is no other one.
async fn ask(client: &mut TcpStream, state: &State) -> Option<Call> {
    let (head, mut body) = read_head(client).await?;
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<String> = lines.map(str::to_owned).collect();
    let length: usize = value(&headers, "content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut rest = vec![0; length - body.len()];
    client.read_exact(&mut rest).await.ok()?;
    body.extend_from_slice(&rest);
    state.hear(head.as_bytes());
    state.hear(&body);
    Some(Call { method, path, headers, body })
}

/// Reads up to the empty line. Returns what is before it, and what has arrived of what follows.
async fn read_head(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let (mut bytes, mut part) = (Vec::new(), [0; 4_096]);
    loop {
        let read = stream.read(&mut part).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&part[..read]);
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            return Some((String::from_utf8_lossy(&bytes[..end]).into_owned(), bytes[end + 4..].to_vec()));
        }
    }
}

fn value<'a>(headers: &'a [String], name: &str) -> Option<&'a str> {
    headers.iter().find_map(|line| {
        let (named, value) = line.split_once(':')?;
        named.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// Asks the real gateway. As HTTP/1.0, so that the body is everything up to the end of the connection.
async fn answer(gateway: SocketAddr, asked: &Call) -> Option<Given> {
    let mut server = TcpStream::connect(gateway).await.ok()?;
    let mut head = vec![format!("{} {} HTTP/1.0", asked.method, asked.path)];
    let is_kept = |line: &&String| !line.to_lowercase().starts_with("content-length");
    head.extend(asked.headers.iter().filter(is_kept).cloned());
    head.push(format!("content-length: {}", asked.body.len()));
    let head = head.join("\r\n");
    server.write_all(&[head.as_bytes(), b"\r\n\r\n", &asked.body].concat()).await.ok()?;
    let (head, mut body) = read_head(&mut server).await?;
    server.read_to_end(&mut body).await.ok()?;
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let kept = |line: &&str| {
        let line = line.to_lowercase();
        !["content-length", "connection", "transfer-encoding"].iter().any(|name| line.starts_with(name))
    };
    Some(Given { status, headers: lines.filter(kept).map(str::to_owned).collect(), body })
}

/// Passes a WebSocket on as it is, and listens: what the client masks is kept unmasked.
async fn tunnel(client: TcpStream, gateway: SocketAddr, asked: &Call, state: &State) -> Option<()> {
    let mut server = TcpStream::connect(gateway).await.ok()?;
    let head = format!("{} {} HTTP/1.1\r\n{}\r\n\r\n", asked.method, asked.path, asked.headers.join("\r\n"));
    server.write_all(head.as_bytes()).await.ok()?;
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let forth = async {
        let (mut frames, mut part) = (Vec::new(), vec![0; 16 << 10]);
        loop {
            let read = from_client.read(&mut part).await.ok().filter(|read| *read > 0)?;
            frames.extend_from_slice(&part[..read]);
            while let Some(content) = unmask(&mut frames) {
                state.hear(&content);
            }
            to_server.write_all(&part[..read]).await.ok()?;
        }
    };
    let back = async {
        let mut part = vec![0; 16 << 10];
        loop {
            let read = from_server.read(&mut part).await.ok().filter(|read| *read > 0)?;
            state.hear(&part[..read]);
            to_client.write_all(&part[..read]).await.ok()?;
        }
    };
    tokio::select! { end = forth => end, end = back => end }
}

/// Takes the first whole frame of a client away and returns its content.
fn unmask(frames: &mut Vec<u8>) -> Option<Vec<u8>> {
    let number = |bytes: &[u8]| bytes.iter().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
    let (start, length) = match frames.get(1)? & 0x7f {
        126 => (4, number(frames.get(2..4)?)),
        127 => (10, number(frames.get(2..10)?)),
        short => (2, usize::from(short)),
    };
    let mask: [u8; 4] = frames.get(start..start + 4)?.try_into().ok()?;
    let content = frames.get(start + 4..start + 4 + length)?;
    let content = content.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    frames.drain(..start + 4 + length);
    Some(content)
}
