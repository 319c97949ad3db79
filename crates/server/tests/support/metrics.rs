//! A gateway with metrics, and a scraper of them.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use tokio::time::{Instant, sleep};

use super::{
    client::{Answer, Client, exchange},
    polling::until,
    process::{Gateway, On},
};

/// How long a figure may take to be as it should: what is pending is counted less often where a count takes long.
pub const PATIENCE: Duration = Duration::from_mins(3);

const METRICS: &str = "[metrics]\nlisten = \"127.0.0.1:0\"\n";

/// A gateway with a listener for scrapers.
pub struct Watched {
    pub gateway: Gateway,
    pub scrapers: SocketAddr,
}

impl Watched {
    pub async fn start(on: On, settings: &str) -> Self {
        let gateway = Gateway::start_with(on, &format!("{settings}{METRICS}"));
        gateway.wait_for_log("scrapers").await;
        let scrapers = listeners(&gateway)[0];
        Self { gateway, scrapers }
    }

    /// The listeners of so many nodes, once all of them have started.
    pub async fn nodes(&self, count: usize) -> Vec<SocketAddr> {
        let have_started = || async { listeners(&self.gateway).len() == count };
        until("every node listens for scrapers", 30, have_started).await;
        listeners(&self.gateway)
    }

    /// After the node was started again, which listens on another port then.
    pub async fn started_again(&mut self) {
        self.scrapers = *self.nodes(2).await.last().unwrap();
    }

    pub fn client(&self, role: &str) -> Client {
        Client::new(self.gateway.address, &self.gateway.key("acme", role, None))
    }

    pub async fn scrape(&self) -> String {
        let answer = get(self.scrapers, "/metrics").await.unwrap().expect(200);
        assert!(answer.header("content-type").starts_with("application/openmetrics-text"), "{answer:?}");
        String::from_utf8(answer.bytes.to_vec()).unwrap()
    }

    /// Scrapes until the samples have these values: what is sent is counted a moment later.
    pub async fn expect(&self, wanted: &[(&str, f64)]) -> String {
        let started = Instant::now();
        loop {
            let text = self.scrape().await;
            if wanted.iter().all(|(name, value)| sample(&text, name) == Some(*value)) {
                return text;
            }
            let found: Vec<_> = wanted.iter().map(|(name, _)| (*name, sample(&text, name))).collect();
            let is_in_time = started.elapsed() < PATIENCE;
            assert!(is_in_time, "wanted {wanted:?}, found {found:?} in\n{text}");
            sleep(Duration::from_millis(50)).await;
        }
    }
}

fn listeners(gateway: &Gateway) -> Vec<SocketAddr> {
    let log = gateway.log.lock().clone();
    let lines = log.lines().filter(|line| line.contains("scrapers"));
    let lines = lines.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines.map(|line| line["address"].as_str().unwrap().parse().unwrap()).collect()
}

pub async fn get(address: SocketAddr, path: &str) -> Result<Answer, String> {
    let request = Request::get(path).header("host", "gateway").body(Full::new(Bytes::new())).unwrap();
    exchange(address, request).await
}

/// The value of one sample, by its name with labels.
pub fn sample(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')))?;
    line.rsplit(' ').next()?.parse().ok()
}
