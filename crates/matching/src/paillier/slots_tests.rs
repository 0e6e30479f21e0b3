use super::*;
use crate::payload::TableField;
use base::Seed;

fn layouts() -> Vec<PayloadLayout> {
    let of = |fields: &[TableField]| PayloadLayout::new(fields.iter().copied()).unwrap();
    vec![
        of(&[TableField::number(8)]),
        of(&[TableField::bits(9), TableField::number(5), TableField::number(16), TableField::bits(1)]),
        of(&[TableField::number(8); 15]),
        of(&[TableField::number(8); 16]),
        of(&[TableField::bits(128), TableField::number(1)]),
        of(&[TableField::number(16); 40]),
    ]
}

fn rng(seed: u8) -> Rng {
    Seed::from_bytes([seed; 32]).into_rng()
}

/// What the ciphertexts do: lanes added at their width, and the mask.
fn sum(plan: &SlotPlan, lanes: &[Plaintext], mask: &Plaintext) -> Plaintext {
    let mut total = *mask.limbs();
    for (i, lane) in lanes.iter().enumerate() {
        let mut shifted = [0; LIMBS];
        for (j, &limb) in lane.limbs().iter().enumerate() {
            let bit = 64 * j + i * plan.width() as usize;
            if limb != 0 {
                put(&mut shifted, bit as u32, [limb, 0, 0]);
            }
        }
        let mut carry = 0;
        for (place, limb) in total.iter_mut().zip(shifted) {
            let word = u128::from(*place) + u128::from(limb) + carry;
            (*place, carry) = (word as u64, word >> 64);
        }
        assert_eq!(carry, 0);
    }
    Plaintext::from_limbs(total)
}

#[test]
fn shares_of_masked_rows_join_to_the_rows() {
    let mut rng = rng(1);
    for layout in layouts() {
        let (plan, width) = (SlotPlan::new(&layout), layout.row_bytes());
        for count in [1, plan.lanes()] {
            // Random rows, and all ones: the largest numbers under the largest sums.
            for ones in [false, true] {
                let byte = |rng: &mut Rng| if ones { 0xff } else { rng.below(256) as u8 };
                let rows: Vec<u8> = std::iter::repeat_with(|| byte(&mut rng)).take(count * width).collect();
                let [mut mine, mut theirs] = [vec![0; rows.len()], vec![0; rows.len()]];
                for piece in 0..plan.pieces() {
                    let lanes: Vec<_> = rows.chunks(width).map(|row| plan.pack(piece, row)).collect();
                    let mask = plan.mask(piece, &mut rng, &mut mine.chunks_mut(width).collect::<Vec<_>>());
                    let answer = sum(&plan, &lanes, &mask);
                    plan.unpack(piece, &answer, &mut theirs.chunks_mut(width).collect::<Vec<_>>());
                }
                assert_ne!(mine, vec![0; rows.len()]);
                for row in 0..count {
                    for (i, field) in layout.fields().iter().enumerate() {
                        let get = |table: &[u8]| {
                            let mut word = [0; 16];
                            let bytes = &table[row * width..][layout.range(i)];
                            word[..bytes.len()].copy_from_slice(bytes);
                            u128::from_le_bytes(word)
                        };
                        assert_eq!(field.join(get(&mine), get(&theirs)), get(&rows));
                    }
                }
            }
        }
    }
}

#[test]
fn plans_fill_ciphertexts() {
    let plan = |fields: &[TableField]| SlotPlan::new(&PayloadLayout::new(fields.iter().copied()).unwrap());
    // 129 bits a number of 8 bytes: 15 in 2047 bits.
    let one = plan(&[TableField::number(8)]);
    assert_eq!((one.pieces(), one.lanes(), one.width(), one.answers(31)), (1, 15, 129, 3));
    let full = plan(&[TableField::number(8); 15]);
    assert_eq!((full.pieces(), full.lanes()), (1, 1));
    let more = plan(&[TableField::number(8); 16]);
    assert_eq!((more.pieces(), more.lanes(), more.answers(3)), (2, 1, 6));
    // 66 bits a bit: 31 in 2047 bits.
    let bits = plan(&[TableField::bits(8)]);
    assert_eq!((bits.pieces(), bits.lanes(), bits.width()), (1, 3, 528));
    let none = plan(&[]);
    assert_eq!((none.pieces(), none.answers(9)), (0, 0));
}

#[test]
fn masks_are_uniform_in_their_width() {
    let mut rng = rng(2);
    for bits in [65, 72, 128, 192] {
        let draws: Vec<[u64; 3]> = (0..400).map(|_| uniform(&mut rng, bits)).collect();
        let high = |limbs: &[u64; 3], bit: u32| limbs[bit as usize / 64] >> (bit % 64) & 1;
        for bit in [0, 1, 40, 63, 64, bits - 1] {
            let ones = draws.iter().filter(|limbs| high(limbs, bit) == 1).count();
            assert!((140..260).contains(&ones), "bit {bit} of {bits}: {ones}");
        }
        assert!((bits..192).all(|bit| draws.iter().all(|limbs| high(limbs, bit) == 0)));
    }
}
