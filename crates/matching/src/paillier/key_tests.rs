use super::*;
use base::Seed;

// A key, a plaintext and its ciphertext, made with another implementation of big numbers.
const P: &str = "\
    cfe0e58d17de75a36bff2d1fd1400defd9f7f90dd2b2fd528cd7228a043c71c10428cb8412ed4d0d85d22adc03258633\
    7c470a4462a55d08b0018f3db335d02e2c3929aa0ab32ee4789ee7d96b13f9c6e93eb60ad62310add98689a62a5eccb1\
    4962aded681f0a038b6c51a6c860375dd140dff31ef35cd9419bc199c6acf7c5";
const Q: &str = "\
    ee30f90906ce3cafc6217703a1af7aa35e6626b9d41777786c19f7609e9e9836cc8498cc33a21b62f21f41718ed4322c\
    d472539b0cd72c101a439b7da20ce57eb1d3c4e7cc23574ad399bd6bcfb0a2cf4d3bb6c62fe7346560c993af0d68be12\
    cebce381ec7a732f3fe1c166cb3f2ed1477be617fa5bceab2d00b92136cc843b";
const M: &str = "\
    7b207eacec8e716af0d46c95cccbb3b56cc533ce56670c3c0ae79ebfe25e0b3915bc9dbf78abae5b2ff704a3b1b4f6a4\
    ca9bfdd53809004291890e430791d7e88c441fd0b611855a7b9c340f4bc85aa562947e9f0e161462be014803aee52d58\
    b8df7c1d0de58cccfb5720f6fa9bb93831890e019870949d212f51ff5833ef77910814db233019b1ded8689a6400463c\
    f10d9147caba7b2f842a03071f96d44fb0866648fa16f98c53b243c2a892ec86513cee45aa86e141ffb320691b887489\
    c68514d1263e5e093cde4c8dbf8c5847957f3a36cba439c98ec1fe014b56b697cab1c1da4c6bfaac826da8fe88c35708\
    22088b999a08bde14e5624d4cfe4c846";
const C: &str = "\
    080624282f264b533de9bed1815a04b37c2202caf4603706425bc4bc67f9a7fc6e3a5720f0ef607aa30e34cd751b0334\
    99fd4b272561074ff12d68bb2f42fddcf2a88105f95dd7d0be3ec2c3bcfd1df5b37db7822fc759cad63bef03c66dcd1a\
    a80b188db64b090efe1b834c53f24c70944ef37a20d5b7b3e4a11989ba0c7482c0e04724f3e2d78a18dc445092a7fcfc\
    f2992e439b2c1220e27b3f27b8485d2f6d9fb29e023a7b0224dcdb6b3e82def3f5919ba1a77e04296dafaef758b92168\
    11047a184906da67af29b6dc2fb37dcc0ce949ffe1664a8286288fb70c1e0b940557f61e26fbc02da8b8bd6c2e649c37\
    3025473a79c0cd33e96474a783f3d4b44d8ffd93dbdedaecc9d9c96b8accdc3227b02825150d47ea2cd0f0b26594c7da\
    dfda05b1f077b01f7cfabbfb4ec6f0a14b011ed3ba1acda2896e6849beff6433b13737612ba9a87f38f92a5bd88793f1\
    2cad188c552fe2ddba46f9287e0fff2b0eb27f17e4aa4636e1a11787637b2ea9a6fe464f32b942bbb1e323eb3ebeea1e\
    70314a5505860856b2486adf0491b0068dcbff71bc78948ed72e6396d41b90f782cb2b4e17ecf1adfddbb4e5f6ecc267\
    9016a5a680f5895c06b388cce8551eb4e9d864c244b3bc4644752c4ff75b98ac505a76f1b0be70b3af2b43d465f36e38\
    931060fbebee30185e7ffa15fb3acadb9d32ac325e3586efac1aa72ce90d94a3";

fn rng(seed: u8) -> Rng {
    Seed::from_bytes([seed; 32]).into_rng()
}

fn given() -> SecretKey {
    let prime = |hex| Odd::new(U1024::from_be_hex(hex)).unwrap();
    SecretKey::from_primes(prime(P), prime(Q))
}

fn plain(low: u64, high: u64) -> Plaintext {
    let mut limbs = [0; LIMBS];
    (limbs[0], limbs[LIMBS - 1]) = (low, high);
    Plaintext::from_limbs(limbs)
}

#[test]
fn known_answers() {
    let key = given();
    let read = key.public().read(&Ciphertext(U4096::from_be_hex(C)).to_bytes()).ok().unwrap();
    assert!(key.decrypt(&read[0]).0 == U2048::from_be_hex(M));
    // The same plaintext with the randomiser 1 is a number that anyone computes.
    let m = Plaintext(U2048::from_be_hex(M));
    let sealed = key.encrypt(&m, Randomiser(U4096::ONE));
    let product: U4096 = m.0.concatenating_mul(&*key.public().n);
    assert!(sealed.0 == product.wrapping_add(&U4096::ONE));
}

#[test]
fn a_fresh_key_decrypts_what_it_encrypts() {
    let mut rng = rng(1);
    let key = SecretKey::generate(&mut rng);
    let public = PublicKey::from_bytes(&key.public().to_bytes()).ok().unwrap();
    for (low, high) in [(0, 0), (1, 0), (u64::MAX, u64::MAX >> 1)] {
        let own = key.encrypt(&plain(low, high), key.randomiser(&mut rng));
        let theirs = public.encrypt(&plain(low, high), public.randomiser(&mut rng));
        for sealed in [own, theirs] {
            assert!(*key.decrypt(&sealed).limbs() == *plain(low, high).limbs());
        }
    }
}

