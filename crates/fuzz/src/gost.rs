//! Batches of messages in modes of GOST ciphers, against modes that process block after block.

use arbitrary::{Result, Unstructured};
use gost::kuznyechik::Kuznyechik;
use gost::magma::Magma;
use gost::mode::{AeadMessage, Cbc, Ctr, CtrAcpkm, Ecb, MacMessage, Message, Mgm, Omac};
use gost::{BlockCipher, KEY_BYTES, Kernel};

/// More than modes process together (64), so that batches end and chains replace each other.
const MESSAGES_MAX: usize = 80;
const TEXT_BYTES_MAX: usize = 150;
/// One text may fill the scratch of 4 KiB twice.
const LONG_TEXT_BYTES_MAX: usize = 9000;

pub(crate) fn body(data: &[u8]) {
    let mut u = Unstructured::new(data);
    // An exhausted input ends the run.
    let _ = if data.len().is_multiple_of(2) {
        run::<Magma>(&mut u)
    } else {
        run::<Kuznyechik>(&mut u)
    };
}

/// A message with the inputs of all modes.
struct Input {
    /// Four blocks.
    iv: Vec<u8>,
    aad: Vec<u8>,
    text: Vec<u8>,
}

fn run<C: BlockCipher>(u: &mut Unstructured<'_>) -> Result<()> {
    let kernels = Kernel::all();
    let kernel = *u.choose(&kernels)?;
    let key: [u8; KEY_BYTES] = u.arbitrary()?;
    let mode = u.int_in_range(0..=5)?;
    let blocks = u.int_in_range(1..=4)?;
    let mut inputs = Vec::new();
    // Few inputs have many messages or a long one: those dominate the run time.
    let messages_max = if u.ratio(31, 32)? { 5 } else { MESSAGES_MAX };
    let messages = u.int_in_range(0..=messages_max)?;
    let long = if u.ratio(31, 32)? {
        None
    } else {
        Some(u.int_in_range(0..=messages)?)
    };
    for message in 0..messages {
        let most = if long == Some(message) {
            LONG_TEXT_BYTES_MAX
        } else {
            TEXT_BYTES_MAX
        };
        inputs.push(input::<C>(u, most)?);
    }
    let slow = Slow(C::new(&key, Kernel::PORTABLE));
    let cipher = C::new(&key, kernel);
    match mode {
        0 => ecb(cipher, &slow, inputs),
        1 => ctr(Ctr::new(cipher), &slow, inputs),
        2 => cbc(cipher, &slow, inputs, blocks),
        3 => omac(cipher, &slow, &inputs),
        4 => ctr_acpkm(
            CtrAcpkm::new(&key, kernel, blocks * C::BLOCK_BYTES),
            &slow,
            inputs,
            blocks,
        ),
        _ => mgm(cipher, &slow, inputs, u.arbitrary()?),
    }
    Ok(())
}

fn input<C: BlockCipher>(u: &mut Unstructured<'_>, text_bytes_max: usize) -> Result<Input> {
    let bytes = |u: &mut Unstructured<'_>, length: usize| -> Result<Vec<u8>> {
        // Two bytes describe a text: drawn byte by byte it would use up the input.
        let first: u8 = u.arbitrary()?;
        let step: u8 = u.arbitrary()?;
        let counted = (0..length).map(|at| first.wrapping_add(step.wrapping_mul(at as u8)));
        Ok(counted.collect())
    };
    let text_bytes = u.int_in_range(0..=text_bytes_max)?;
    let aad_bytes = u.int_in_range(0..=40)?;
    Ok(Input {
        iv: bytes(u, 4 * C::BLOCK_BYTES)?,
        aad: bytes(u, aad_bytes)?,
        text: bytes(u, text_bytes)?,
    })
}

/// A cipher that encrypts one block at a time, and modes written as in their standards.
struct Slow<C>(C);

impl<C: BlockCipher> Slow<C> {
    const BLOCK: usize = C::BLOCK_BYTES;

