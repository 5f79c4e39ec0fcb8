//! The form of snapshots: an envelope that says what it is and notices damage, and the writing of what is in it.
//!
//! Envelope: `AFAS`, the format version (u16), the length of the body (u32), the body, and the first eight bytes of
//! BLAKE2b-128 over all before them. All numbers are little-endian. Equal content has one form only: whole numbers in
//! their shortest form, minus zero as zero.

use std::fmt;
use std::sync::Arc;

use blake2::Blake2bVar;
use blake2::digest::{Update, VariableOutput};

use crate::program::value::Value;
use crate::rows::event::Data;

/// The format version that this build writes; it reads this one and all before it.
pub const FORMAT_VERSION: u16 = 1;

const MAGIC: &[u8; 4] = b"AFAS";
const HEAD_BYTES: usize = 10;
const CHECKSUM_BYTES: usize = 8;
/// Of lists and objects in data; records are read with a smaller limit.
const MAX_DEPTH: usize = 128;

/// Why bytes are no snapshot that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotFault {
    /// They do not begin like one.
    NotASnapshot,
    /// Written by a newer build.
    NewerFormat {
        /// The version that it has.
        found: u16,
        /// The newest version that this build reads.
        readable: u16,
    },
    /// The checksum is not that of the bytes.
    Damaged,
    /// The end is missing.
    CutShort,
    /// The bytes are as they were written, but say something impossible.
    Malformed(&'static str),
}

impl fmt::Display for SnapshotFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotASnapshot => formatter.write_str("not a snapshot"),
            Self::NewerFormat { found, readable } => {
                write!(
                    formatter,
                    "a snapshot of format version {found}; this build reads up to {readable}"
                )
            }
            Self::Damaged => formatter.write_str("a damaged snapshot: its checksum is wrong"),
            Self::CutShort => formatter.write_str("a snapshot that was cut short"),
            Self::Malformed(what) => write!(formatter, "a malformed snapshot: {what}"),
        }
    }
}

impl std::error::Error for SnapshotFault {}

/// BLAKE2b-128.
///
/// # Panics
/// Never: the length is one that `BLAKE2b` has.
#[must_use]
pub fn digest(bytes: &[u8]) -> [u8; 16] {
    let mut digest = [0; 16];
    let mut hasher = Blake2bVar::new(digest.len()).expect("16 bytes is a length that BLAKE2b has");
    hasher.update(bytes);
    hasher.finalize_variable(&mut digest).expect("the length is the same");
    digest
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    digest(bytes)[..CHECKSUM_BYTES].try_into().expect("16 bytes hold 8")
}

/// Puts a body into its envelope.
///
/// # Panics
/// If the body has 4 GB or more; `max_bytes_per_key` stops long before.
#[must_use]
pub fn seal(mut body: Vec<u8>) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("less than 4 GB");
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(MAGIC);
    head[4..6].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    head[6..].copy_from_slice(&length.to_le_bytes());
    body.reserve_exact(HEAD_BYTES + CHECKSUM_BYTES);
    body.splice(..0, head);
    let sum = checksum(&body);
    body.extend_from_slice(&sum);
    body
}

/// The body in an envelope.
///
/// # Errors
/// If these are not the bytes that `seal` gave, in this version or an earlier one.
pub fn open(bytes: &[u8]) -> Result<&[u8], SnapshotFault> {
    let common = bytes.len().min(MAGIC.len());
    if bytes[..common] != MAGIC[..common] {
        return Err(SnapshotFault::NotASnapshot);
    }
    let mut reader = Reader::new(&bytes[common..]);
    let found = u16::from_le_bytes(reader.array()?);
    if found > FORMAT_VERSION {
        let readable = FORMAT_VERSION;
        return Err(SnapshotFault::NewerFormat { found, readable });
    }
    let length = u32::from_le_bytes(reader.array()?) as usize;
    let body = reader.take(length)?;
    let sum: [u8; CHECKSUM_BYTES] = reader.array()?;
    if found == 0 || !reader.rest.is_empty() || sum != checksum(&bytes[..HEAD_BYTES + length]) {
        return Err(SnapshotFault::Damaged);
    }
    Ok(body)
}

