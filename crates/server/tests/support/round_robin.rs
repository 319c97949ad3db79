//! What a load balancer does: each connection goes to another node than the one before.

use std::{
    net::{Ipv4Addr, SocketAddr},
    thread,
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    runtime,
};

/// Passes bytes on, for as long as the process runs.
pub struct RoundRobin;

impl RoundRobin {
    /// Returns the address that stands for all of these.
    pub fn start(nodes: Vec<SocketAddr>) -> SocketAddr {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                for node in nodes.iter().cycle() {
                    let (client, _) = listener.accept().await.unwrap();
                    tokio::spawn(pass_on(client, *node));
                }
            });
        });
        address
    }
}

async fn pass_on(mut client: TcpStream, node: SocketAddr) {
    if let Ok(mut there) = TcpStream::connect(node).await {
        drop((client.set_nodelay(true), there.set_nodelay(true)));
        drop(copy_bidirectional(&mut client, &mut there).await);
    }
}