    fn encrypt(&self, block: &[u8]) -> Vec<u8> {
        let mut block = block.to_vec();
        self.0.encrypt_blocks(&mut block);
        block
    }

    /// XORs a text with the encrypted blocks that `block` returns.
    fn mix(&self, text: &mut [u8], block: impl Fn(usize) -> Vec<u8>) {
        for (at, text) in text.chunks_mut(Self::BLOCK).enumerate() {
            xor(text, &self.encrypt(&block(at)));
        }
    }

    fn omac(&self, text: &[u8]) -> Vec<u8> {
        let polynomial = if Self::BLOCK == 8 { 0x1b } else { 0x87 };
        let zero = self.encrypt(&vec![0; Self::BLOCK]);
        let double = |block: &[u8]| {
            let number = number(block);
            let bits = 8 * Self::BLOCK;
            let doubled = (number << 1) ^ ((number >> (bits - 1) & 1) * polynomial);
            // This also cuts the bit that was shifted out of a short block.
            doubled.to_be_bytes()[16 - Self::BLOCK..].to_vec()
        };
        let whole = double(&zero);
        let mut text = text.to_vec();
        let subkey = if text.is_empty() || !text.len().is_multiple_of(Self::BLOCK) {
            text.push(0x80);
            text.resize(text.len().next_multiple_of(Self::BLOCK), 0);
            double(&whole)
        } else {
            whole
        };
        let last = text.len() - Self::BLOCK;
        xor(&mut text[last..], &subkey);
        let mut state = vec![0; Self::BLOCK];
        for block in text.chunks(Self::BLOCK) {
            xor(&mut state, block);
            state = self.encrypt(&state);
        }
        state
    }

    fn mgm(&self, nonce: &[u8], aad: &[u8], text: &mut [u8]) -> Vec<u8> {
        let half = Self::BLOCK / 2;
        // Increments the half of a start value that begins at `from`.
        let counted = |start: &[u8], from: usize, count: usize| {
            let mut block = start.to_vec();
            let half = &mut block[from..from + half];
            let sum = number(half).wrapping_add(count as u128).to_be_bytes();
            half.copy_from_slice(&sum[16 - half.len()..]);
            block
        };
        let keystream = self.encrypt(nonce);
        self.mix(text, |at| counted(&keystream, half, at));
        let mut nonce = nonce.to_vec();
        // 1‖ICN (RFC 9058 §4.1).
        nonce[0] |= 0x80;
        let factors = self.encrypt(&nonce);
        let text = &*text;
        let mut data = Vec::new();
        for part in [aad, text] {
            data.extend_from_slice(part);
            data.resize(data.len().next_multiple_of(Self::BLOCK), 0);
        }
        for part in [aad, text] {
            let bits = (8 * part.len() as u128).to_be_bytes();
            data.extend_from_slice(&bits[16 - half..]);
        }
        let mut sum = 0;
        for (at, block) in data.chunks(Self::BLOCK).enumerate() {
            let factor = self.encrypt(&counted(&factors, 0, at));
            sum ^= multiply(number(&factor), number(block), 8 * Self::BLOCK);
        }
        self.encrypt(&sum.to_be_bytes()[16 - Self::BLOCK..])
    }
}

/// Bytes as one number, big-endian.
fn number(bytes: &[u8]) -> u128 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// A product in GF(2^64) or GF(2^128) of RFC 9058 §4.
fn multiply(mut a: u128, b: u128, bits: usize) -> u128 {
    let polynomial = if bits == 64 { 0x1b } else { 0x87 };
    let mask = u128::MAX >> (128 - bits);
    let mut product = 0;
    for bit in 0..bits {
        if b >> bit & 1 == 1 {
            product ^= a;
        }
        let carry = a >> (bits - 1) & 1;
        a = (a << 1 & mask) ^ (carry * polynomial);
    }
    product
}

