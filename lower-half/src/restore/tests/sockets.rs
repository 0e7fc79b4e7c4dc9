//! Sockets that a restart cannot restore.

use super::*;

#[test]
fn a_socket_whose_other_end_is_elsewhere_is_refused_by_name() {
    let _alone = PROCESS.lock();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("name");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let client = std::os::unix::net::UnixStream::connect(&path).unwrap();
    let alone = std::os::unix::net::UnixDatagram::unbound().unwrap();
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut child = std::process::Command::new("sleep")
        .arg("100")
        .stdin(OwnedFd::from(theirs))
        .spawn()
        .unwrap();
    let numbers = [
        at(351, listener),
        at(352, client),
        at(353, alone),
        at(354, ours),
    ];
    let refusals = capture::descriptors::survey(&numbers, &mut Contents::default()).unwrap_err();
    let place = path.display();
    let expected = [
        format!("descriptor 351 is a listening Unix socket at '{place}'"),
        format!("descriptor 352 is a Unix connection to '{place}'"),
        "descriptor 353 is a Unix socket that is not connected".to_owned(),
        format!(
            "descriptor 354 is a Unix socket that process {} (sleep) has an end of",
            child.id()
        ),
    ];
    assert_eq!(refusals.len(), expected.len(), "{refusals:?}");
    for (refusal, expected) in refusals.iter().zip(&expected) {
        assert!(refusal.details().starts_with(expected), "{refusal}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    close(&numbers);
}

#[test]
fn a_message_with_descriptors_in_it_is_refused_and_stays() {
    let _alone = PROCESS.lock();
    let (one, other) = std::os::unix::net::UnixDatagram::pair().unwrap();
    let numbers = [at(361, one), at(362, other)];
    let mut control = [0u64; 8];
    let mut byte = 7u8;
    let mut part = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    // SAFETY: zeros are a valid header; it leads to values that live on this stack, and the control buffer has room for one number.
    let sent = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_SPACE(4) as usize;
        let message = libc::CMSG_FIRSTHDR(&raw const header);
        (*message).cmsg_level = libc::SOL_SOCKET;
        (*message).cmsg_type = libc::SCM_RIGHTS;
        (*message).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(message).cast::<i32>().write_unaligned(1);
        libc::sendmsg(361, &raw const header, 0)
    };
    assert_eq!(sent, 1);
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open();
    for _ in 0..2 {
        let refusals =
            capture::descriptors::survey(&numbers, &mut Contents::default()).unwrap_err();
        assert!(
            refusals[0]
                .details()
                .starts_with("descriptor 362 is a Unix socket whose content cannot be told")
                && refusals[0].code() == Code::PassedDescriptors
                && refusals[0].details().contains("descriptors are under way"),
            "{refusals:?}"
        );
    }
    assert_eq!(open(), before);
    close(&numbers);
}
