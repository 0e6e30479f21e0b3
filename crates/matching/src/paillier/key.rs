//! Paillier's cryptosystem (Eurocrypt 1999) with a modulus of 2048 bits.
//!
//! A ciphertext of `m` is `(1 + n)^m x mod n^2 = (1 + m n) x mod n^2` with `x` a uniform n-th residue.
//! Whoever holds the factors works modulo their squares (CRT), about eight times faster than somebody who has
//! `n` alone.
//!
//! There is one operation on ciphertexts, [`PublicKey::answer`], and it takes a [`Randomiser`]: what comes
//! out of it has uniform randomness and cannot be linked to what went in.
//!
//! All exponentiations are fixed-time in base and exponent; reductions are fixed-time in both operands.

use super::CiphertextRefusal;
use base::{Rng, Secret};
use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
use crypto_bigint::{NonZero, Odd, RandomMod, U1024, U2048, U4096};
use crypto_primes::Flavor;
use crypto_primes::hazmat::{SetBits, SmallFactorsSieveFactory};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bits of the modulus `n`.
pub const KEY_BITS: u32 = 2048;

/// Bytes of a public key.
pub const KEY_BYTES: usize = KEY_BITS as usize / 8;

/// Bytes of a ciphertext: a number below `n^2`, little endian.
pub const CIPHERTEXT_BYTES: usize = 2 * KEY_BYTES;

/// Bits that a plaintext may have. Every number of so many is below `n`, which has its top bit set.
pub const PLAINTEXT_BITS: u32 = KEY_BITS - 1;

/// Limbs of a number of [`KEY_BITS`], as [`Plaintext`] gives and takes them.
pub const LIMBS: usize = U2048::LIMBS;

type ModSquare = FixedMontyForm<{ U4096::LIMBS }>;
type ModFactorSquare = FixedMontyForm<{ U2048::LIMBS }>;
type ModFactor = FixedMontyForm<{ U1024::LIMBS }>;

/// A number of at most [`PLAINTEXT_BITS`] bits. Wiped when dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Plaintext(U2048);

impl Plaintext {
    /// The number with these 64-bit limbs, the lowest first.
    ///
    /// # Panics
    /// When its top bit is set: a bug of the caller.
    #[must_use]
    pub fn from_limbs(limbs: [u64; LIMBS]) -> Self {
        assert!(limbs[LIMBS - 1] >> 63 == 0, "a plaintext has at most 2047 bits");
        Self(U2048::from_words(limbs))
    }

    /// Its 64-bit limbs, the lowest first.
    #[must_use]
    pub fn limbs(&self) -> &[u64; LIMBS] {
        self.0.as_words()
    }
}

/// A number below `n^2` that is coprime to `n`.
pub struct Ciphertext(U4096);

impl Ciphertext {
    /// Its wire form.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; CIPHERTEXT_BYTES] {
        let mut bytes = [0; CIPHERTEXT_BYTES];
        bytes.copy_from_slice(self.0.to_le_bytes().as_ref());
        bytes
    }
}

/// A uniform n-th residue modulo `n^2`, for one ciphertext. It is spent by move.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Randomiser(U4096);

/// The modulus `n`, and arithmetic modulo its square.
pub struct PublicKey {
    n: Odd<U2048>,
    square: FixedMontyParams<{ U4096::LIMBS }>,
}

impl PublicKey {
    fn new(n: Odd<U2048>) -> Self {
        let square: U4096 = n.concatenating_square();
        let square = Odd::new(square).expect("the square of an odd number is odd");
        Self { n, square: FixedMontyParams::new_vartime(square) }
    }

    /// The key with this modulus, little endian.
    ///
    /// # Errors
    /// When it is even or has not exactly [`KEY_BITS`] bits. That it is a product of two primes its owner
    /// vouches for.
    pub fn from_bytes(bytes: &[u8; KEY_BYTES]) -> Result<Self, CiphertextRefusal> {
        let n = U2048::from_le_slice(bytes);
        let odd = Odd::new(n).into_option().ok_or(CiphertextRefusal::Modulus)?;
        if bytes[KEY_BYTES - 1] >> 7 == 0 { Err(CiphertextRefusal::Modulus) } else { Ok(Self::new(odd)) }
    }

