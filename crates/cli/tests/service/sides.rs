//! The rules of services of one machine, of which each dials those before it.

/// `service.toml` of a side: web, link and run addresses of all are `ports`, in turn; `sets` has its data and
/// its policy.
pub fn rules(side: usize, names: &[&str], keys: &[String], ports: &[String], sets: &str) -> String {
    let all = names.len();
    let run = |at: usize| ports[2 * all + at].rsplit_once(':').expect("a port").1.to_owned();
    let peer = |other: usize| {
        let address = match other < side {
            true => format!("address = \"{}\"", ports[all + other]),
            false => String::new(),
        };
        format!(
            r#"
        [peers.{name}]
        key = "{key}"
        {address}
        run_ports = "{port}-{port}"
        kinds = ["lift"]"#,
            name = names[other],
            key = keys[other],
            port = run(other),
        )
    };
    let peers = (0..all).filter(|other| *other != side).map(peer).collect::<String>();
    format!(
        r#"
        format = "tacit-service/1"
        name = "{name}"
        identity = "own.key"
        store = "service.db"
        ledger = "own.ledger"
        data_root = "data"
        [web]
        listen = "{web}"
        [link]
        listen = "{link}"
        run_ports = "{run}-{run}"
        {peers}
        {sets}
        "#,
        name = names[side],
        web = ports[side],
        link = ports[all + side],
        run = run(side),
    )
}
