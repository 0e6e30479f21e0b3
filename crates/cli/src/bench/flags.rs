//! Which flags of `tacit bench` go with which measurement: one that would change nothing is refused.

use crate::args::{Bench, EngineName, Protocol, SecurityName, TransportName, What};
use clap::ArgMatches;
use clap::parser::ValueSource;

/// Flags by clap's name, and the measurements that read them.
const FLAGS: [(&str, &[What]); 32] = [
    ("rows", &[What::Yao, What::Lift, What::Match, What::Engines]),
    ("parties", &[What::Gmw, What::Market]),
    ("ands", &[What::Gmw]),
    ("tree", &[What::Gmw]),
    ("ots", &[What::Ot]),
    ("resources", &[What::Market]),
    ("circuit", &[What::Market]),
    ("delay_ms", &[What::Gmw, What::Market]),
    ("figures", &[What::Market, What::Engines]),
    ("ot", &[What::Lift, What::Gmw, What::Ot, What::Market]),
    ("engine", &[What::Yao, What::Lift, What::Market]),
    ("protocol", &[What::Match]),
    ("overlap", &[What::Match]),
    ("columns", &[What::Match]),
    ("dummies", &[What::Match]),
    ("backend", &[What::Match]),
    ("memory", &[What::Match]),
    ("shards", &[What::Yao, What::Lift]),
    ("security", &[What::Ring4, What::Market]),
    ("hash", &[What::Ring4]),
    ("bits", &[What::Ring4]),
    ("device", &[What::Ring4]),
    ("provider", &[What::Ring4]),
    ("products", &[What::Ring4]),
    ("vector", &[What::Ring4]),
    ("repeat", &[What::Ring4]),
    ("devices", &[What::Ring4]),
    ("all", &[What::Ring4]),
    ("scaling", &[What::Ring4]),
    ("sizes", &[What::Engines]),
    ("round_trips", &[What::Engines]),
    ("limit", &[What::Engines]),
];

/// What is wrong with the flags that were given, if anything.
pub fn refusal(args: &Bench, given: &ArgMatches) -> Option<String> {
    let said = |flag: &str| given.value_source(flag) == Some(ValueSource::CommandLine);
    let name = |flag: &str| format!("--{}", flag.replace('_', "-"));
    let what = word(args.what);
    for (flag, of) in FLAGS {
        if said(flag) && !of.contains(&args.what) {
            let of: Vec<String> = of.iter().map(|what| format!("bench {}", word(*what))).collect();
            return Some(format!("{0} is for {1}; remove {0} from bench {what}", name(flag), of.join(", ")));
        }
    }
    if matches!(args.transport, TransportName::Shm | TransportName::Fabric) && args.what != What::Ring4 {
        let transport = args.transport.word();
        return Some(format!("--transport {transport} is for bench ring4; use tcp or tls for bench {what}"));
    }
    let by_rows = [What::Yao, What::Lift].contains(&args.what);
    if said("ot") && by_rows && args.engine != EngineName::Gmw {
        return Some("--ot goes with --engine gmw, which bench lift has; else remove --ot".to_owned());
    }
    if by_rows && args.engine == EngineName::Clear {
        let unused = ["transport", "k"].into_iter().find(|flag| said(flag));
        return unused.map(|flag| format!("{0} does nothing with --engine clear; remove {0}", name(flag)));
    }
    if args.what == What::Match {
        return of_match(args, &said);
    }
    if args.what == What::Ring4 {
        return of_ring4(args, &said);
    }
    if args.what == What::Market {
        return of_market(args, &said);
    }
    if args.what == What::Engines && said("transport") {
        return Some("rows are entered over TLS, on every engine; remove --transport".to_owned());
    }
    let garbled = by_rows && args.engine == EngineName::Yao;
    if garbled { None } else { of_ots(args, &said) }
}

