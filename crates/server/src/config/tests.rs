use super::*;

#[test]
fn the_printed_default_is_the_default() {
    assert_eq!(toml::from_str::<Config>(DEFAULT).unwrap(), Config::default());
    // Every line that is commented out is a setting with its default value.
    let uncommented: String = DEFAULT
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(setting) if !setting.starts_with(' ') => setting,
            _ => line,
        })
        .filter(|line| {
            let without_default = [
                "url",
                "listen = \"127.0.0.1:9464\"",
                "listen = \"0.0.0.0:8788\"",
                "listen = \"0.0.0.0:443\"",
                "certificate",
                "key =",
                "redirect_listen",
                "directory",
                "names",
                "contact",
                "challenge",
                "eab",
                "ca =",
                "[tls.acme]",
                "[tls.clients]",
                "required",
                "tenants",
                "public_url",
                "proxy =",
                "endpoint",
                "root_certificates",
                "credentials",
                "password_file",
                "client_certificate",
                "client_key",
            ];
            !without_default.iter().any(|name| line.starts_with(name))
        })
        .collect::<Vec<_>>()
        .join("\n");
    assert_eq!(toml::from_str::<Config>(&uncommented).unwrap(), Config::default());
}

#[test]
fn a_typo_is_named_with_its_line() {
    let error = toml::from_str::<Config>("listen = \"127.0.0.1:1\"\nlog = { levle = \"info\" }").unwrap_err();
    let text = error.to_string();
    assert!(text.contains("line 2") && text.contains("levle") && text.contains("level"), "{text}");
}

#[test]
fn plain_http_on_a_network_is_refused_and_tls_is_named() {
    for listen in ["0.0.0.0:8787", "192.0.2.1:80", "[::]:8787"] {
        let config = Config { listen: listen.parse().unwrap(), ..Config::default() };
        assert!(config.check().unwrap_err().to_string().contains("TLS"), "{listen}");
    }
    for listen in ["127.0.0.1:8787", "127.1.2.3:80", "[::1]:8787"] {
        Config { listen: listen.parse().unwrap(), ..Config::default() }.check().unwrap();
    }
}

#[test]
fn links_lead_to_tls_or_to_this_machine() {
    let with = |url: &str| Config { public_url: Some(url.to_owned()), ..Config::default() };
    for url in [
        "http://gateway.example.org",
        "http://192.0.2.1",
        "gateway.example.org",
        "ftp://x",
        "https://",
        "",
        "https://x/?a",
        "https://x/#a",
        "https://user@x",
        "https://x y",
    ] {
        assert!(with(url).check().unwrap_err().to_string().contains("public_url"), "{url}");
    }
    for url in
        ["https://gateway.example.org", "https://x:8443/gateway/", "http://localhost:1", "http://[::1]:1"]
    {
        with(url).check().unwrap();
    }
    assert_eq!(with("https://x/gateway/").public_url(), "https://x/gateway");
    assert_eq!(Config::default().public_url(), "http://127.0.0.1:8787");
}

#[test]
fn origins_are_written_as_browsers_write_them() {
    let with =
        |origin: &str| Config { allowed_origins: vec![origin.to_owned()], ..Config::default() }.check();
    for origin in ["https://review.example.org", "https://x:8443", "http://localhost:5173"] {
        with(origin).unwrap();
    }
    for origin in [
        "*",
        "null",
        "",
        "review.example.org",
        "https://review.example.org/",
        "https://Review.example.org",
        "https://x:443",
        "http://x:80",
        "https://user@x",
        "ftp://x",
    ] {
        assert!(with(origin).unwrap_err().to_string().contains("allowed_origins"), "{origin}");
    }
}

#[test]
fn metrics_have_an_address_of_their_own_and_traces_a_collector() {
    let with = |text: &str| toml::from_str::<Config>(text).unwrap().check();
    with("[metrics]\nlisten = \"192.0.2.1:9464\"").unwrap();
    assert!(with("[metrics]\nlisten = \"127.0.0.1:8787\"").is_err(), "that is where clients connect");
    for wrong in ["", "localhost:4318", "ftp://x/v1/traces", "http://user:password@x/v1/traces"] {
        let refused = with(&format!("[traces]\nendpoint = \"{wrong}\"")).unwrap_err();
        assert!(refused.to_string().contains("traces.endpoint"), "{wrong}");
    }
    let right = with("[traces]\nendpoint = \"http://127.0.0.1:4318/v1/traces\"\none_in = 100");
    assert_eq!(right.is_ok(), cfg!(feature = "otel"));
}

#[test]
fn shards_that_can_not_work_are_refused_with_what_to_do() {
    let with = |text: &str| toml::from_str::<Config>(text).unwrap().check();
    let shard = |name: &str, url: &str| format!("[[shard]]\nname = \"{name}\"\nurl = \"{url}\"\n");
    let postgres = "[store]\nkind = \"postgres\"\n";
    let two = shard("one", "host=x") + &shard("two", "host=y");
    with(&format!("{postgres}{two}")).unwrap();
    for (text, says) in [
        (two.clone(), "set store.kind"),
        (format!("{postgres}url = \"host=z\"\n{two}"), "move store.url"),
        (format!("{postgres}password_file = \"/x\"\n{two}"), "move store.url"),
        (format!("{postgres}{}", shard("one", "host=x")), "2 to 1000 shards"),
        (format!("{postgres}{two}{}", shard("one", "host=z")), "a name of its own"),
        (format!("{postgres}{two}{}", shard("Three", "host=z")), "lower-case"),
        (format!("{postgres}{two}{}", shard("", "host=z")), "lower-case"),
        (format!("{postgres}{two}{}", shard("three", "host=x")), "a database of its own"),
    ] {
        let refused = with(&text).unwrap_err().to_string();
        assert!(refused.contains(says), "{text}: {refused}");
    }
    assert!(
        toml::from_str::<Config>(&format!("{postgres}[[shard]]\nname = \"one\"")).is_err(),
        "without an url"
    );
}

#[test]
fn a_store_that_is_half_described_is_refused() {
    let with = |text: &str| toml::from_str::<Config>(text).unwrap().check();
    assert!(with("[store]\nkind = \"postgres\"").unwrap_err().to_string().contains("store.url"));
    assert!(with("[store]\nurl = \"host=x\"").unwrap_err().to_string().contains("postgres"));
    let missing = with("[store]\nkind = \"postgres\"\nurl = \"host=x\"\nroot_certificates = \"/nowhere\"");
    assert!(missing.unwrap_err().to_string().contains("/nowhere"));
    assert!(with("[retention]\ntombstone_days = 3").is_err());
    assert!(with("[store]\nconnections = 3").unwrap_err().to_string().contains("at least 4"));
    assert!(with("[store]\nconnections = 4").is_ok());
}

#[test]
fn the_examples_in_deploy_have_settings_that_there_are() {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let read = |name: &str| std::fs::read_to_string(deploy.join(name)).unwrap();
    let manifest = read("kubernetes/config.yaml");
    let (_, in_map) = manifest.split_once("gateway.toml: |\n").unwrap();
    for text in [read("gateway.toml"), read("cluster/gateway.toml"), in_map.to_owned()] {
        let config: Config = toml::from_str(&text).unwrap();
        assert!(config.health.listen.is_some() && config.public_url.is_some(), "{text}");
    }
}
