//! The hosts of a connection string, each on its own: the driver limits how long it waits for a connection, but not how long
//! for an answer on it, and would never get to the next host after one that is frozen.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio_postgres::{
    Config,
    config::{Host, LoadBalanceHosts},
};

/// How long a host has to accept a connection and to answer the first questions on it.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(crate) struct Hosts {
    each: Vec<Config>,
    /// Whether a name that was read could be a part of a password.
    is_doubtful: bool,
    /// The one that was reached last, which is asked first.
    preferred: AtomicUsize,
}

impl Hosts {
    pub(crate) fn new(config: &Config) -> Self {
        let count = config.get_hosts().len().max(config.get_hostaddrs().len());
        // The driver shuffles them.
        let is_shuffled = config.get_load_balance_hosts() == LoadBalanceHosts::Random;
        let each = match count {
            0 | 1 => vec![config.clone()],
            _ if is_shuffled => vec![config.clone()],
            count => (0..count).map(|index| only(config, index)).collect(),
        };
        let has_at = |host: &Host| matches!(host, Host::Tcp(name) if name.contains('@'));
        let is_doubtful = config.get_hosts().iter().any(has_at)
            || config.get_dbname().is_some_and(|name| name.contains('@'));
        Self { each, is_doubtful, preferred: AtomicUsize::new(0) }
    }

    /// How long it takes at most to find out that no host can be used.
    pub(crate) fn max_wait(&self) -> Duration {
        let count = u32::try_from(self.each.len()).unwrap_or(u32::MAX);
        MAX_WAIT.saturating_mul(count)
    }

    /// All of them, with their numbers, in the order in which to ask them.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (usize, &Config)> {
        let first = self.preferred.load(Ordering::Relaxed);
        (0..self.each.len())
            .map(move |step| (first + step) % self.each.len())
            .map(|number| (number, &self.each[number]))
    }

    /// Names a host, or several that the driver chooses from, for a message. Where an `@` is left in the connection string, a
    /// password with a special character was probably misread: then only the position is said.
    pub(crate) fn name(&self, number: usize) -> String {
        let config = &self.each[number];
        let (hosts, addresses, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
        if self.is_doubtful {
            return format!("host {}", number + 1);
        }
        let name = |index: usize| {
            let name = match (addresses.get(index), hosts.get(index)) {
                (Some(address), _) => address.to_string(),
                (None, Some(Host::Tcp(name))) => name.clone(),
                (None, Some(Host::Unix(folder))) => folder.display().to_string(),
                (None, None) => String::new(),
            };
            let port = ports.get(index).or(ports.first()).copied().unwrap_or(5432);
            format!("{name}:{port}")
        };
        let names: Vec<String> = (0..hosts.len().max(addresses.len())).map(name).collect();
        names.join(", ")
    }

    /// This one can be used, so it is the first from now on.
    pub(crate) fn prefer(&self, number: usize) {
        self.preferred.store(number, Ordering::Relaxed);
    }
}

/// The same configuration with one of its hosts only.
fn only(config: &Config, index: usize) -> Config {
    let mut one = Config::new();
    match config.get_hosts().get(index) {
        Some(Host::Tcp(name)) => drop(one.host(name)),
        Some(Host::Unix(folder)) => drop(one.host_path(folder)),
        None => {}
    }
    config.get_hostaddrs().get(index).map(|address| one.hostaddr(*address));
    let ports = config.get_ports();
    ports.get(index).or(ports.first()).map(|port| one.port(*port));
    config.get_user().map(|user| one.user(user));
    config.get_password().map(|password| one.password(password));
    config.get_dbname().map(|name| one.dbname(name));
    config.get_options().map(|options| one.options(options));
    config.get_application_name().map(|name| one.application_name(name));
    config.get_connect_timeout().map(|timeout| one.connect_timeout(*timeout));
    config.get_tcp_user_timeout().map(|timeout| one.tcp_user_timeout(*timeout));
    config.get_keepalives_interval().map(|interval| one.keepalives_interval(interval));
    config.get_keepalives_retries().map(|retries| one.keepalives_retries(retries));
    one.keepalives(config.get_keepalives()).keepalives_idle(config.get_keepalives_idle());
    one.ssl_mode(config.get_ssl_mode()).ssl_negotiation(config.get_ssl_negotiation());
    one.channel_binding(config.get_channel_binding());
    one.target_session_attrs(config.get_target_session_attrs());
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_keeps_everything_else() {
        let text = "host=db-1,db-2 hostaddr=127.0.0.1,127.0.0.2 port=1,2 user=u password=p dbname=d options=o application_name=a \
                    sslmode=require connect_timeout=7 tcp_user_timeout=8 keepalives=0 keepalives_idle=9 keepalives_interval=10 \
                    keepalives_retries=11 target_session_attrs=read-write channel_binding=require sslnegotiation=direct";
        let hosts = Hosts::new(&text.parse().unwrap());
        let singles = ["db-1 127.0.0.1 1", "db-2 127.0.0.2 2"].map(|single| {
            let [host, address, port] = single.split(' ').collect::<Vec<_>>()[..] else { unreachable!() };
            let text = text.replace("db-1,db-2", host).replace("127.0.0.1,127.0.0.2", address);
            text.replace("port=1,2", &format!("port={port}")).parse::<Config>().unwrap()
        });
        assert_eq!(hosts.each, singles);
        assert_eq!(hosts.max_wait(), MAX_WAIT * 2);
    }

    #[test]
    fn a_host_is_named_unless_its_name_could_be_of_a_password() {
        let names = |text: &str| {
            let hosts = Hosts::new(&text.parse().unwrap());
            (0..hosts.each.len()).map(|number| hosts.name(number)).collect::<Vec<_>>()
        };
        assert_eq!(
            names("postgres://c:hunter2@db-1:5433,db-2,[::1]:7/c"),
            ["db-1:5433", "db-2:5432", "::1:7"]
        );
        assert_eq!(
            names("host=db-1,/run/postgresql hostaddr=127.0.0.1 port=7 password=hunter2"),
            ["127.0.0.1:7", "/run/postgresql:7"]
        );
        let all = "host=db-1,db-2 port=7 load_balance_hosts=random password=hunter2";
        assert_eq!(names(all), ["db-1:7, db-2:7"]);
        for misread in
            ["postgres://c:hun@ter2@db/c", "postgres://c:hun@ter,2@db/c", "postgres://c:hun@ter/2@db/c"]
        {
            assert!(names(misread).iter().all(|name| name.starts_with("host ")), "{misread}");
        }
    }

    #[test]
    fn one_port_is_for_all_hosts() {
        let hosts = Hosts::new(&"host=db-1,/run/postgresql port=7".parse().unwrap());
        let singles = ["host=db-1 port=7", "host=/run/postgresql port=7"].map(|text| text.parse().unwrap());
        assert_eq!(hosts.each, singles);
    }
}