/// Which flags go with what makes the OTs.
fn of_ots(args: &Bench, said: &dyn Fn(&str) -> bool) -> Option<String> {
    (said("k") && args.ot != "softspoken")
        .then(|| format!("--k goes with --ot softspoken, not with --ot {}; remove --k", args.ot))
}

/// Which flags go with which engine of the marketplace.
fn of_market(args: &Bench, said: &dyn Fn(&str) -> bool) -> Option<String> {
    match args.engine {
        EngineName::Gmw if said("security") => {
            Some("--security goes with --engine ring4; remove --security".to_owned())
        }
        EngineName::Gmw => of_ots(args, said),
        EngineName::Ring4 if args.transport == TransportName::Tcp => {
            Some("ring4 enters rows over private channels only; use --transport tls or memory".to_owned())
        }
        EngineName::Ring4 => {
            let unused = ["ot", "k"].into_iter().find(|flag| said(flag));
            unused.map(|flag| format!("ring4 makes no OTs; remove --{flag}"))
        }
        EngineName::Yao | EngineName::Clear => {
            Some("bench market runs among many parties; use --engine gmw or ring4".to_owned())
        }
    }
}

/// Which flags go with which matching protocol.
fn of_match(args: &Bench, said: &dyn Fn(&str) -> bool) -> Option<String> {
    use Protocol::{CircuitPsi, Collecting, Pid, Ps3i};
    if said("k") {
        return Some("the OTs of bench match are those of studies; remove --k".to_owned());
    }
    let rules = [
        ("columns", &[Ps3i, Collecting, CircuitPsi][..], "ps3i, collecting or circuit-psi"),
        ("backend", &[Ps3i, Collecting], "ps3i or collecting"),
        ("memory", &[Pid], "pid"),
    ];
    rules
        .into_iter()
        .find(|(flag, of, _)| said(flag) && !of.contains(&args.protocol))
        .map(|(flag, _, names)| format!("--{flag} goes with --protocol {names}; remove --{flag}"))
}

/// Which flags go with each other among four parties.
fn of_ring4(args: &Bench, said: &dyn Fn(&str) -> bool) -> Option<String> {
    if said("k") {
        return Some("ring4 makes no OTs; remove --k".to_owned());
    }
    if said("hash") && args.security == SecurityName::SemiHonest {
        return Some(
            "without checks there are no tags; remove --hash, or use --security malicious".to_owned(),
        );
    }
    if said("provider") && args.transport != TransportName::Fabric && !args.all {
        return Some("--provider goes with --transport fabric; remove --provider".to_owned());
    }
    (args.transport == TransportName::Memory).then(|| {
        "the four parties are processes of their own; use --transport tcp, tls, shm or fabric".to_owned()
    })
}

