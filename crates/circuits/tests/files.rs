//! Circuit files: round trips, conversion, and every way in which a file can be wrong.

mod common;

use base::PartyId;
use circuits::files::{self, NetlistFormat, bristol, gmw, values};
use circuits::standard;
use circuits::{Viewers, Wired};
use common::{lanes, recipe};
use proptest::prelude::*;

fn text(wired: &Wired, format: NetlistFormat) -> String {
    let mut out = Vec::new();
    files::write(wired, format, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn read(text: &str) -> Wired {
    let (wired, _) = files::read(text.as_bytes(), "x").unwrap();
    wired.check().unwrap();
    wired
}

/// What every party learns, bit by bit from the most significant one of its first output: words may be
/// joined.
fn views(wired: &Wired, inputs: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let outputs = wired.evaluate_lanes(inputs);
    let view = |p: usize| {
        let seen = wired.outputs.iter().zip(&outputs).filter(|(o, _)| o.to.has(PartyId(p as u8)));
        seen.flat_map(|(_, bits)| bits.iter().rev().copied()).collect()
    };
    (0..wired.parties).map(view).collect()
}

/// Inputs for a circuit whose words are those of `wired` party by party, cut into other words.
fn recut(wired: &Wired, inputs: &[Vec<u64>], other: &Wired) -> Vec<Vec<u64>> {
    let mut parts: Vec<_> = (0..wired.parties)
        .map(|p| {
            let mine = wired.inputs.iter().zip(inputs).filter(move |(w, _)| w.owner.index() == p);
            mine.flat_map(|(_, bits)| bits.iter().rev().copied()).collect::<Vec<u64>>().into_iter()
        })
        .collect();
    let words = other.inputs.iter().map(|word| {
        let mut bits: Vec<u64> = parts[word.owner.index()].by_ref().take(word.width as usize).collect();
        bits.reverse();
        bits
    });
    words.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn bristol_files_come_back(recipe in recipe(), seed in any::<u64>()) {
        let wired = recipe.build();
        let written = text(&wired, NetlistFormat::Bristol);
        let back = read(&written);
        let inputs = lanes(&wired, seed);
        prop_assert_eq!(wired.evaluate_lanes(&inputs), back.evaluate_lanes(&inputs));
        // Every AND of the circuit is one of the file.
        prop_assert_eq!((back.and_gates(), back.depth()), (wired.and_gates(), wired.depth()));
        // What was read is written as it was.
        let again = read(&text(&back, NetlistFormat::Bristol));
        prop_assert_eq!(text(&back, NetlistFormat::Bristol), text(&again, NetlistFormat::Bristol));
    }

    #[test]
    fn gmw_files_come_back_with_parties_and_viewers(recipe in recipe(), seed in any::<u64>()) {
        let wired = recipe.build();
        let back = read(&text(&wired, NetlistFormat::Gmw));
        let inputs = lanes(&wired, seed);
        prop_assert_eq!(views(&wired, &inputs), views(&back, &recut(&wired, &inputs, &back)));
        prop_assert_eq!((back.and_gates(), back.depth()), (wired.and_gates(), wired.depth()));
        let written = text(&back, NetlistFormat::Gmw);
        prop_assert_eq!(&text(&read(&written), NetlistFormat::Gmw), &written);
    }

    #[test]
    fn conversion_keeps_the_function(recipe in recipe(), seed in any::<u64>()) {
        let wired = read(&text(&recipe.build(), NetlistFormat::Gmw));
        let bristol = read(&text(&wired, NetlistFormat::Bristol));
        let inputs = lanes(&wired, seed);
        prop_assert_eq!(wired.evaluate_lanes(&inputs), bristol.evaluate_lanes(&inputs));
        let owner = |i: usize| wired.inputs[i].owner;
        let dealt = bristol.deal(wired.parties, &owner).unwrap();
        let back = read(&text(&dealt, NetlistFormat::Gmw));
        let again = recut(&dealt, &inputs, &back);
        prop_assert_eq!(views(&dealt, &inputs), views(&back, &again));
    }

    /// Whatever is in a file, reading ends with a circuit or an error.
    #[test]
    fn no_file_makes_the_reader_panic(
        recipe in recipe(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
    ) {
        let wired = recipe.build();
        for format in [NetlistFormat::Bristol, NetlistFormat::Gmw] {
            let mut bytes = text(&wired, format).into_bytes();
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] = byte }
            if let Ok((wired, _)) = files::read(bytes.as_slice(), "x") {
                prop_assert!(wired.check().is_ok());
            }
        }
    }
}

#[test]
fn standard_circuits_survive_both_formats() {
    for circuit in standard::ALL {
        let wired = (circuit.build)();
        let inputs = lanes(&wired, 7);
        for format in [NetlistFormat::Bristol, NetlistFormat::Gmw] {
            let (back, found) = files::read(text(&wired, format).as_bytes(), circuit.name).unwrap();
            assert_eq!(found, format);
            assert_eq!(back.and_gates(), wired.and_gates());
            assert_eq!(
                views(&wired, &inputs),
                views(&back, &recut(&wired, &inputs, &back)),
                "{}",
                circuit.name
            );
        }
    }
}

#[test]
fn bristol_gates_mean_what_they_should() {
    let lines = "8 15\n3 1 2 2\n2 2 1\n\n4 2 0 0 1 2 5 6 MAND\n1 1 0 7 INV\n2 1 7 3 8 AND\n2 1 7 4 9 AND\n\
        1 1 1 10 EQ\n2 1 5 8 12 XOR\n2 1 6 9 13 XOR\n2 1 10 0 14 XOR\n";
    let wired = read(lines);
    assert_eq!((wired.parties, wired.and_gates()), (3, 4));
    for bits in 0..32u32 {
        let bit = |i: u32| bits >> i & 1 == 1;
        let out = wired.evaluate(&[vec![bit(0)], vec![bit(1), bit(2)], vec![bit(3), bit(4)]]);
        let chosen = if bit(0) { [bit(1), bit(2)] } else { [bit(3), bit(4)] };
        assert_eq!(out, [chosen.to_vec(), vec![!bit(0)]]);
    }
    let missing = lines.replace("12 XOR", "11 XOR");
    assert!(bristol::read(missing.as_bytes(), "x").unwrap_err().to_string().contains("driven by no gate"));
}

/// The text of the error of a file, less its name.
fn complaint(text: &str) -> String {
    let error = files::read(text.as_bytes(), "f.txt").expect_err(text).to_string();
    error.strip_prefix("f.txt, ").unwrap_or_else(|| panic!("{error} names no file")).to_owned()
}

#[test]
fn malformed_bristol_files_are_named_by_line() {
    let good = "2 4\n2 1 1\n1 1\n\n1 1 0 2 INV\n2 1 1 2 3 AND\n";
    read(good);
    let gates = |gates: &str| good.replace("1 1 0 2 INV\n2 1 1 2 3 AND\n", gates);
    for (text, expected) in [
        (String::new(), "line 1: this circuit file is empty"),
        ("\n\n".into(), "line 3: this circuit file is empty"),
        ("2\n".into(), "line 1: the number of wires is missing"),
        ("-2 4\n".into(), "line 1: \"-2\" is not the number of gates: a whole number is expected here"),
        ("99999999999 4\n".into(), "line 1: the number of gates: 99999999999 is over the limit of 67108864"),
        ("2 4 1\n".into(), "line 1: \"1\" is one field too many"),
        ("2 4\n".into(), "line 2: the file ends before the line of input values"),
        ("2 4\n2 1 1\n".into(), "line 3: the file ends before the line of output values"),
        (good.replace("2 1 1\n1", "3 1 1\n1"), "line 2: 3 input values are announced, and 2 widths follow"),
        (good.replace("2 1 1\n1", "2 1 0\n1"), "line 2: input value 1 has no wires"),
        (
            good.replace("2 1 1\n1", "2 1 70000\n1"),
            "line 2: the width of an input value: 70000 is over the limit of 65536",
        ),
        (
            good.replace("\n1 1\n", "\n1 3\n"),
            "line 3: 2 input and 3 output wires are more than the 4 wires of line 1",
        ),
        (
            gates("2 1 1 2 3 AND\n1 1 0 2 INV\n"),
            "line 5: wire 2 is read before a gate drives it: gates stand in order of use",
        ),
        (gates("1 1 0 2 INV\n2 1 1 2 4 AND\n"), "line 6: wire 4 is not below 4, the number of wires"),
        (gates("1 1 0 3 INV\n2 1 1 3 3 AND\n"), "line 6: wire 3 is driven twice"),
        (gates("1 1 0 1 INV\n2 1 1 0 3 AND\n"), "line 5: wire 1 is an input; a gate cannot drive it"),
        (
            gates("1 1 0 3 INV\n2 1 1 0 2 NAND\n"),
            "line 6: \"NAND\" is not a gate; XOR, AND, INV, EQW, EQ and MAND are",
        ),
        (
            gates("1 1 0 3 INV\n1 1 1 2 AND\n"),
            "line 6: AND with 1 input and 1 output wires; expected 2 and 1",
        ),
        (gates("1 1 0 3 INV\n2 1 1 2 AND\n"), "line 6: 3 wires are announced, and 2 follow"),
        (gates("1 1 0 3 INV\n0 0 MAND\n"), "line 6: MAND with 0 input and 0 output wires; expected 0 and 1"),
        (gates("1 1 2 3 EQ\n1 1 2 2 EQ\n"), "line 5: a constant: 2 is over the limit of 1"),
        (gates("1 1 0 3 INV\nAND\n"), "line 6: the number of input wires is missing"),
        (gates("1 1 0 3 INV\n"), "line 6: the file ends after 1 gates; line 1 announces 2"),
        (format!("{good}1 1 0 2 INV\n"), "line 7: line 1 announces 2 gates; nothing may follow the last one"),
        (gates("1 1 0 2 INV\n1 1 1 2 INV\n"), "line 6: wire 2 is driven twice"),
        (
            gates("1 1 0 2 INV\n1 1 1 3 EQ\n").replace("2 4", "2 5"),
            "line 7: wire 4 of output value 0 is driven by no gate",
        ),
    ] {
        assert_eq!(complaint(&text), expected);
    }
}

/// `a AND (b XOR c)` for parties 1 and 2; party 1 learns the result and its complement, party 2 nothing.
const GMW: &str = "n 2\nd 8 5 3\ni 1 2 3\ni 2 4 4\no 1 6 7\no 2 0 0\nv 1 2\nv 2 1\n0 0 -1 -1 0\n1 0 -1 -1 1 \
                   7\n\
    2 0 -1 -1 1 6\n3 0 -1 -1 1 5\n4 0 -1 -1 1 5\n5 2 3 4 1 6\n6 1 2 5 1 7\n7 2 6 1 0\n";

#[test]
fn a_gmw_file_means_what_the_paper_says() {
    let text = GMW.replace("d 8 5 3", "d 8 5 2");
    for text in [text.clone(), text.replace("0 0 -1 -1 0\n1 0 -1 -1 1 7\n", "")] {
        let wired = read(&text);
        assert_eq!(wired.inputs.iter().map(|w| (w.owner.0, w.width)).collect::<Vec<_>>(), [(0, 2), (1, 1)]);
        assert_eq!(wired.outputs[0].to, Viewers::Parties(vec![PartyId(0)]));
        for bits in 0..8 {
            // The first input wire is the item's most significant bit.
            let (a, b, c) = (bits & 1 == 1, bits & 2 == 2, bits & 4 == 4);
            let out = a & (b ^ c);
            assert_eq!(wired.evaluate(&[vec![b, a], vec![c]]), [[!out, out]]);
        }
    }
}

#[test]
fn malformed_gmw_files_are_named_by_line() {
    let good = GMW.replace("d 8 5 3", "d 8 5 2");
    read(&good);
    let swap = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        good.replacen(from, to, 1)
    };
    for (text, expected) in [
        (swap("n 2", "n 17"), "line 1: the number of parties: 17 is over the limit of 16"),
        (swap("n 2", "n 0"), "line 1: a circuit has at least one party"),
        (
            swap("n 2\n", ""),
            "line 1: this is neither Bristol Fashion, which begins with two numbers, nor the gmw format",
        ),
        (swap("d 8 5 2", "d 8 9 2"), "line 2: the first wire that is no input is 9; it is between 2 and 8"),
        (swap("d 8 5 2", "d 8 5"), "line 2: the number of XOR gates is missing"),
        (swap("d 8 5 2", "d 8 5 3"), "line 17: the file has 2 XOR gates; line d announces 3"),
        (
            swap("d 8 5 2", "d 9 5 2"),
            "line 17: the file ends before the line of wire 8; line d announces 9 wires",
        ),
        (
            swap("i 1 2 3", "i 3 2 3"),
            "line 3: party 3 is not one of the 2 parties, which are numbered from 1",
        ),
        (swap("i 1 2 3", "i 1 1 3"), "line 3: input wires 1 to 3 are not within 2 to 4"),
        (swap("i 1 2 3", "i 1 2 9"), "line 3: input wires 2 to 9 are not within 2 to 4"),
        (swap("i 1 2 3", "i 1 2 2"), "line 8: input wire 3 belongs to no party"),
        (swap("i 1 2 3", "i 1 2 4"), "line 8: input wire 4 belongs to two parties"),
        (swap("i 2 4 4", "i 2 0 0"), "line 8: input wire 4 belongs to no party"),
        (swap("i 2 4 4", "i 1 4 4"), "line 4: a second line i of party 1"),
        (swap("o 2 0 0\n", ""), "line 7: the line o of party 2 is missing"),
        (swap("o 1 6 7", "o 1 6 8"), "line 5: output wires 6 to 8 are not within 0 to 7"),
        (swap("v 1 2", "v 1 3"), "line 8: party 1 has 2 input wires, which items of 3 bits do not fill"),
        (swap("v 1 2", "x 1 2"), "line 7: \"x\" begins no line of this format; n, d, i, o and v do"),
        (swap("v 1 2", "v 1 2 2"), "line 7: \"2\" is one field too many"),
        (swap("5 2 3 4 1 6\n6 1 2 5 1 7\n", "6 1 2 5 1 7\n5 2 3 4 1 6\n"), "line 14: wire 5 is read before"),
        (swap("5 2 3 4", "5 2 3 9"), "line 14: wire 9 is not below 8, the number of wires"),
        (swap("6 1 2 5", "5 1 2 5"), "line 15: wire 5 is driven twice"),
        (swap("2 0 -1 -1", "2 0 0 -1"), "line 11: an input gate has the left and right wires -1 -1"),
        (swap("2 0 -1 -1", "2 1 3 4"), "line 11: wire 2 is an input wire; its gate is of type 0"),
        (swap("5 2 3 4", "5 0 -1 -1"), "line 14: gate 5 is of type 0, and input wires end before it"),
        (swap("5 2 3 4", "5 3 3 4"), "line 14: gate type 3; 0 (input), 1 (AND) and 2 (XOR) are known"),
        (swap("5 2 3 4 1 6", "5 2 3"), "line 14: the left and the right wire are missing"),
        (swap("5 2 3 4 1 6", "5 2 3 4 2 6"), "line 14: the out-degree is 2, and 1 gates are listed"),
        (swap("5 2 3 4 1 6", "5 2 3 4 1 7"), "line 15: gate 6 reads wire 5, whose line does not list it"),
        (
            swap("7 2 6 1 0", "7 2 6 1 1 6"),
            "line 16: gate 6 is listed as a reader of wire 7 and does not read it",
        ),
        (
            swap("0 0 -1 -1 0", "0 0 -1 -1 1 7"),
            "line 9: gate 7 is listed as a reader of wire 0 and does not read it",
        ),
        (format!("{good}8 2 6 1 0\n"), "line 17: wire 8 is not below 8, the number of wires"),
        (format!("{good}end\n"), "line 17: \"end\" is not a wire: a whole number is expected here"),
    ] {
        let said = complaint(&text);
        assert!(said.starts_with(expected), "{said:?} instead of {expected:?}");
    }
}