#[test]
fn randomisers_are_residues_of_the_right_order() {
    let (key, mut rng) = (given(), rng(2));
    let order: U2048 = key.factors[0].order.concatenating_mul(&key.factors[1].order);
    let [own, again, theirs] =
        [key.randomiser(&mut rng), key.randomiser(&mut rng), key.public().randomiser(&mut rng)];
    assert!(own.0 != again.0 && own.0 != theirs.0);
    for randomiser in [own, again, theirs] {
        // n-th residues are those whose power phi(n) is 1, and those that decrypt to zero.
        let power = ModSquare::new(&randomiser.0, &key.public().square).pow(&order);
        assert!(power.retrieve() == U4096::ONE);
        assert!(key.decrypt(&Ciphertext(randomiser.0)).0 == U2048::ZERO);
    }
}

#[test]
fn an_answer_is_the_sum_of_its_lanes_and_the_mask() {
    let (key, mut rng) = (given(), rng(3));
    let lanes = [5, 7, 11].map(|m| key.encrypt(&plain(m, 0), key.randomiser(&mut rng)));
    let answer = |mask| key.public().answer(lanes.iter(), 12, &plain(mask, 0), Randomiser(U4096::ONE));
    let sum = key.decrypt(&answer(1 << 40));
    assert_eq!(sum.limbs()[0], 5 + (7 << 12) + (11 << 24) + (1 << 40));
    let none = key.public().answer([].iter(), 12, &plain(9, 0), key.randomiser(&mut rng));
    assert_eq!(key.decrypt(&none).limbs()[0], 9);
}

#[test]
fn an_answer_cannot_be_told_from_a_fresh_ciphertext_of_its_plaintext() {
    // The owner of the key divides what comes back by the ciphertext it sent. Without a new randomiser a
    // power of 1 + n is left, which is 1 modulo n: the attack. With one, a uniform number is left.
    let (key, mut rng) = (given(), rng(4));
    let sent = key.encrypt(&plain(42, 0), key.randomiser(&mut rng));
    let quotient = |answer: &Ciphertext| {
        let inverse = ModSquare::new(&sent.0, &key.public().square).invert().unwrap();
        let quotient = ModSquare::new(&answer.0, &key.public().square) * inverse;
        quotient.retrieve().rem_vartime(key.public().n.as_nz_ref())
    };
    let lane = || std::iter::once(&sent);
    let bare = key.public().answer(lane(), 0, &plain(1000, 0), Randomiser(U4096::ONE));
    assert!(quotient(&bare) == U2048::ONE, "the attack would have worked");
    let [first, second] =
        [(), ()].map(|()| key.public().answer(lane(), 0, &plain(1000, 0), key.public().randomiser(&mut rng)));
    assert!(quotient(&first) != U2048::ONE && quotient(&first) != quotient(&second));
}

#[test]
fn what_is_no_key_and_no_ciphertext_is_refused_by_name() {
    let key = given();
    let public = key.public();
    let mut bytes = public.to_bytes();
    let refused = |bytes: &[u8; KEY_BYTES]| PublicKey::from_bytes(bytes).err();
    bytes[0] ^= 1;
    assert_eq!(refused(&bytes), Some(CiphertextRefusal::Modulus));
    bytes[0] ^= 1;
    bytes[KEY_BYTES - 1] &= 0x7f;
    assert_eq!(refused(&bytes), Some(CiphertextRefusal::Modulus));

    let good = Ciphertext(U4096::from_be_hex(C)).to_bytes();
    let read = |bad: U4096| public.read(&[good, Ciphertext(bad).to_bytes(), good].concat()).err();
    assert_eq!(read(U4096::ONE), None);
    assert_eq!(read(U4096::ZERO), Some(CiphertextRefusal::Zero));
    let square = *public.square.modulus().as_ref();
    assert_eq!(read(square), Some(CiphertextRefusal::Large));
    assert_eq!(read(U4096::MAX), Some(CiphertextRefusal::Large));
    assert_eq!(read(square.wrapping_sub(&U4096::ONE)), None);
    for factor in
        [key.factors[0].prime.get().resize(), key.factors[1].prime.get().resize(), public.n.get().resize()]
    {
        assert_eq!(read(factor), Some(CiphertextRefusal::Factor));
    }
}

#[test]
fn a_plaintext_that_reaches_the_top_bit_opens_like_any_other() {
    let (key, mut rng) = (given(), rng(5));
    // -1 mod n has 2048 bits.
    let minus_one = Plaintext(key.public().n.wrapping_sub(&U2048::ONE));
    let sealed = key.encrypt(&minus_one, key.randomiser(&mut rng));
    assert_eq!(key.decrypt(&sealed).limbs(), minus_one.limbs());
}

/// Encryption and decryption by the owner. The plaintext is secret, and so is the ciphertext that comes back;
/// of the key what it computes with, but for the primes: a division tells how long its divisor is, which of a
/// prime is public but not to memcheck.
fn owner() -> Vec<timing::TimedKernel<'static>> {
    let mut key = given();
    for factor in &mut key.factors {
        timing::memcheck::secret(&mut factor.order);
        timing::memcheck::secret(&mut factor.scale);
    }
    timing::memcheck::secret(&mut key.inverse);
    timing::memcheck::secret(&mut key.inverse_square);
    let case = move |secret: &mut [u8]| {
        let mut m = U2048::from_le_slice(secret).to_words();
        m[LIMBS - 1] &= u64::MAX >> 1;
        let sealed = key.encrypt(&Plaintext(U2048::from_words(m)), Randomiser(U4096::ONE));
        timing::done(&sealed.0);
        timing::done(&key.decrypt(&sealed).0);
    };
    vec![timing::TimedKernel::new("Paillier, owner: plaintext, exponents", KEY_BYTES, case)]
}

timing::tests!(owner);
