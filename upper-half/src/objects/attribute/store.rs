//! Keyvals and the attributes that hang on objects: the store, which calls no function.
//!
//! An attribute remembers the language that set it, because the three bindings see one value in three ways
//! (MPI 5.0, section 19.3.7): C sees a pointer, Fortran's old functions an INTEGER, its new ones an
//! INTEGER(KIND=MPI_ADDRESS_KIND). C finds a value that Fortran set through a pointer to it.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use stillpoint_wrappers::gate::HandleKind;

use crate::ground::lock::SpinLock;

/// The binding that a keyval's functions, or an attribute's value, come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C,
    /// Fortran, MPI-1: INTEGER values.
    FortranInteger,
    /// Fortran, MPI-2: INTEGER(KIND=MPI_ADDRESS_KIND) values.
    FortranAddress,
    /// The former C++ bindings: C's functions, which find their context in the extra state.
    Cxx,
}

/// The parts of a keyval.
#[derive(Debug)]
pub struct Keyval {
    /// The kind of object that the keyval is for.
    pub kind: HandleKind,
    pub language: Language,
    /// Functions of the application; their types depend on kind and language.
    pub copy: usize,
    pub delete: usize,
    /// The extra state: a pointer, or the value itself in Fortran.
    pub extra: usize,
    /// One of MPI's own: can be neither freed nor set by the application.
    pub predefined: bool,
    /// The application has freed it.
    pub freed: AtomicBool,
    /// The functions that call the copy and the delete function, if a layer of the application's MPI has named them; otherwise 0.
    pub proxies: [AtomicUsize; 2],
}

impl Keyval {
    /// The value while no layer has named such functions.
    pub const fn no_proxies() -> [AtomicUsize; 2] {
        [const { AtomicUsize::new(0) }; 2]
    }
}

/// The value of an attribute as it was set.
#[derive(Debug)]
pub enum Value {
    Pointer(usize),
    Integer(Box<i32>),
    Address(Box<isize>),
}

impl Value {
    /// A value as a function of the given language gives it.
    pub fn new(language: Language, value: isize) -> Self {
        match language {
            Language::C | Language::Cxx => Self::Pointer(value as usize),
            Language::FortranInteger => Self::Integer(Box::new(value as i32)),
            Language::FortranAddress => Self::Address(Box::new(value)),
        }
    }

    /// The value itself, whatever language set it.
    pub fn raw(&self) -> isize {
        match self {
            Self::Pointer(value) => *value as isize,
            Self::Integer(value) => **value as isize,
            Self::Address(value) => **value,
        }
    }

    /// Another value, in the form in which this one was set.
    pub fn like(&self, value: isize) -> Self {
        match self {
            Self::Pointer(_) => Self::Pointer(value as usize),
            Self::Integer(_) => Self::Integer(Box::new(value as i32)),
            Self::Address(_) => Self::Address(Box::new(value)),
        }
    }

    /// The value as a function of the given language sees it.
    pub fn seen_by(&self, language: Language) -> isize {
        match (self, language) {
            (Self::Pointer(value), Language::FortranInteger) => *value as i32 as isize,
            (Self::Pointer(value), _) => *value as isize,
            (Self::Integer(value), Language::C | Language::Cxx) => {
                (&raw const **value) as *const c_void as isize
            }
            (Self::Integer(value), _) => **value as isize,
            (Self::Address(value), Language::C | Language::Cxx) => {
                (&raw const **value) as *const c_void as isize
            }
            (Self::Address(value), Language::FortranInteger) => **value as i32 as isize,
            (Self::Address(value), Language::FortranAddress) => **value,
        }
    }
}

/// One attribute of an object.
#[derive(Debug)]
pub struct Attribute {
    pub number: i32,
    /// Kept although the application may have freed the keyval.
    pub keyval: Arc<Keyval>,
    pub value: Value,
}

/// The first number that an application's keyval gets, as in Open MPI.
const FIRST_FREE: i32 = 12;

/// All keyvals and attributes of the process.
pub struct Store {
    keyvals: BTreeMap<i32, Arc<Keyval>>,
    /// Attributes by object, oldest first.
    attributes: BTreeMap<usize, Vec<Attribute>>,
    next: i32,
}

impl Store {
    const fn new() -> Self {
        Self {
            keyvals: BTreeMap::new(),
            attributes: BTreeMap::new(),
            next: FIRST_FREE,
        }
    }

    /// A new keyval's number.
    pub fn add(&mut self, keyval: Keyval) -> i32 {
        let number = self.next;
        self.next += 1;
        self.keyvals.insert(number, Arc::new(keyval));
        number
    }

    /// A predefined keyval, under the number that the application's MPI has for it.
    pub fn predefine(&mut self, number: i32, keyval: Keyval) {
        self.keyvals.insert(number, Arc::new(keyval));
    }

    /// The keyval of a number, if it is one for that kind of object.
    pub fn keyval(&self, kind: HandleKind, number: i32) -> Option<Arc<Keyval>> {
        self.keyvals
            .get(&number)
            .filter(|keyval| keyval.kind == kind)
            .cloned()
    }

