//! The little of msgpack that the engine needs: a checked reader, and writers on top of `rmp`.

use std::fmt;
use std::sync::Arc;

use rmp::Marker;
use rmp::decode::{self, Bytes};

use crate::program::value::Value;

/// Bytes that do not say what they should; the text says what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "malformed bytes: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

/// Reads msgpack from a slice; never trusts a length before the bytes are there.
pub struct Reader<'a> {
    bytes: Bytes<'a>,
    whole: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the beginning of the bytes.
    #[must_use]
    pub fn new(whole: &'a [u8]) -> Self {
        Self {
            bytes: Bytes::new(whole),
            whole,
        }
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.remaining_slice()
    }

    fn marker(&self) -> Option<Marker> {
        self.rest().first().map(|byte| Marker::from_u8(*byte))
    }

    /// An array of exactly this length.
    ///
    /// # Errors
    /// If something else is there.
    pub fn array(&mut self, length: u32) -> Result<(), Malformed> {
        if self.any_array()? == length {
            Ok(())
        } else {
            Err(Malformed("an array of another length"))
        }
    }

    /// The length of the array that begins here.
    ///
    /// # Errors
    /// If something else is there, or more items are announced than there are bytes.
    pub fn any_array(&mut self) -> Result<u32, Malformed> {
        let length = decode::read_array_len(&mut self.bytes).map_err(|_| Malformed("an array was expected"))?;
        if length as usize > self.rest().len() {
            return Err(Malformed("an array longer than the bytes"));
        }
        Ok(length)
    }

    /// Whether an array is next.
    #[must_use]
    pub fn peek_array(&self) -> bool {
        matches!(
            self.marker(),
            Some(Marker::FixArray(_) | Marker::Array16 | Marker::Array32)
        )
    }

    /// Whether nil is next; it is then read.
    pub fn nil(&mut self) -> bool {
        let nil = matches!(self.marker(), Some(Marker::Null));
        if nil {
            let _ = decode::read_nil(&mut self.bytes);
        }
        nil
    }

    /// A number of at least zero.
    ///
    /// # Errors
    /// If something else is there.
    pub fn uint(&mut self) -> Result<u64, Malformed> {
        decode::read_int(&mut self.bytes).map_err(|_| Malformed("a number was expected"))
    }

    /// A 64-bit integer.
    ///
    /// # Errors
    /// If something else is there.
    pub fn int(&mut self) -> Result<i64, Malformed> {
        decode::read_int(&mut self.bytes).map_err(|_| Malformed("an integer was expected"))
    }

    /// A finite float.
    ///
    /// # Errors
    /// If something else is there.
    pub fn float(&mut self) -> Result<f64, Malformed> {
        let float = decode::read_f64(&mut self.bytes).map_err(|_| Malformed("a float was expected"))?;
        if float.is_finite() {
            Ok(float)
        } else {
            Err(Malformed("a float that is not finite"))
        }
    }

    /// True or false.
    ///
    /// # Errors
    /// If something else is there.
    pub fn truth(&mut self) -> Result<bool, Malformed> {
        decode::read_bool(&mut self.bytes).map_err(|_| Malformed("true or false was expected"))
    }

    /// A text.
    ///
    /// # Errors
    /// If something else is there, or it is not UTF-8.
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        let length = decode::read_str_len(&mut self.bytes).map_err(|_| Malformed("a text was expected"))?;
        std::str::from_utf8(self.take(length as usize)?).map_err(|_| Malformed("a text that is not UTF-8"))
    }

    /// Bytes.
    ///
    /// # Errors
    /// If something else is there.
    pub fn binary(&mut self) -> Result<&'a [u8], Malformed> {
        let length = decode::read_bin_len(&mut self.bytes).map_err(|_| Malformed("bytes were expected"))?;
        self.take(length as usize)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let rest = self.rest();
        let taken = rest.get(..length).ok_or(Malformed("bytes that end too early"))?;
        self.bytes = Bytes::new(&rest[length..]);
        Ok(taken)
    }

    /// An int, float, bool or text, or nil as unknown.
    ///
    /// # Errors
    /// If something else is there.
    pub fn value(&mut self) -> Result<Value, Malformed> {
        match self.marker() {
            Some(Marker::Null) => {
                self.nil();
                Ok(Value::Unknown)
            }
            Some(Marker::True | Marker::False) => self.truth().map(Value::Bool),
            Some(Marker::F64) => self.float().map(Value::Float),
            Some(Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32) => {
                self.text().map(|text| Value::Str(Arc::from(text)))
            }
            _ => self.int().map(Value::Int),
        }
    }

    /// How far it has come.
    #[must_use]
    pub fn position(&self) -> usize {
        self.whole.len() - self.rest().len()
    }

    /// Refuses bytes that nobody read.
    ///
    /// # Errors
    /// If there are any.
    pub fn end(&self) -> Result<(), Malformed> {
        if self.rest().is_empty() {
            Ok(())
        } else {
            Err(Malformed("bytes after the end"))
        }
    }
}
