// @generated in every build by wrappers/generator, from wrappers/table and wrappers/abi.

use handles::Raw;

/// `MPI_Comm`.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct CommHandle(*mut Object);

impl Handle for CommHandle {
    #[inline(always)]
    fn object(self) -> *mut Object {
        Raw::object(self.0, HandleKind::Communicator)
    }

    #[inline(always)]
    fn of(object: *mut Object) -> Self {
        Self(Raw::of(object))
    }

    #[inline(always)]
    fn same(self, other: Self) -> bool {
        self.0 == other.0
    }

    #[cfg(application = "mpich")]
    #[inline(always)]
    fn known(self) -> Option<*mut Object> {
        Raw::known(self.0, HandleKind::Communicator)
    }
}

/// `MPI_Group`.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct GroupHandle(*mut Object);

impl Handle for GroupHandle {
    #[inline(always)]
    fn object(self) -> *mut Object {
        Raw::object(self.0, HandleKind::Group)
    }

    #[inline(always)]
    fn of(object: *mut Object) -> Self {
        Self(Raw::of(object))
    }

    #[inline(always)]
    fn same(self, other: Self) -> bool {
        self.0 == other.0
    }

    #[cfg(application = "mpich")]
    #[inline(always)]
    fn known(self) -> Option<*mut Object> {
        Raw::known(self.0, HandleKind::Group)
    }
}

/// `MPI_Datatype`.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct DatatypeHandle(*mut Object);

impl Handle for DatatypeHandle {
    #[inline(always)]
    fn object(self) -> *mut Object {
        Raw::object(self.0, HandleKind::Datatype)
    }

    #[inline(always)]
    fn of(object: *mut Object) -> Self {
        Self(Raw::of(object))
    }

    #[inline(always)]
    fn same(self, other: Self) -> bool {
        self.0 == other.0
    }

    #[cfg(application = "mpich")]
    #[inline(always)]
    fn known(self) -> Option<*mut Object> {
        Raw::known(self.0, HandleKind::Datatype)
    }
}

/// `MPI_Op`.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct OpHandle(*mut Object);

impl Handle for OpHandle {
    #[inline(always)]
    fn object(self) -> *mut Object {
        Raw::object(self.0, HandleKind::Operator)
    }

    #[inline(always)]
    fn of(object: *mut Object) -> Self {
        Self(Raw::of(object))
    }

    #[inline(always)]
    fn same(self, other: Self) -> bool {
        self.0 == other.0
    }

    #[cfg(application = "mpich")]
    #[inline(always)]
    fn known(self) -> Option<*mut Object> {
        Raw::known(self.0, HandleKind::Operator)
    }
}

/// `MPI_Request`.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct RequestHandle(*mut Object);

impl Handle for RequestHandle {
    #[inline(always)]
    fn object(self) -> *mut Object {
        Raw::object(self.0, HandleKind::Request)
    }

    #[inline(always)]
    fn of(object: *mut Object) -> Self {
        Self(Raw::of(object))
    }

    #[inline(always)]
    fn same(self, other: Self) -> bool {
        self.0 == other.0
    }

    #[cfg(application = "mpich")]
    #[inline(always)]
    fn known(self) -> Option<*mut Object> {
        Raw::known(self.0, HandleKind::Request)
    }
}

/// `MPI_Errhandler`.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct ErrhandlerHandle(*mut Object);

impl Handle for ErrhandlerHandle {
    #[inline(always)]
    fn object(self) -> *mut Object {
        Raw::object(self.0, HandleKind::Errhandler)
    }

    #[inline(always)]
    fn of(object: *mut Object) -> Self {
        Self(Raw::of(object))
    }

    #[inline(always)]
    fn same(self, other: Self) -> bool {
        self.0 == other.0
    }

    #[cfg(application = "mpich")]
    #[inline(always)]
    fn known(self) -> Option<*mut Object> {
        Raw::known(self.0, HandleKind::Errhandler)
    }
}

/// `MPI_Info`.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct InfoHandle(*mut Object);

impl Handle for InfoHandle {
    #[inline(always)]
    fn object(self) -> *mut Object {
        Raw::object(self.0, HandleKind::Info)
    }

    #[inline(always)]
    fn of(object: *mut Object) -> Self {
        Self(Raw::of(object))
    }

    #[inline(always)]
    fn same(self, other: Self) -> bool {
        self.0 == other.0
    }

    #[cfg(application = "mpich")]
    #[inline(always)]
    fn known(self) -> Option<*mut Object> {
        Raw::known(self.0, HandleKind::Info)
    }
}

/// `MPI_Message`.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct MessageHandle(*mut Object);

impl Handle for MessageHandle {
    #[inline(always)]
    fn object(self) -> *mut Object {
        Raw::object(self.0, HandleKind::Message)
    }

    #[inline(always)]
    fn of(object: *mut Object) -> Self {
        Self(Raw::of(object))
    }

    #[inline(always)]
    fn same(self, other: Self) -> bool {
        self.0 == other.0
    }

    #[cfg(application = "mpich")]
    #[inline(always)]
    fn known(self) -> Option<*mut Object> {
        Raw::known(self.0, HandleKind::Message)
    }
}

/// `MPI_Win`.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct WinHandle(*mut Object);

impl Handle for WinHandle {
    #[inline(always)]
    fn object(self) -> *mut Object {
        Raw::object(self.0, HandleKind::Window)
    }

    #[inline(always)]
    fn of(object: *mut Object) -> Self {
        Self(Raw::of(object))
    }

    #[inline(always)]
    fn same(self, other: Self) -> bool {
        self.0 == other.0
    }

    #[cfg(application = "mpich")]
    #[inline(always)]
    fn known(self) -> Option<*mut Object> {
        Raw::known(self.0, HandleKind::Window)
    }
}

/// `MPI_File`.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct FileHandle(*mut Object);

impl Handle for FileHandle {
    #[inline(always)]
    fn object(self) -> *mut Object {
        Raw::object(self.0, HandleKind::File)
    }

    #[inline(always)]
    fn of(object: *mut Object) -> Self {
        Self(Raw::of(object))
    }

    #[inline(always)]
    fn same(self, other: Self) -> bool {
        self.0 == other.0
    }

    #[cfg(application = "mpich")]
    #[inline(always)]
    fn known(self) -> Option<*mut Object> {
        Raw::known(self.0, HandleKind::File)
    }
}

/// `MPI_Aint`.
pub type Aint = isize;
/// `MPI_Count`.
pub type Count = i64;
/// `MPI_Offset`.
pub type Offset = i64;
/// `MPI_Fint`.
pub type Fint = c_int;
