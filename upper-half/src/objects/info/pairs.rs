//! Keys and values of an info object, in the order in which they were set.

/// A list of keys and values; keys are unique.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs(Vec<(Vec<u8>, Vec<u8>)>);

impl Pairs {
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let found = self.0.iter().find(|(k, _)| k == key);
        found.map(|(_, value)| value.as_slice())
    }

    /// Sets a key's value; a new key comes last.
    pub fn set(&mut self, key: &[u8], value: &[u8]) {
        match self.0.iter_mut().find(|(k, _)| k == key) {
            Some((_, old)) => *old = value.to_vec(),
            None => self.0.push((key.to_vec(), value.to_vec())),
        }
    }

    /// Sets the value of a key that is there already.
    pub fn update(&mut self, key: &[u8], value: &[u8]) {
        if self.get(key).is_some() {
            self.set(key, value);
        }
    }

    /// Takes a key out. Returns whether it was there.
    pub fn delete(&mut self, key: &[u8]) -> bool {
        let before = self.0.len();
        self.0.retain(|(k, _)| k != key);
        self.0.len() != before
    }

    /// The key at a place.
    pub fn key(&self, place: usize) -> Option<&[u8]> {
        self.0.get(place).map(|(key, _)| key.as_slice())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(k, v)| (k.as_slice(), v.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::Pairs;

    #[test]
    fn keys_keep_their_order_and_are_unique() {
        let mut pairs = Pairs::new();
        pairs.set(b"one", b"1");
        pairs.set(b"two", b"2");
        pairs.set(b"one", b"uno");
        assert_eq!(pairs.len(), 2);
        assert_eq!(pairs.key(0), Some(&b"one"[..]));
        assert_eq!(pairs.get(b"one"), Some(&b"uno"[..]));
        assert!(pairs.delete(b"one"));
        assert!(!pairs.delete(b"one"));
        assert_eq!(pairs.key(0), Some(&b"two"[..]));
        assert_eq!(pairs.key(1), None);
        pairs.update(b"three", b"3");
        assert_eq!(pairs.get(b"three"), None);
        assert!(!pairs.is_empty());
        assert_eq!(pairs.iter().next(), Some((&b"two"[..], &b"2"[..])));
    }
}
