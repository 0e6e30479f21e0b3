//! Every change of a sealed object, without a store in between.

use super::*;
use crate::testing::memory;
use crate::{StateKey, sealed_len};
use object_store::memory::InMemory;

fn of(run: u8, party: &str, key: &StateKey) -> SealedStore {
    SealedStore::new(memory(&Arc::new(InMemory::new())), key, &[run; 32], party)
}

#[test]
fn every_byte_and_every_length_is_held() {
    let key = StateKey::fresh();
    let own = of(1, "a", &key);
    for len in [0, 1, 4_095, 4_096, 4_097, 9_000] {
        let text: Vec<u8> = (0..len).map(|i| i as u8).collect();
        let mut sealed = own.seal("x", &text, ChunkSize::Small);
        assert_eq!(sealed.len() as u64, sealed_len(len as u64, ChunkSize::Small));
        assert_eq!(own.unseal("x", &sealed).unwrap(), text);
        for at in 0..sealed.len() {
            sealed[at] ^= 1 << (at % 8);
            let opened = own.unseal("x", &sealed);
            assert!(matches!(opened, Err(StoreError::Damaged { .. })), "byte {at} of {len}");
            sealed[at] ^= 1 << (at % 8);
        }
        for cut in 0..sealed.len() {
            let opened = own.unseal("x", &sealed[..cut]);
            assert!(matches!(opened, Err(StoreError::Damaged { .. })), "{cut} of {len}");
        }
        sealed.push(0);
        assert!(own.unseal("x", &sealed).is_err(), "one byte more than {len}");
    }
}

#[test]
fn every_part_of_the_binding_binds() {
    let key = StateKey::fresh();
    let sealed = of(1, "ab", &key).seal("c/d", b"text", ChunkSize::Large);
    assert_eq!(of(1, "ab", &key).unseal("c/d", &sealed).unwrap(), b"text");
    for (run, party, name) in [
        (2, "ab", "c/d"),
        (1, "a", "c/d"),
        (1, "abc", "/d"),
        (1, "a", "bc/d"),
        (1, "ab", "c/e"),
        (1, "ab", "c/"),
    ] {
        assert!(of(run, party, &key).unseal(name, &sealed).is_err(), "{run} {party} {name}");
    }
    assert!(of(1, "ab", &StateKey::fresh()).unseal("c/d", &sealed).is_err());
}

#[test]
fn one_text_is_sealed_differently_each_time() {
    let key = StateKey::fresh();
    let own = of(1, "a", &key);
    let [one, two] = [0; 2].map(|_| own.seal("x", b"text", ChunkSize::Large));
    assert!(one[10..42] != two[10..42] && one[42..] != two[42..]);
}

/// The bytes of one object under a known key and header: whoever changes the format changes this.
#[test]
fn the_format_is_pinned() {
    let bytes = of(1, "a", &StateKey::known()).key.pinned("run/x", &[8; 32], &[9; 5_000]);
    assert_eq!(bytes.len() as u64, sealed_len(5_000, ChunkSize::Small));
    assert_eq!(&bytes[..10], b"tacitobj\x01\x0c");
    assert_eq!(
        blake3::hash(&bytes).to_hex().as_str(),
        "4c31bf70e0dc7ef00b929107b05dbbbbcfd1c9006685020ac1d2ea152a01ab5d"
    );
}