fn xor(to: &mut [u8], from: &[u8]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to ^= from);
}

/// Cuts texts to whole blocks.
fn whole<C: BlockCipher>(inputs: &mut [Input]) {
    for input in inputs {
        let bytes = input.text.len();
        input.text.truncate(bytes - bytes % C::BLOCK_BYTES);
    }
}

fn messages(inputs: &mut [Input], iv_bytes: usize) -> impl Iterator<Item = Message<'_, &[u8]>> {
    inputs.iter_mut().map(move |input| Message {
        iv: &input.iv[..iv_bytes],
        text: &mut input.text,
    })
}

fn texts(inputs: &[Input]) -> Vec<Vec<u8>> {
    inputs.iter().map(|input| input.text.clone()).collect()
}

fn ecb<C: BlockCipher>(cipher: C, slow: &Slow<C>, mut inputs: Vec<Input>) {
    whole::<C>(&mut inputs);
    let plain = texts(&inputs);
    let mut expected = plain.clone();
    for block in expected
        .iter_mut()
        .flat_map(|text| text.chunks_mut(C::BLOCK_BYTES))
    {
        block.copy_from_slice(&slow.encrypt(block));
    }
    let mut mode = Ecb::new(cipher);
    mode.encrypt_all(inputs.iter_mut().map(|input| &mut input.text[..]));
    assert_eq!(texts(&inputs), expected);
    mode.decrypt_all(inputs.iter_mut().map(|input| &mut input.text[..]));
    assert_eq!(texts(&inputs), plain);
}

/// Block `at` of CTR: the IV, and the number.
fn counter(iv: &[u8], at: usize) -> Vec<u8> {
    [iv, &(at as u128).to_be_bytes()[16 - iv.len()..]].concat()
}

fn ctr<C: BlockCipher>(mut mode: Ctr<C>, slow: &Slow<C>, mut inputs: Vec<Input>) {
    let half = C::BLOCK_BYTES / 2;
    let mut expected = texts(&inputs);
    for (text, input) in expected.iter_mut().zip(&inputs) {
        slow.mix(text, |at| counter(&input.iv[..half], at));
    }
    mode.apply_all(messages(&mut inputs, half));
    assert_eq!(texts(&inputs), expected);
}

fn ctr_acpkm<C: BlockCipher>(
    mut mode: CtrAcpkm<C>,
    slow: &Slow<C>,
    mut inputs: Vec<Input>,
    section_blocks: usize,
) {
    let half = C::BLOCK_BYTES / 2;
    let mut expected = texts(&inputs);
    for (text, input) in expected.iter_mut().zip(&inputs) {
        let mut later: Option<Slow<C>> = None;
        for (section, text) in text.chunks_mut(section_blocks * C::BLOCK_BYTES).enumerate() {
            let slow = later.as_ref().unwrap_or(slow);
            let before = section * section_blocks;
            slow.mix(text, |at| counter(&input.iv[..half], before + at));
            // D of RFC 8645 §6.2.1.
            let constants: Vec<u8> = (0x80..0xa0).collect();
            let blocks = constants.chunks(C::BLOCK_BYTES);
            let key: Vec<u8> = blocks.flat_map(|block| slow.encrypt(block)).collect();
            let key = key.try_into().expect("32 B");
            later = Some(Slow(C::new(&key, Kernel::PORTABLE)));
        }
    }
    mode.apply_all(messages(&mut inputs, half));
    assert_eq!(texts(&inputs), expected);
}