    /// Notes the functions that call a keyval's functions.
    pub fn set_proxies(&self, number: i32, proxies: [usize; 2]) {
        if let Some(keyval) = self.keyvals.get(&number) {
            for (place, proxy) in keyval.proxies.iter().zip(proxies) {
                place.store(proxy, Ordering::Relaxed);
            }
        }
    }

    /// Frees a keyval: its number is forgotten once no attribute has it any more.
    pub fn remove(&mut self, kind: HandleKind, number: i32) -> bool {
        match self.keyval(kind, number) {
            Some(keyval) if !keyval.predefined => {
                keyval.freed.store(true, Ordering::Relaxed);
                drop(keyval);
                self.collect(number);
                true
            }
            _ => false,
        }
    }

    /// Forgets the number of a freed keyval that no attribute has.
    pub fn collect(&mut self, number: i32) {
        let unused = |keyval: &Arc<Keyval>| {
            keyval.freed.load(Ordering::Relaxed) && Arc::strong_count(keyval) == 1
        };
        if self.keyvals.get(&number).is_some_and(unused) {
            self.keyvals.remove(&number);
        }
    }

    /// An object's attribute.
    pub fn get(&self, object: usize, number: i32) -> Option<&Attribute> {
        self.attributes
            .get(&object)?
            .iter()
            .find(|attribute| attribute.number == number)
    }

    /// Hangs an attribute on an object, in place of an older one with the same keyval (which is dropped).
    pub fn set(&mut self, object: usize, attribute: Attribute) {
        let list = self.attributes.entry(object).or_default();
        list.retain(|other| other.number != attribute.number);
        list.push(attribute);
    }

    /// Gives an integer attribute another value, on every object that has it.
    pub fn change_integers(&mut self, number: i32, new: i32) {
        let all = self.attributes.values_mut().flatten();
        for attribute in all.filter(|attribute| attribute.number == number) {
            if let Value::Integer(value) = &mut attribute.value {
                **value = new;
            }
        }
    }

    /// Takes an attribute off an object.
    pub fn take(&mut self, object: usize, number: i32) -> Option<Attribute> {
        let list = self.attributes.get_mut(&object)?;
        let place = list.iter().position(|a| a.number == number)?;
        let attribute = list.remove(place);
        if list.is_empty() {
            self.attributes.remove(&object);
        }
        Some(attribute)
    }

    /// The numbers of an object's attributes, oldest first.
    pub fn numbers(&self, object: usize) -> Vec<i32> {
        self.attributes
            .get(&object)
            .map(|list| list.iter().map(|a| a.number).collect())
            .unwrap_or_default()
    }

    /// Attributes alive, predefined ones left out.
    pub fn count(&self) -> usize {
        let own = |a: &&Attribute| !a.keyval.predefined;
        self.attributes
            .values()
            .map(|list| list.iter().filter(own).count())
            .sum()
    }
}

/// The process's store. Never held while a function of the application runs.
pub static STORE: SpinLock<Store> = SpinLock::new(Store::new());

#[cfg(test)]
mod tests {
    use super::*;

    fn keyval(kind: HandleKind) -> Keyval {
        Keyval {
            kind,
            language: Language::C,
            copy: 0,
            delete: 0,
            extra: 0,
            predefined: false,
            freed: AtomicBool::new(false),
            proxies: Keyval::no_proxies(),
        }
    }

    #[test]
    fn languages_see_each_others_values() {
        let c = Value::new(Language::C, -2);
        assert_eq!(c.seen_by(Language::C), -2);
        assert_eq!(c.seen_by(Language::FortranInteger), -2);
        assert_eq!(c.seen_by(Language::FortranAddress), -2);
        let long = Value::new(Language::FortranAddress, 0x1_0000_0007);
        assert_eq!(long.seen_by(Language::FortranInteger), 7);
        assert_eq!(long.seen_by(Language::FortranAddress), 0x1_0000_0007);
        let integer = Value::new(Language::FortranInteger, -5);
        assert_eq!(integer.seen_by(Language::FortranAddress), -5);
        let pointer = integer.seen_by(Language::C) as *const i32;
        // SAFETY: C finds Fortran's integer through a pointer.
        assert_eq!(unsafe { *pointer }, -5);
    }

    #[test]
    fn a_freed_keyval_lasts_as_long_as_its_attributes() {
        let mut store = Store::new();
        let number = store.add(keyval(HandleKind::Communicator));
        assert!(store.keyval(HandleKind::Datatype, number).is_none());
        let held = store.keyval(HandleKind::Communicator, number).unwrap();
        let value = Value::new(Language::C, 1);
        let attribute = Attribute {
            number,
            keyval: held,
            value,
        };
        store.set(64, attribute);
        assert!(store.remove(HandleKind::Communicator, number));
        assert_eq!(store.numbers(64), [number]);
        assert!(store.keyval(HandleKind::Communicator, number).is_some());
        drop(store.take(64, number).unwrap());
        store.collect(number);
        assert!(store.keyval(HandleKind::Communicator, number).is_none());
        assert!(!store.remove(HandleKind::Communicator, number));
        assert!(store.take(64, number).is_none());
        assert_eq!(store.count(), 0);
    }
}
