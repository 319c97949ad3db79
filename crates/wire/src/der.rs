//! The little of DER that locks of devices need, strictly: one text for one value, and nothing after it.

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;

/// The rest of a text that is read from its beginning.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The content of a value with this tag, whose length is written in the shortest way.
    fn value(&mut self, tag: u8) -> Option<&'a [u8]> {
        if self.byte()? != tag {
            return None;
        }
        let length = match self.byte()? {
            short @ 0..=0x7f => usize::from(short),
            0x81 => Some(usize::from(self.byte()?)).filter(|length| *length >= 0x80)?,
            0x82 => Some(usize::from(u16::from_be_bytes([self.byte()?, self.byte()?])))
                .filter(|length| *length >= 0x100)?,
            _ => return None,
        };
        let (content, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(content)
    }

    /// The digits of an integer above zero, without leading zeros.
    fn positive(&mut self) -> Option<&'a [u8]> {
        match self.value(INTEGER)? {
            // A zero is there only where the number would be negative without it.
            [0, digits @ ..] => {
                Some(digits).filter(|digits| digits.first().is_some_and(|first| *first >= 0x80))
            }
            digits => Some(digits).filter(|digits| digits.first().is_some_and(|first| *first < 0x80)),
        }
    }

    fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Two integers above zero in a sequence, and nothing else.
pub(crate) fn two_positives(der: &[u8]) -> Option<[&[u8]; 2]> {
    let mut outer = Reader(der);
    let mut inner = Reader(outer.value(SEQUENCE)?);
    outer.end()?;
    let numbers = [inner.positive()?, inner.positive()?];
    inner.end()?;
    Some(numbers)
}

/// The key in a `SubjectPublicKeyInfo` whose algorithm is written exactly so.
pub(crate) fn public_key<'a>(der: &'a [u8], algorithm: &[u8]) -> Option<&'a [u8]> {
    let mut outer = Reader(der);
    let mut inner = Reader(outer.value(SEQUENCE)?);
    outer.end()?;
    let written = inner.0;
    let named = inner.value(SEQUENCE)?;
    // The algorithm with its tag and length: what was read of the sequence so far.
    let read = &written[..written.len() - inner.0.len()];
    let bits = inner.value(BIT_STRING)?;
    inner.end()?;
    // No bit of the last byte is unused.
    let key = bits.strip_prefix(&[0])?;
    (read == algorithm && !named.is_empty()).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_numbers_are_read_in_their_one_text_only() {
        assert_eq!(two_positives(&[0x30, 6, 2, 1, 1, 2, 1, 0x7f]), Some([[1].as_slice(), &[0x7f]]));
        assert_eq!(two_positives(&[0x30, 8, 2, 2, 0, 0x80, 2, 2, 1, 0]), Some([[0x80].as_slice(), &[1, 0]]));
        let others: [&[u8]; 12] = [
            &[],
            &[0x30, 6, 2, 1, 1, 2, 1, 0x7f, 0],
            &[0x30, 7, 2, 1, 1, 2, 1, 0x7f, 0],
            &[0x30, 0x81, 6, 2, 1, 1, 2, 1, 0x7f],
            &[0x30, 0x80, 2, 1, 1, 2, 1, 0x7f, 0, 0],
            &[0x30, 7, 2, 2, 0, 1, 2, 1, 0x7f],
            &[0x30, 6, 2, 1, 0x80, 2, 1, 0x7f],
            &[0x30, 6, 2, 1, 0, 2, 1, 0x7f],
            &[0x30, 5, 2, 0, 2, 1, 0x7f],
            &[0x31, 6, 2, 1, 1, 2, 1, 0x7f],
            &[0x30, 3, 2, 1, 1],
            &[0x30, 6, 2, 1, 1, 2, 1],
        ];
        for other in others {
            assert_eq!(two_positives(other), None, "{other:?}");
        }
    }
}