fn cbc<C: BlockCipher>(cipher: C, slow: &Slow<C>, mut inputs: Vec<Input>, iv_blocks: usize) {
    whole::<C>(&mut inputs);
    let plain = texts(&inputs);
    let mut expected = plain.clone();
    for (text, input) in expected.iter_mut().zip(&inputs) {
        let mut before = input.iv[..iv_blocks * C::BLOCK_BYTES].to_vec();
        for block in text.chunks_mut(C::BLOCK_BYTES) {
            xor(block, &before);
            block.copy_from_slice(&slow.encrypt(block));
            // The register of the standard: its oldest block leaves, and the ciphertext enters.
            before.drain(..C::BLOCK_BYTES);
            before.extend_from_slice(block);
        }
    }
    let mut mode = Cbc::new(cipher);
    mode.encrypt_all(messages(&mut inputs, iv_blocks * C::BLOCK_BYTES));
    assert_eq!(texts(&inputs), expected);
    mode.decrypt_all(messages(&mut inputs, iv_blocks * C::BLOCK_BYTES));
    assert_eq!(texts(&inputs), plain);
}

fn omac<C: BlockCipher>(cipher: C, slow: &Slow<C>, inputs: &[Input]) {
    let mut mode = Omac::new(cipher);
    let mut macs = vec![vec![0; C::BLOCK_BYTES]; inputs.len()];
    let authenticated = inputs.iter().zip(&mut macs);
    mode.mac_all(authenticated.map(|(input, mac)| MacMessage {
        text: &input.text,
        tail: &input.aad,
        mac,
    }));
    let whole = |input: &Input| [&input.text[..], &input.aad].concat();
    let expected: Vec<_> = inputs
        .iter()
        .map(|input| slow.omac(&whole(input)))
        .collect();
    assert_eq!(macs, expected);
}

/// Seals, and opens again with one bit of some messages changed, as selected by `changes`.
fn mgm<C: BlockCipher>(cipher: C, slow: &Slow<C>, mut inputs: Vec<Input>, changes: u32) {
    let plain = texts(&inputs);
    let mut expected = Vec::new();
    for input in &mut inputs {
        input.iv.truncate(C::BLOCK_BYTES);
        input.iv[0] &= 0x7f;
        // A message without text and additional data may not be sealed.
        if input.aad.is_empty() && input.text.is_empty() {
            input.aad.push(0);
        }
        let mut sealed = input.text.clone();
        let tag = slow.mgm(&input.iv, &input.aad, &mut sealed);
        expected.push((sealed, tag));
    }
    fn aead<'a>(
        inputs: &'a mut [Input],
        tags: &'a mut [Vec<u8>],
    ) -> impl Iterator<Item = AeadMessage<'a, &'a [u8], &'a [u8]>> {
        inputs.iter_mut().zip(tags).map(|(input, tag)| AeadMessage {
            nonce: &input.iv[..],
            aad: &input.aad[..],
            text: &mut input.text,
            tag,
        })
    }
    let mut mode = Mgm::new(cipher);
    let mut tags = vec![vec![0; C::BLOCK_BYTES]; inputs.len()];
    mode.seal_all(aead(&mut inputs, &mut tags));
    let found: Vec<_> = texts(&inputs)
        .into_iter()
        .zip(tags.iter().cloned())
        .collect();
    assert_eq!(found, expected);

    let changed = |at: usize| changes >> (at % 32) & 1 == 1;
    let bit = (changes >> 8) as usize;
    for (at, (input, tag)) in inputs.iter_mut().zip(&mut tags).enumerate() {
        if changed(at) {
            // Any bit of the ciphertext, the additional data or the tag.
            let bytes = [&mut input.text, &mut input.aad, tag];
            let total: usize = bytes.iter().map(|part| part.len()).sum();
            let mut all = bytes.into_iter().flatten();
            let byte = all.nth(bit / 8 % total).expect("within");
            *byte ^= 1 << (bit % 8);
        }
    }
    let mut authentic = vec![false; inputs.len()];
    mode.open_all(aead(&mut inputs, &mut tags), &mut authentic);
    for (at, (input, plain)) in inputs.iter().zip(&plain).enumerate() {
        assert_eq!(authentic[at], !changed(at));
        if changed(at) {
            assert!(input.text.iter().all(|byte| *byte == 0));
        } else {
            assert_eq!(input.text, *plain);
        }
    }
}
