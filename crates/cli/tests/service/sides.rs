//! The rules of two services of one machine, of which the second dials the first.

/// `service.toml` of a side: web, link and run addresses of both are `ports`, by two; `sets` has its data and
/// its policy.
pub fn rules(side: usize, names: [&str; 2], keys: &[String; 2], ports: &[String], sets: &str) -> String {
    let port = |at: usize| ports[at].rsplit_once(':').expect("a port").1.to_owned();
    let other = 1 - side;
    let (run, there) = (port(4 + side), port(4 + other));
    let address = if side == 1 { format!("address = \"{}\"", ports[2]) } else { String::new() };
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
        [peers.{peer}]
        key = "{key}"
        {address}
        run_ports = "{there}-{there}"
        kinds = ["lift"]
        {sets}
        "#,
        name = names[side],
        web = ports[side],
        link = ports[2 + side],
        peer = names[other],
        key = keys[other],
    )
}