/// Writes a body.
#[derive(Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// The body written.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// One byte.
    pub fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// True or false.
    pub fn truth(&mut self, truth: bool) {
        self.byte(truth.into());
    }

    /// A number in four bytes.
    pub fn fixed_u32(&mut self, number: u32) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// A number in eight bytes.
    pub fn fixed_u64(&mut self, number: u64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// A number in as few bytes as it needs, seven bits in each.
    #[allow(clippy::cast_possible_truncation)] // the low seven bits are wanted
    pub fn unsigned(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    /// The same for a number with a sign, short if it is near zero.
    pub fn signed(&mut self, number: i64) {
        self.unsigned((number << 1 ^ number >> 63).cast_unsigned());
    }

    /// A count of items that follow, or of bytes.
    pub fn length(&mut self, length: usize) {
        self.unsigned(length as u64);
    }

    /// A float by its bits, minus zero as zero.
    pub fn float(&mut self, number: f64) {
        self.fixed_u64((number + 0.0).to_bits());
    }

    /// Bytes with their length.
    pub fn binary(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// A text with its length.
    pub fn text(&mut self, text: &str) {
        self.binary(text.as_bytes());
    }

    /// Whether there is something, and then what.
    pub fn option<T>(&mut self, option: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.truth(option.is_some());
        if let Some(present) = option {
            write(self, present);
        }
    }

    /// A value.
    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Unknown => self.byte(0),
            Value::Bool(truth) => self.byte(1 + u8::from(*truth)),
            Value::Int(number) => {
                self.byte(3);
                self.signed(*number);
            }
            Value::Float(number) => {
                self.byte(4);
                self.float(*number);
            }
            Value::Str(text) => {
                self.byte(5);
                self.text(text);
            }
            Value::List(items) => {
                self.byte(6);
                self.length(items.len());
                items.iter().for_each(|item| self.float(*item));
            }
        }
    }

    /// Data, its members in the order that they have.
    pub fn data(&mut self, data: &Data) {
        match data {
            Data::Null => self.byte(0),
            Data::Bool(truth) => self.byte(1 + u8::from(*truth)),
            Data::Int(number) => {
                self.byte(3);
                self.signed(*number);
            }
            Data::Float(number) => {
                self.byte(4);
                self.float(*number);
            }
            Data::Str(text) => {
                self.byte(5);
                self.text(text);
            }
            Data::List(items) => {
                self.byte(6);
                self.length(items.len());
                for item in items {
                    self.data(item);
                }
            }
            Data::Map(members) => {
                self.byte(7);
                self.length(members.len());
                for (name, data) in members {
                    self.text(name);
                    self.data(data);
                }
            }
            Data::OutOfRange => self.byte(8),
        }
    }
}

