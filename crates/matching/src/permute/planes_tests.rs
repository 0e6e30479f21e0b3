use super::*;
use crate::payload::TableField;
use base::{Rng, Seed};

fn rng() -> Rng {
    Seed::from_bytes([1; 32]).into_rng()
}

fn layouts() -> Vec<PayloadLayout> {
    let number = TableField::number;
    let all = (1..=16).flat_map(|bytes| [number(bytes), TableField::bits(8 * bytes)]);
    let sets = [
        vec![],
        vec![TableField::bits(1)],
        vec![number(16)],
        vec![number(8), number(8), TableField::bits(64)],
        vec![number(5), number(5), number(5)],
        vec![TableField::bits(9), number(4), TableField::bits(128), number(3), number(7)],
        all.collect(),
    ];
    sets.into_iter().map(|fields| PayloadLayout::new(fields).unwrap()).collect()
}

fn random(layout: &PayloadLayout, rows: u64, rng: &mut Rng) -> PayloadTable {
    let mut table = PayloadTable::zeros(layout.clone(), rows).unwrap();
    table.bytes_mut().iter_mut().for_each(|byte| [*byte] = rng.bytes());
    table
}

#[test]
fn tables_go_in_and_come_out_and_nothing_is_wider_than_a_row() {
    let mut rng = rng();
    for layout in layouts() {
        let table = random(&layout, 9, &mut rng);
        let rows = PlaneRows::of(&table).unwrap();
        assert_eq!(rows.row_bytes(), layout.row_bytes());
        assert_eq!(rows.table(9).unwrap().bytes(), table.bytes());
        assert_eq!(rows.table(4).unwrap().bytes(), &table.bytes()[..4 * layout.row_bytes()]);
        let longer = rows.resized(3).unwrap().resized(5).unwrap().table(5).unwrap();
        assert_eq!(longer.bytes()[..3 * layout.row_bytes()], table.bytes()[..3 * layout.row_bytes()]);
        assert!(longer.bytes()[3 * layout.row_bytes()..].iter().all(|b| *b == 0));
    }
}

#[test]
fn planes_add_field_by_field() {
    let mut rng = rng();
    for layout in layouts() {
        let [a, b] = [0, 1].map(|_| random(&layout, 50, &mut rng));
        let [ra, rb] = [&a, &b].map(|table| PlaneRows::of(table).unwrap());
        let [mut sum, mut difference] = [0, 1].map(|_| PlaneRows::zeros(&layout, 50).unwrap());
        for (p, plane) in ra.packing.planes.iter().enumerate() {
            for i in 0..50 {
                let (x, y) = (ra.planes[p][i], rb.planes[p][i]);
                with_arithmetic!(plane.adding, a => {
                    sum.planes[p][i] = a.add(x, y);
                    difference.planes[p][i] = a.sub(x, y);
                });
            }
        }
        let [sum, difference] = [sum, difference].map(|rows| rows.table(50).unwrap());
        for i in 0..50 {
            for (f, field) in layout.fields().iter().enumerate() {
                assert_eq!(sum.get(i, f), field.join(a.get(i, f), b.get(i, f)));
                assert_eq!(field.join(difference.get(i, f), b.get(i, f)), a.get(i, f));
            }
        }
    }
}

#[test]
fn words_are_sent_without_what_is_not_used() {
    for used in 1..=16 {
        for count in [0, 1, 2, 17] {
            let words: Vec<PlaneWord> =
                (0..count).map(|i: u64| [i.wrapping_mul(0x9e37_79b9_7f4a_7c15), !i << 3]).collect();
            let mut message = vec![7];
            write_words(&words, used, &mut message);
            assert_eq!((message.len(), message[0]), (1 + count as usize * used, 7));
            let mut back = vec![[9; 2]; count as usize];
            read_words(&message[1..], used, &mut back);
            for (back, word) in back.iter().zip(&words) {
                let mask = u128::MAX >> (128 - 8 * used);
                assert_eq!(number(back), number(word) & mask);
            }
        }
    }
}

#[test]
fn the_plane_of_a_field_is_the_cheapest_that_serves() {
    let adding = |fields: &[TableField]| {
        let packing = PlanePacking::new(&PayloadLayout::new(fields.iter().copied()).unwrap());
        packing.planes.iter().map(|plane| (plane.adding, plane.used)).collect::<Vec<_>>()
    };
    let number = TableField::number;
    assert_eq!(
        adding(&[TableField::bits(128), TableField::bits(3)]),
        [(PlaneAddition::Bits, 16), (PlaneAddition::Bits, 1)]
    );
    assert_eq!(adding(&[number(8), number(8)]), [(PlaneAddition::Numbers, 16)]);
    assert_eq!(adding(&[number(8)]), [(PlaneAddition::Numbers, 8)]);
    assert_eq!(adding(&[number(4), number(8)]), [(PlaneAddition::Halves([1 << 63, 1 << 31]), 12)]);
    assert_eq!(adding(&[number(6), number(6)]), [(PlaneAddition::Whole(1 << 47 | 1 << 95), 12)]);
    assert_eq!(adding(&[number(15), TableField::bits(9)])[1], (PlaneAddition::Bits, 1));
}
