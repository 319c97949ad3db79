//! Numbers, texts and bytes.

/// Bytes of a name: a tenant, a mailbox, an id of a record.
pub const MAX_TEXT: usize = 2 << 10;

/// The bytes are not a message in our format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a message of a doorbell")]
pub struct Malformed;

/// Writes fields. What is longer than a reader would accept must not be written; callers check.
#[derive(Debug, Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(crate) fn number(&mut self, mut number: u64) {
        let lowest = |number: u64| number.to_le_bytes()[0];
        while let rest @ 1.. = number >> 7 {
            self.0.push(lowest(number) | 0x80);
            number = rest;
        }
        self.0.push(lowest(number));
    }

    pub(crate) fn time(&mut self, unix_micros: i64) {
        self.0.extend(unix_micros.to_be_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(crate) fn array<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.0.extend(bytes);
    }

    /// Whether there is a value; it follows.
    pub(crate) fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.byte(value.is_some().into());
        if let Some(value) = value {
            write(self, value);
        }
    }
}

/// Reads what a [`Writer`] wrote.
#[derive(Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has one bit left, and the last byte of a longer number is not zero.
            if bits << shift >> shift != bits || byte == 0 && shift > 0 {
                return Err(Malformed);
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed)
    }

    /// A count of what follows, each of which has a byte at least.
    pub(crate) fn count(&mut self, max: usize) -> Result<usize, Malformed> {
        let count = usize::try_from(self.number()?).map_err(|_| Malformed)?;
        if count <= max && count <= self.0.len() { Ok(count) } else { Err(Malformed) }
    }

    pub(crate) fn time(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_be_bytes)
    }

    pub(crate) fn bytes(&mut self, max: usize) -> Result<&'a [u8], Malformed> {
        let length = self.count(max)?;
        self.take(length)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes(MAX_TEXT)?).map_err(|_| Malformed)
    }

    /// A text that is the name of something.
    pub(crate) fn parsed<T: std::str::FromStr>(&mut self) -> Result<T, Malformed> {
        self.text()?.parse().map_err(|_| Malformed)
    }

    pub(crate) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        match self.byte()? {
            0 => Ok(None),
            1 => read(self).map(Some),
            _ => Err(Malformed),
        }
    }

    /// Fails if there is more.
    pub(crate) fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_form() {
        for number in [0, 1, 127, 128, 300, 1 << 14, u64::from(u32::MAX), 1 << 63, u64::MAX] {
            let mut writer = Writer::default();
            writer.number(number);
            let mut reader = Reader::new(&writer.0);
            assert_eq!(reader.number(), Ok(number));
            reader.end().unwrap();
        }
        let too_large = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        for bytes in [&[][..], &[0x80], &[0x80, 0x00], &[0xff, 0x80, 0x00], &too_large, &[0xff; 11]] {
            assert_eq!(Reader::new(bytes).number(), Err(Malformed), "{bytes:?}");
        }
    }

    #[test]
    fn a_length_beyond_the_end_or_the_limit_is_refused_before_anything_is_allocated() {
        let mut huge = Writer::default();
        huge.number(u64::MAX);
        assert_eq!(Reader::new(&huge.0).bytes(usize::MAX), Err(Malformed));
        assert_eq!(Reader::new(&[5, 1, 2]).bytes(100), Err(Malformed));
        assert_eq!(Reader::new(&[2, 1, 2]).bytes(1), Err(Malformed));
        assert_eq!(Reader::new(&[2, 1, 2]).bytes(2), Ok(&[1, 2][..]));
    }
}
