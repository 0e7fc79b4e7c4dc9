//! The environment variables of the application and of the lower half.
//!
//! The application's environment is the one that the process was started with, without Stillpoint's own variables. At its end, the application's loader finds
//! some more, which preload Stillpoint's small library before the user's libraries; that library removes them. The lower half does not preload the user's
//! libraries: a thread would have two views of an allocator's storage (`threads::near`), and a library that counts MPI calls would count those of both halves.
//!
//! The lower half's environment also has variables that switch off MPI's caches of registered memory. Those caches are flushed by watching `munmap` in the
//! lower half's libc, which does not see the upper half's unmapping. The cost is a registration for each large message on networks that need one; shared memory
//! and TCP need none. MPI's own handlers for crashes are switched off too: they would run in the application's thread, with its thread pointer, crash there,
//! and hide the signal that ended the program.
//! Settings that only one MPI library needs are in its own module (`mpi/backend`).

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use stillpoint_wrappers::gate::FOR_LOADER;

const OURS: &[u8] = b"STILLPOINT_";
pub const PRELOAD: &[u8] = b"LD_PRELOAD=";
pub const AUDIT: &[u8] = b"LD_AUDIT=";
/// The variables for the user's dynamic loader, and those that keep their values until the application's environment is made
/// ([`stillpoint_protocol::launch::KEPT_FROM_LOADER`]).
pub const KEPT_FROM_LOADER: [(&[u8], &[u8]); 2] = [
    (PRELOAD, b"STILLPOINT_PRELOAD="),
    (AUDIT, b"STILLPOINT_AUDIT="),
];

/// With an audit library, the loader fixes the size of static thread-local storage before it knows any other library, and leaves little space for the upper
/// half's.
const STATIC_STORAGE: &[u8] = b"GLIBC_TUNABLES=glibc.rtld.optional_static_tls=32768";

/// Returns the variable that keeps this one (`NAME=`) from the lower half's loader.
pub fn keeper(name: &[u8]) -> &'static [u8] {
    let mut pairs = KEPT_FROM_LOADER.into_iter();
    pairs
        .find(|(own, _)| *own == name)
        .map_or(b"", |(_, keeper)| keeper)
}

/// Variables that each process sets anew for programs that it executes or starts.
const TOLD_ANEW: [&str; 5] = [
    super::input::VARIABLE,
    super::inherited::HELD_VARIABLE,
    "STILLPOINT_STREAMS",
    "STILLPOINT_SCHEDULING",
    "STILLPOINT_ATTRIBUTES",
];

/// Switches off caches of registered memory, their watching of memory, and handlers of crashes in libraries below MPI.
const SWITCHED_OFF: [(&str, &str); 5] = [
    ("UCX_HANDLE_ERRORS", "none"),
    ("UCX_RCACHE_ENABLE", "n"),
    ("UCX_MEM_EVENTS", "n"),
    ("FI_MR_CACHE_MAX_COUNT", "0"),
    ("FI_MR_CACHE_MONITOR", "disabled"),
];

/// UCX prints its messages on the standard output, which is the program's. (At a suspend it complains of messages that had begun.)
const UNLESS_TOLD: (&str, &str) = ("UCX_LOG_FILE", "stderr");

fn variables() -> impl Iterator<Item = Vec<u8>> {
    std::env::vars_os().map(|(name, value)| {
        let mut variable = name.as_bytes().to_vec();
        variable.push(b'=');
        variable.extend(value.as_bytes());
        variable
    })
}

/// The application's environment.
pub struct Environment {
    pub variables: Vec<CString>,
    /// The variables at the end that only its loader sees.
    pub of_loader: Vec<CString>,
}

/// Whether a library is a runtime that must be loaded first, or it ends the program: AddressSanitizer's.
fn must_be_first(library: &str) -> bool {
    let name = library.rsplit('/').next().unwrap_or(library);
    name.starts_with("libasan.so") || name.starts_with("libclang_rt.asan")
}