#[test]
fn stated_sizes_allocate_nothing() {
    // 2^26 wires and gates announced, none there: this would take gigabytes.
    let wide: String = std::iter::repeat_n(" 65536", 1000).collect();
    let text = format!("67108864 67108864\n1000{wide}\n1 65536\n\n");
    assert!(complaint(&text).contains("the file ends after 0 gates"));
    let text = "n 1\nd 67108864 67108863 1\ni 1 2 67108862\no 1 0 0\nv 1 1\n";
    assert!(complaint(text).contains("the file ends before the line of wire 2"));
}

#[test]
fn a_line_has_a_limit() {
    let text = " ".repeat(base::limits::LINE_BYTES) + "\n";
    assert!(complaint(&text).contains("this line is longer than 4194304 bytes"));
    assert!(
        files::read(&b"1 \xff\n"[..], "x")
            .unwrap_err()
            .to_string()
            .contains("x, line 1: this line is not text")
    );
}

#[test]
fn numbers_are_read_as_people_write_them() {
    let bits = |text: &str, width| {
        values::parse(text, width)
            .map(|b| b.iter().rev().map(|b| char::from(b'0' + u8::from(*b))).collect::<String>())
    };
    assert_eq!(bits("4", 3).unwrap(), "100");
    assert_eq!(bits("4", 5).unwrap(), "00100");
    assert_eq!(bits("0x1_F", 6).unwrap(), "011111");
    assert_eq!(bits("0b101", 3).unwrap(), "101");
    assert_eq!(bits("8", 3).unwrap_err(), "\"8\" needs 4 bits; this word has 3");
    for text in ["", "0x", "-1", "+1", "0xg", "1e3", "0b2", "é"] {
        assert!(bits(text, 64).unwrap_err().contains("is not a number"), "{text}");
    }
    assert!(bits(&"9".repeat(40), 256).unwrap_err().contains("in hexadecimal"));
    assert_eq!(values::format(&values::parse("0x0f3", 10).unwrap()), "0x0f3");
    assert_eq!(values::format(&values::parse("1", 1).unwrap()), "0x1");
}

