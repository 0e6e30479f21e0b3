//! The hash to the group and products against vectors of another implementation, `vectors/curve.py`.

use matching::group::{CurveGroup, Exponent};
use serde_json::Value;

fn bytes(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn element(value: &Value) -> [u8; 32] {
    bytes(value).try_into().unwrap()
}

#[test]
fn hashes_and_products_are_those_of_another_implementation() {
    let vectors: Value = serde_json::from_str(include_str!("vectors/curve.json")).unwrap();
    let (hashes, products) = (vectors["hashes"].as_array().unwrap(), vectors["products"].as_array().unwrap());
    assert!(hashes.len() == 24 && products.len() > 40 && products.iter().any(|p| p["product"].is_null()));
    for group in [CurveGroup::detect(), CurveGroup::one_by_one()] {
        let mut u = vec![[0; 32]; hashes.len()];
        let names = |i: usize, name: &mut Vec<u8>| {
            *name = bytes(&hashes[i]["name"]);
            Ok(())
        };
        group.hash_batch(&names, &mut u, 1).unwrap();
        for (hash, u) in hashes.iter().zip(u) {
            assert_eq!(u, element(&hash["u"]), "{}", hash["name"]);
        }
        for product in products {
            let key = Exponent::from_bytes(element(&product["key"])).unwrap();
            let mut point = [element(&product["u"])];
            match group.mul_batch(&mut point, &key, 1) {
                Ok(()) => assert_eq!(point[0], element(&product["product"]), "{}", product["u"]),
                Err(_) => assert!(product["product"].is_null(), "{}", product["u"]),
            }
        }
    }
}
