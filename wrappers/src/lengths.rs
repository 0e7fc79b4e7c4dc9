//! The lengths of MPI's texts, which an ABI defines. A program of one ABI that runs on a library of another gets only as much as fits into its buffers.

/// The size of each text, with the terminating NUL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    pub datarep_string: usize,
    pub error_string: usize,
    pub info_key: usize,
    pub library_version: usize,
    pub object_name: usize,
    pub port_name: usize,
    pub processor_name: usize,
}

impl Lengths {
    /// Returns the lengths of an ABI, by the name of its module.
    pub const fn of(abi: &str) -> Option<Lengths> {
        match abi.as_bytes() {
            b"openmpi" => Some(OPEN_MPI),
            b"abi" => Some(STANDARD),
            b"mpich" => Some(MPICH),
            _ => None,
        }
    }

    /// Returns the greatest length.
    pub const fn longest(self) -> usize {
        let each = [
            self.datarep_string,
            self.error_string,
            self.info_key,
            self.library_version,
            self.object_name,
            self.port_name,
            self.processor_name,
        ];
        let (mut most, mut index) = (0, 0);
        while index < each.len() {
            if each[index] > most {
                most = each[index];
            }
            index += 1;
        }
        most
    }
}

macro_rules! lengths {
    ($abi:ident) => {
        Lengths {
            datarep_string: crate::$abi::MAX_DATAREP_STRING,
            error_string: crate::$abi::MAX_ERROR_STRING,
            info_key: crate::$abi::MAX_INFO_KEY,
            library_version: crate::$abi::MAX_LIBRARY_VERSION_STRING,
            object_name: crate::$abi::MAX_OBJECT_NAME,
            port_name: crate::$abi::MAX_PORT_NAME,
            processor_name: crate::$abi::MAX_PROCESSOR_NAME,
        }
    };
}

const OPEN_MPI: Lengths = lengths!(openmpi);
const MPICH: Lengths = lengths!(mpich);
/// The standard's own lengths.
pub const STANDARD: Lengths = lengths!(abi);

const _: () = assert!(STANDARD.longest() == crate::abi::MAX_LIBRARY_VERSION_STRING);