/// Reads a body; trusts no length before the bytes are there.
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the beginning of a body.
    #[must_use]
    pub fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    /// The next bytes, this many.
    ///
    /// # Errors
    /// If there are not that many.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], SnapshotFault> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(SnapshotFault::CutShort)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], SnapshotFault> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(SnapshotFault::CutShort)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// One byte.
    ///
    /// # Errors
    /// If there is none.
    pub fn byte(&mut self) -> Result<u8, SnapshotFault> {
        self.array().map(|[byte]| byte)
    }

    /// True or false.
    ///
    /// # Errors
    /// If something else is there.
    pub fn truth(&mut self) -> Result<bool, SnapshotFault> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(SnapshotFault::Malformed("neither true nor false")),
        }
    }

    /// A number in four bytes.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn fixed_u32(&mut self) -> Result<u32, SnapshotFault> {
        self.array().map(u32::from_le_bytes)
    }

    /// A number in eight bytes.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn fixed_u64(&mut self) -> Result<u64, SnapshotFault> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number in its shortest form.
    ///
    /// # Errors
    /// If the form is longer than needed, or the number has more than 64 bits.
    pub fn unsigned(&mut self) -> Result<u64, SnapshotFault> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits || (byte == 0 && shift > 0) {
                return Err(SnapshotFault::Malformed("a number that is not in its one form"));
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(SnapshotFault::Malformed("a number of more than 64 bits"))
    }

    /// A number with a sign.
    ///
    /// # Errors
    /// As for one without.
    pub fn signed(&mut self) -> Result<i64, SnapshotFault> {
        let folded = self.unsigned()?;
        Ok((folded >> 1).cast_signed() ^ -(folded & 1).cast_signed())
    }

    /// A count of items of at least this many bytes each (1 or more).
    ///
    /// # Errors
    /// If so many cannot follow.
    pub fn length(&mut self, least_item_bytes: usize) -> Result<usize, SnapshotFault> {
        let length = usize::try_from(self.unsigned()?).map_err(|_| SnapshotFault::CutShort)?;
        if length > self.rest.len() / least_item_bytes.max(1) {
            return Err(SnapshotFault::CutShort);
        }
        Ok(length)
    }

    /// A finite float.
    ///
    /// # Errors
    /// If it is not finite, or minus zero.
    pub fn float(&mut self) -> Result<f64, SnapshotFault> {
        let bits = self.fixed_u64()?;
        let number = f64::from_bits(bits);
        if number.is_finite() && (number + 0.0).to_bits() == bits {
            Ok(number)
        } else {
            Err(SnapshotFault::Malformed("a float that no value has"))
        }
    }

    /// Bytes with their length.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn binary(&mut self) -> Result<&'a [u8], SnapshotFault> {
        let length = self.length(1)?;
        self.take(length)
    }

    /// A text with its length.
    ///
    /// # Errors
    /// If it is cut short or not UTF-8.
    pub fn text(&mut self) -> Result<&'a str, SnapshotFault> {
        std::str::from_utf8(self.binary()?).map_err(|_| SnapshotFault::Malformed("a text that is not UTF-8"))
    }

    /// Something or nothing.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, SnapshotFault>,
    ) -> Result<Option<T>, SnapshotFault> {
        if self.truth()? { read(self).map(Some) } else { Ok(None) }
    }

    /// A value.
    ///
    /// # Errors
    /// If there is none.
    pub fn value(&mut self) -> Result<Value, SnapshotFault> {
        Ok(match self.byte()? {
            0 => Value::Unknown,
            1 => Value::Bool(false),
            2 => Value::Bool(true),
            3 => Value::Int(self.signed()?),
            4 => Value::Float(self.float()?),
            5 => Value::Str(self.text()?.into()),
            6 => {
                let length = self.length(size_of::<f64>())?;
                let items: Result<Vec<f64>, _> = (0..length).map(|_| self.float()).collect();
                Value::List(items?.into())
            }
            _ => return Err(SnapshotFault::Malformed("an unknown kind of value")),
        })
    }

    /// Data.
    ///
    /// # Errors
    /// If there is none, or it is nested too deeply.
    pub fn data(&mut self) -> Result<Data, SnapshotFault> {
        self.data_at(0)
    }

    fn data_at(&mut self, depth: usize) -> Result<Data, SnapshotFault> {
        if depth > MAX_DEPTH {
            return Err(SnapshotFault::Malformed("data nested too deeply"));
        }
        Ok(match self.byte()? {
            0 => Data::Null,
            1 => Data::Bool(false),
            2 => Data::Bool(true),
            3 => Data::Int(self.signed()?),
            4 => Data::Float(self.float()?),
            5 => Data::Str(self.text()?.into()),
            6 => {
                let length = self.length(1)?;
                let items: Result<Vec<Data>, _> = (0..length).map(|_| self.data_at(depth + 1)).collect();
                Data::List(items?)
            }
            7 => {
                let length = self.length(2)?;
                let members: Result<Vec<(Arc<str>, Data)>, SnapshotFault> = (0..length)
                    .map(|_| Ok((self.text()?.into(), self.data_at(depth + 1)?)))
                    .collect();
                Data::Map(members?)
            }
            8 => Data::OutOfRange,
            _ => return Err(SnapshotFault::Malformed("an unknown kind of data")),
        })
    }

    /// Refuses bytes that nobody read.
    ///
    /// # Errors
    /// If there are any.
    pub fn end(&self) -> Result<(), SnapshotFault> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(SnapshotFault::Malformed("bytes after the end"))
        }
    }
}