    /// The modulus, little endian.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; KEY_BYTES] {
        let mut bytes = [0; KEY_BYTES];
        bytes.copy_from_slice(self.n.to_le_bytes().as_ref());
        bytes
    }

    /// Reads ciphertexts of a peer, [`CIPHERTEXT_BYTES`] each.
    ///
    /// # Errors
    /// When one is zero, not below `n^2` or shares a factor with `n`.
    pub fn read(&self, bytes: &[u8]) -> Result<Vec<Ciphertext>, CiphertextRefusal> {
        let mut read = Vec::with_capacity(bytes.len() / CIPHERTEXT_BYTES);
        let mut product = ModSquare::one(&self.square);
        for bytes in bytes.chunks_exact(CIPHERTEXT_BYTES) {
            let number = U4096::from_le_slice(bytes);
            if number == U4096::ZERO {
                return Err(CiphertextRefusal::Zero);
            }
            if number >= *self.square.modulus().as_ref() {
                return Err(CiphertextRefusal::Large);
            }
            // One gcd for all: a factor of n in one of them is in the product.
            product *= &ModSquare::new(&number, &self.square);
            read.push(Ciphertext(number));
        }
        let product = product.retrieve().rem_vartime(self.n.as_nz_ref());
        match self.n.gcd_unsigned_vartime(&product).as_ref() == &U2048::ONE {
            true => Ok(read),
            false => Err(CiphertextRefusal::Factor),
        }
    }

    /// `r^n mod n^2` for a uniform `r`.
    #[must_use]
    pub fn randomiser(&self, rng: &mut Rng) -> Randomiser {
        let r = Secret::new(U2048::random_mod_vartime(rng, self.n.as_nz_ref()));
        Randomiser(ModSquare::new(&r.expose().resize(), &self.square).pow(&*self.n).retrieve())
    }

    /// The ciphertext of `sum of lanes[i] 2^(width i) + mask`, with the randomness of `randomiser` on top of
    /// that of the lanes. The sum must stay below `2^PLAINTEXT_BITS`.
    #[must_use]
    pub fn answer<'a>(
        &self,
        lanes: impl DoubleEndedIterator<Item = &'a Ciphertext>,
        width: u32,
        mask: &Plaintext,
        randomiser: Randomiser,
    ) -> Ciphertext {
        // Horner's rule, the highest lane first; the width is public.
        let mut lanes = lanes.rev().map(|lane| ModSquare::new(&lane.0, &self.square));
        let mut sum = lanes.next().unwrap_or_else(|| ModSquare::one(&self.square));
        for lane in lanes {
            sum = sum.square_repeat_vartime(width) * lane;
        }
        self.seal(sum, mask, randomiser)
    }

    fn encrypt(&self, plaintext: &Plaintext, randomiser: Randomiser) -> Ciphertext {
        self.seal(ModSquare::one(&self.square), plaintext, randomiser)
    }

    /// `base (1 + plaintext n) randomiser mod n^2`.
    fn seal(&self, base: ModSquare, plaintext: &Plaintext, randomiser: Randomiser) -> Ciphertext {
        let multiple: U4096 = plaintext.0.concatenating_mul(&*self.n);
        let power = ModSquare::new(&multiple.wrapping_add(&U4096::ONE), &self.square);
        let fresh = ModSquare::new(&randomiser.0, &self.square);
        Ciphertext((base * power * fresh).retrieve())
    }
}

/// What the owner knows of one prime factor of `n`.
#[derive(Zeroize, ZeroizeOnDrop)]
struct Factor {
    prime: Odd<U1024>,
    /// Arithmetic modulo `prime` and modulo its square.
    small: FixedMontyParams<{ U1024::LIMBS }>,
    square: FixedMontyParams<{ U2048::LIMBS }>,
    /// `prime - 1`.
    order: U1024,
    /// `-(other prime)^-1 mod prime`: the inverse of `((1 + n)^(prime - 1) mod prime^2 - 1) / prime`.
    scale: U1024,
}

impl Factor {
    fn new(prime: Odd<U1024>, other: &U1024) -> Self {
        let square: U2048 = prime.concatenating_square();
        let square = Odd::new(square).expect("the square of an odd number is odd");
        let small = FixedMontyParams::new(prime);
        let scale = ModFactor::new(other, &small).neg().invert().expect("two primes are coprime");
        Self {
            small,
            square: FixedMontyParams::new(square),
            order: prime.wrapping_sub(&U1024::ONE),
            scale: scale.retrieve(),
            prime,
        }
    }

    fn nonzero(&self) -> &NonZero<U1024> {
        self.prime.as_nz_ref()
    }

    /// `x^prime mod prime^2` for a uniform `x`: a uniform n-th residue. `r^n mod prime^2` depends on
    /// `r^other mod prime` alone, which is as uniform as `r` because the other prime does not divide
    /// `prime - 1`.
    fn residue(&self, rng: &mut Rng) -> U2048 {
        let x = Secret::new(U1024::random_mod_vartime(rng, self.nonzero()));
        ModFactorSquare::new(&x.expose().resize(), &self.square).pow(&*self.prime).retrieve()
    }

    /// The plaintext modulo this prime.
    fn decrypt(&self, ciphertext: &U4096) -> U1024 {
        let reduced: U2048 = ciphertext.rem(self.square.modulus().as_nz_ref());
        let power = ModFactorSquare::new(&reduced, &self.square).pow(&self.order).retrieve();
        // power = 1 + prime (...): for a ciphertext that is coprime to n the division is exact.
        let (quotient, _) = power.wrapping_sub(&U2048::ONE).div_rem(self.nonzero());
        let quotient = ModFactor::new(&quotient.resize(), &self.small);
        (quotient * ModFactor::new(&self.scale, &self.small)).retrieve()
    }
}