/// Returns the environment of an application that names the libraries `needed`. `preloaded`: the libraries that are preloaded before the user's.
pub fn of_application(preloaded: &[&Path], needed: &[String]) -> Environment {
    let mut own: Vec<Vec<u8>> = vec![];
    for variable in variables() {
        let kept = KEPT_FROM_LOADER.into_iter().find_map(|(name, keeper)| {
            let value = variable.strip_prefix(keeper)?;
            Some([name, value].concat())
        });
        match kept {
            Some(kept) => own.push(kept),
            None if variable.starts_with(OURS) => {}
            None => own.push(variable),
        }
    }
    let users = own
        .iter()
        .rev()
        .find_map(|variable| variable.strip_prefix(PRELOAD));
    let users = String::from_utf8_lossy(users.unwrap_or_default()).into_owned();
    let audited = own.iter().any(|variable| variable.starts_with(AUDIT));
    let of_loader = (!preloaded.is_empty()).then(|| {
        let users = users.split([':', ' ']).filter(|path| !path.is_empty());
        let all = needed.iter().map(String::as_str).chain(users.clone());
        let first = all.filter(|library| must_be_first(library)).take(1);
        let preloaded: Vec<_> = preloaded.iter().map(|it| it.to_string_lossy()).collect();
        let preloaded = preloaded.iter().map(|it| &**it);
        let list: Vec<&str> = first.chain(preloaded).chain(users).collect();
        let mut variables = vec![FOR_LOADER.to_bytes().to_vec()];
        variables.extend(audited.then(|| STATIC_STORAGE.to_vec()));
        variables.push([PRELOAD, list.join(":").as_bytes()].concat());
        if variables.len() % 2 != 0 {
            variables.push(FOR_LOADER.to_bytes().to_vec());
        }
        variables
    });
    // Strings from the environment contain no NUL.
    let text = |variable: Vec<u8>| CString::new(variable).ok();
    let of_loader = of_loader.unwrap_or_default();
    Environment {
        variables: own.into_iter().filter_map(text).collect(),
        of_loader: of_loader.into_iter().filter_map(text).collect(),
    }
}

/// Returns Stillpoint's own variables, for the next split process that an `execve` of the application starts.
pub fn kept() -> Vec<CString> {
    let ours = variables().filter(|variable| {
        variable.starts_with(OURS)
            && !variable.starts_with(b"STILLPOINT_FILTER=")
            && KEPT_FROM_LOADER
                .iter()
                .all(|(_, keeper)| !variable.starts_with(keeper))
            && !variable.starts_with(b"STILLPOINT_HOLDS=")
            && !TOLD_ANEW.iter().any(|name| {
                let rest = variable.strip_prefix(name.as_bytes());
                rest.is_some_and(|rest| rest.starts_with(b"="))
            })
    });
    ours.filter_map(|variable| CString::new(variable).ok())
        .collect()
}

/// Sets the variables for the real MPI: `own`, those for libraries below MPI, and `unless_told`, which the user may override.
///
/// # Safety
/// No other thread may run yet.
pub unsafe fn prepare_for_mpi(own: &[(&str, &str)], unless_told: &[(&str, &str)]) {
    for (name, value) in own.iter().chain(&SWITCHED_OFF) {
        // SAFETY: the caller says that no other thread runs yet that could look at the environment.
        unsafe { std::env::set_var(name, value) };
    }
    for (name, value) in unless_told.iter().chain([&UNLESS_TOLD]) {
        if std::env::var_os(name).is_none() {
            // SAFETY: the caller says that no other thread runs yet that could look at the environment.
            unsafe { std::env::set_var(name, value) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_and_the_lower_half_use_the_same_names() {
        let names = stillpoint_protocol::launch::KEPT_FROM_LOADER
            .map(|(name, keeper)| (format!("{name}="), format!("{keeper}=")));
        for ((name, keeper), own) in names.iter().zip(KEPT_FROM_LOADER) {
            assert_eq!((name.as_bytes(), keeper.as_bytes()), own);
        }
    }

    #[test]
    fn the_loader_alone_sees_the_library_and_the_address_sanitizer_comes_before_it() {
        let library = Path::new("/a/libstillpoint_preload.so");
        let needed = ["libmpi.so.40".to_owned(), "libasan.so.8".to_owned()];
        let found = of_application(&[library], &needed);
        // They begin with the word that identifies them, and are an even number: they become pairs.
        let of_loader: Vec<&[u8]> = found.of_loader.iter().map(|text| text.to_bytes()).collect();
        let preload = b"LD_PRELOAD=libasan.so.8:/a/libstillpoint_preload.so";
        assert_eq!(of_loader, [FOR_LOADER.to_bytes(), &preload[..]]);
        let shown = |variable: &CString| variable.to_bytes().starts_with(PRELOAD);
        assert!(!found.variables.iter().any(shown));
        assert!(of_application(&[], &needed).of_loader.is_empty());
    }
}