/// A measurement as the command line names it.
fn word(what: What) -> String {
    clap::ValueEnum::to_possible_value(&what).map_or_else(String::new, |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use crate::args::Cli;

    #[test]
    fn a_flag_that_changes_nothing_is_refused() {
        for (line, reason) in [
            (
                "gmw --engine yao",
                "--engine is for bench yao, bench lift, bench market; remove --engine from bench gmw",
            ),
            ("market --engine yao", "use --engine gmw or ring4"),
            ("market --engine ring4 --transport tcp", "use --transport tls or memory"),
            ("market --engine ring4 --ot ferret", "remove --ot"),
            ("market --security malicious", "--security goes with --engine ring4"),
            ("market --ot ferret --k 3", "--k goes with --ot softspoken"),
            ("lift --rows 9 --parties 3", "--parties is for bench gmw, bench market"),
            ("ot --parties 3", "remove --parties from bench ot"),
            ("lift --rows 9 --ot ferret", "--ot goes with --engine gmw"),
            ("match --rows 9 --ot ferret", "--ot is for bench lift, bench gmw, bench ot, bench market"),
            ("match --rows 9 --engine clear", "remove --engine"),
            ("match --rows 9 --shards 2", "--shards is for"),
            ("match --rows 9 --k 2", "remove --k"),
            ("match --rows 9 --columns 3", "--columns goes with"),
            ("match --rows 9 --protocol circuit-psi --backend paillier", "--backend goes with"),
            ("match --rows 9 --protocol ps3i --memory 64M", "--memory goes with --protocol pid"),
            ("yao --rows 9 --delay-ms 1", "--delay-ms is for bench gmw, bench market"),
            ("yao --rows 9 --engine clear --transport tls", "remove --transport"),
            ("gmw --ot ferret --k 4", "--k goes with --ot softspoken"),
            ("gmw --rows 9", "--rows is for"),
            ("ring4 --rows 9", "--rows is for"),
            ("ring4 --k 2", "remove --k"),
            ("ring4 --engine yao", "remove --engine from bench ring4"),
            ("ring4 --security semi-honest --hash keyed", "remove --hash"),
            ("ring4 --transport memory", "use --transport tcp, tls, shm or fabric"),
            ("ring4 --scaling --devices 2", "cannot be used with"),
            ("ring4 --scaling --security malicious", "cannot be used with"),
            ("ring4 --all --bits 64", "cannot be used with"),
            ("ring4 --all --device rtl", "cannot be used with"),
            ("ring4 --transport shm --provider tcp", "--provider goes with --transport fabric"),
            ("gmw --transport shm", "--transport shm is for bench ring4"),
            ("yao --rows 9 --transport fabric", "--transport fabric is for bench ring4"),
            ("market --engine ring4 --transport shm", "--transport shm is for bench ring4"),
            ("ot --provider tcp", "--provider is for bench ring4"),
            ("engines --transport tcp", "remove --transport"),
            ("engines --overlap 1", "--overlap is for bench match"),
            ("lift --rows 9 --sizes 9", "--sizes is for bench engines"),
            ("engines --round-trips never", "write milliseconds"),
            ("gmw --security malicious", "--security is for bench ring4, bench market"),
            ("gmw --bits 64", "--bits is for bench ring4"),
            ("gmw --ands 9 --tree 3", "cannot be used with"),
        ] {
            let words = ["tacit", "bench"].into_iter().chain(line.split(' '));
            let error = Cli::read(words).expect_err(line).to_string();
            assert!(error.contains(reason), "{line}: {error}");
        }
    }

    #[test]
    fn flags_that_count_are_taken() {
        for line in [
            "yao --rows 9 --k 3 --shards 2 --transport tls",
            "yao --rows 9 --engine clear --shards 2",
            "lift --rows 9 --engine gmw --ot softspoken --k 4 --shards 2",
            "lift --rows 9 --engine gmw --ot ferret",
            "match --rows 9 --overlap 1 --protocol pid --dummies --memory 64M",
            "match --rows 9 --protocol ps3i --backend paillier --columns 3",
            "gmw --parties 3 --tree 4 --delay-ms 1 --k 4 --transport memory",
            "ot --ots 9 --ot ferret --transport memory",
            "ring4 --security malicious --hash blake3 --bits 1 --device cpu --products 9M --vector 1k --repeat 1",
            "engines --sizes 100,2k --rows 100 --round-trips 0,0.1 --limit 9 --figures f.html",
            "market --engine ring4 --security semi-honest --resources 9",
            "market --engine gmw --k 3",
            "ring4 --all --hash keyed --devices 2 --provider shm",
            "ring4 --transport shm --device rtl",
            "ring4 --transport fabric --provider shm --device cuda",
            "ring4 --scaling --device rtl --transport tcp --bits 1",
            "market --resources 9 --parties 3 --circuit small --ot softspoken:3",
        ] {
            let words = ["tacit", "bench"].into_iter().chain(line.split(' '));
            assert!(Cli::read(words).is_ok(), "{line}");
        }
    }
}