#[test]
fn an_input_file_has_one_item_per_word() {
    let read = |text: &str| values::read(text.as_bytes(), "in.txt", &[3, 3]).map_err(|e| e.to_string());
    let item = |v: u8| (0..3).map(|i| v >> i & 1 == 1).collect::<Vec<bool>>();
    assert_eq!(read("4 1\n").unwrap(), [item(4), item(1)]);
    assert_eq!(read("4\n\n0x1").unwrap(), [item(4), item(1)]);
    for (text, expected) in [
        ("4\n", "in.txt, line 2: the file ends after 1 items; this party enters 2"),
        ("4 1\n2", "in.txt, line 2: this party enters 2 items; here is one more"),
        ("4 8", "in.txt, line 1: item 1: \"8\" needs 4 bits; this word has 3"),
        ("4\nx", "in.txt, line 2: item 1: \"x\" is not a number: decimal, 0x... or 0b... is expected"),
    ] {
        assert_eq!(read(text).unwrap_err(), expected);
    }
    assert!(gmw::read(&b"x"[..], "y").is_err());
}

#[test]
fn whatever_changes_a_circuit_changes_its_hash() {
    let text = |owner: &str, viewer: &str, gate: &str| {
        format!(
            "n 2\nd 5 4 {}\ni 1 2 {owner}\no 1 4 4\no 2 4 {viewer}\nv 1 1\nv 2 1\n2 0 -1 -1 1 4\n3 0 -1 -1 1 \
             4\n\
             4 {gate} 2 3 0\n",
            u8::from(gate == "2")
        )
    };
    let two = |viewer: &str, gate: &str| text("2\ni 2 3 3", viewer, gate);
    let one = text("3\ni 2 0 0", "4", "1");
    let circuits = [two("4", "1"), two("0", "1"), two("4", "2"), one.clone(), one.replace("v 1 1", "v 1 2")];
    let hashes: Vec<_> = circuits.iter().map(|text| read(text).hash()).collect();
    for (i, (text, hash)) in circuits.iter().zip(&hashes).enumerate() {
        assert_eq!(read(text).hash(), *hash);
        assert!(!hashes[..i].contains(hash), "circuit {i}");
    }
    let wider = read(&circuits[0]).deal(3, &|i| PartyId(i as u8)).unwrap();
    assert!(!hashes.contains(&wider.hash()), "a third party");
}

/// White space beyond ASCII makes no field, so a line of it must not pass for one: found by fuzzing.
#[test]
fn a_line_of_other_white_space_is_refused() {
    for space in ["\u{b}", "\u{2003}", "\u{85} \u{b}"] {
        for before in ["1 3\n2 1 1\n1 1\n", "n 2\n"] {
            let error = files::read(format!("{before}{space}\n").as_bytes(), "c").unwrap_err().to_string();
            assert!(error.starts_with("c, line "), "{error}");
        }
    }
}