/// A key pair.
pub struct SecretKey {
    public: PublicKey,
    factors: [Factor; 2],
    /// The inverse of the first prime modulo the second.
    inverse: Secret<U1024>,
    /// The inverse of the first prime's square modulo the square of the second.
    inverse_square: Secret<U2048>,
}

impl SecretKey {
    /// A fresh key: two uniform primes of 1024 bits, each with its two top bits set.
    ///
    /// Candidates are sieved and tested by Baillie-PSW, to which no composite is known. Since both have the
    /// same length, neither divides the other less one, so `gcd(n, (p - 1)(q - 1)) = 1` as Paillier asks.
    #[must_use]
    pub fn generate(rng: &mut Rng) -> Self {
        let p = prime(rng);
        loop {
            let q = prime(rng);
            if p != q {
                return Self::from_primes(p, q);
            }
        }
    }

    /// The key of two distinct primes of 1024 bits whose product has 2048.
    fn from_primes(p: Odd<U1024>, q: Odd<U1024>) -> Self {
        let n: U2048 = p.concatenating_mul(&*q);
        let public = PublicKey::new(Odd::new(n).expect("a product of odd numbers is odd"));
        let factors = [Factor::new(p, &q), Factor::new(q, &p)];
        let [_, of_q] = &factors;
        let inverse = ModFactor::new(&p.rem(of_q.nonzero()), &of_q.small).invert();
        let p_square: U2048 = p.concatenating_square();
        let p_square = p_square.rem(of_q.square.modulus().as_nz_ref());
        let inverse_square = ModFactorSquare::new(&p_square, &of_q.square).invert();
        let coprime = "distinct primes are coprime";
        let inverse = Secret::new(inverse.expect(coprime).retrieve());
        let inverse_square = Secret::new(inverse_square.expect(coprime).retrieve());
        Self { public, factors, inverse, inverse_square }
    }

    /// Its public half.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// A uniform n-th residue, as [`PublicKey::randomiser`] gives, by way of the factors.
    #[must_use]
    pub fn randomiser(&self, rng: &mut Rng) -> Randomiser {
        let [p, q] = &self.factors;
        let (x_p, x_q) = (Secret::new(p.residue(rng)), Secret::new(q.residue(rng)));
        let mod_q = |x: &U2048| {
            let reduced = x.rem(q.square.modulus().as_nz_ref());
            ModFactorSquare::new(&reduced, &q.square)
        };
        let step = (mod_q(x_q.expose()) - mod_q(x_p.expose())) * mod_q(self.inverse_square.expose());
        let multiple: U4096 = step.retrieve().concatenating_mul(p.square.modulus().as_ref());
        Randomiser(multiple.wrapping_add(&x_p.expose().resize()))
    }

    /// The ciphertext of `plaintext`.
    #[must_use]
    pub fn encrypt(&self, plaintext: &Plaintext, randomiser: Randomiser) -> Ciphertext {
        self.public.encrypt(plaintext, randomiser)
    }

    /// The plaintext of an answer to our ciphertexts. One of more than [`PLAINTEXT_BITS`] bits, to which the
    /// peer added more than its masks, is as good as any: an error would tell the peer a bit of what it added
    /// to.
    #[must_use]
    pub fn decrypt(&self, ciphertext: &Ciphertext) -> Plaintext {
        let [p, q] = &self.factors;
        let (m_p, m_q) = (Secret::new(p.decrypt(&ciphertext.0)), Secret::new(q.decrypt(&ciphertext.0)));
        let mod_q = |m: &U1024| ModFactor::new(&m.rem(q.nonzero()), &q.small);
        let step = (mod_q(m_q.expose()) - mod_q(m_p.expose())) * mod_q(self.inverse.expose());
        let multiple: U2048 = step.retrieve().concatenating_mul(&*p.prime);
        Plaintext(multiple.wrapping_add(&m_p.expose().resize()))
    }
}

/// A uniform prime of 1024 bits with its two top bits set.
fn prime(rng: &mut Rng) -> Odd<U1024> {
    let factory = SmallFactorsSieveFactory::new(Flavor::Any, KEY_BITS / 2, SetBits::TwoMsb);
    let factory = factory.expect("1024 bits fit 1024 bits");
    let prime = crypto_primes::sieve_and_find(rng, factory, |_, candidate: &U1024| {
        crypto_primes::is_prime(Flavor::Any, candidate)
    });
    let prime = prime.expect("1024 bits fit 1024 bits").expect("the search does not end without a prime");
    Odd::new(prime).expect("a large prime is odd")
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
