//! Descriptors that are restored, and descriptors that cannot be.

use super::*;

#[test]
fn files_come_back_with_offset_flags_length_and_duplicates() {
    let _alone = PROCESS.lock();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .unwrap();
    file.write_all(b"before\n").unwrap();
    let mut read = File::open(&path).unwrap();
    read.seek(SeekFrom::Start(3)).unwrap();
    // SAFETY: F_SETFL takes flags; the descriptor is this test's own.
    unsafe {
        libc::fcntl(
            file.as_raw_fd(),
            libc::F_SETFL,
            libc::O_APPEND | libc::O_NONBLOCK,
        )
    };
    let numbers = [
        at(301, file.try_clone().unwrap()),
        at(302, file),
        at(303, read),
    ];
    // SAFETY: F_SETFD takes flags; the descriptor is this test's own.
    unsafe { libc::fcntl(303, libc::F_SETFD, libc::FD_CLOEXEC) };
    let image = directory.path().join("image");
    let table = write(&image, &numbers);
    assert_eq!(table.descriptions.len(), 2);
    close(&numbers);
    std::fs::write(&path, "before\nafter, to be cut off\n").unwrap();

    restore_descriptors(&image).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"before\n");
    borrow(302).write_all(b"again\n").unwrap();
    assert_eq!(borrow(301).stream_position().unwrap(), 13);
    let mut rest = String::new();
    borrow(303).read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "ore\nagain\n");
    // SAFETY: the calls take numbers and read flags; the descriptors are this test's own.
    unsafe {
        assert_eq!(libc::fcntl(301, libc::F_GETFD), 0);
        assert_eq!(libc::fcntl(303, libc::F_GETFD), libc::FD_CLOEXEC);
        let flags = libc::O_APPEND | libc::O_NONBLOCK | libc::O_WRONLY;
        assert_eq!(
            libc::fcntl(301, libc::F_GETFL) & (flags | libc::O_ACCMODE),
            flags
        );
    }
    close(&numbers);
}

#[test]
fn a_file_without_a_name_travels_in_the_image() {
    let _alone = PROCESS.lock();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("scratch");
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    file.write_all(b"scratch").unwrap();
    file.seek(SeekFrom::Start(10 << 20)).unwrap();
    file.write_all(b"far away").unwrap();
    file.seek(SeekFrom::Start(2)).unwrap();
    std::fs::remove_file(&path).unwrap();
    let name = CString::new("note").unwrap();
    // SAFETY: the name ends in NUL; the call makes a descriptor, which `owned` takes over at once.
    let mut memory = File::from(owned(unsafe {
        libc::memfd_create(name.as_ptr(), libc::MFD_ALLOW_SEALING)
    }));
    memory.write_all(b"in memory").unwrap();
    // SAFETY: F_ADD_SEALS takes flags; the descriptor is this test's own.
    unsafe { libc::fcntl(memory.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) };
    let numbers = [at(311, file), at(312, memory)];
    let image = directory.path().join("image");
    write(&image, &numbers);
    assert!(
        std::fs::metadata(&image).unwrap().len() < 1 << 16,
        "holes take no room"
    );
    close(&numbers);

    restore_descriptors(&image).unwrap();
    let mut bytes = Vec::new();
    borrow(311).read_to_end(&mut bytes).unwrap();
    assert_eq!((bytes.len(), &bytes[..5]), ((10 << 20) + 6, &b"ratch"[..]));
    assert!(bytes.ends_with(b"far away"));
    assert_eq!(borrow(312).stream_position().unwrap(), 9);
    borrow(312).seek(SeekFrom::Start(0)).unwrap();
    let mut text = String::new();
    borrow(312).read_to_string(&mut text).unwrap();
    assert_eq!(text, "in memory");
    // SAFETY: F_GET_SEALS has no argument; the descriptor is this test's own.
    assert_eq!(
        // SAFETY: F_GET_SEALS has no argument; the descriptor is this test's own.
        unsafe { libc::fcntl(312, libc::F_GET_SEALS) },
        libc::F_SEAL_SHRINK
    );
    close(&numbers);
}

#[test]
fn pipes_counters_timers_and_epoll_sets_come_back() {
    let _alone = PROCESS.lock();
    let directory = tempfile::tempdir().unwrap();
    let mut ends = [0; 2];
    let time = |seconds| libc::timespec {
        tv_sec: seconds,
        tv_nsec: 0,
    };
    // SAFETY: the calls make descriptors, which are this test's own, from structures that live on this stack.
    let numbers = unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        let reader = at(321, owned(ends[0]));
        let writer = at(322, owned(ends[1]));
        let counter = at(323, owned(libc::eventfd(7, libc::EFD_NONBLOCK)));
        let timer = at(324, owned(libc::timerfd_create(libc::CLOCK_MONOTONIC, 0)));
        let setting = libc::itimerspec {
            it_interval: time(5),
            it_value: time(1000),
        };
        assert_eq!(
            libc::timerfd_settime(timer, 0, &raw const setting, std::ptr::null_mut()),
            0
        );
        let mask = 1u64 << 11;
        let signals = at(
            325,
            owned(libc::syscall(libc::SYS_signalfd4, -1, &raw const mask, 8, 0) as i32),
        );
        let set = at(326, owned(libc::epoll_create1(0)));
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: 0x1234_5678_9abc,
        };
        assert_eq!(
            libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, reader, &raw mut event),
            0
        );
        [reader, writer, counter, timer, signals, set]
    };
    borrow(322).write_all(b"on its way").unwrap();
    let image = directory.path().join("image");
    let before = write(&image, &numbers);
    let mut bytes = [0; 4];
    borrow(321).read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"on i", "looking into a pipe takes nothing out");
    close(&numbers);

    restore_descriptors(&image).unwrap();
    let after = capture::descriptors::survey(&numbers, &mut Contents::default()).unwrap();
    for (one, other) in before.descriptions.iter().zip(&after.descriptions) {
        match (&one.kind, &other.kind) {
            (DescriptorKind::Pipe { .. }, DescriptorKind::Pipe { .. }) => {}
            (
                DescriptorKind::TimerFd {
                    value_nanoseconds: before,
                    interval_nanoseconds: 5_000_000_000,
                    ..
                },
                DescriptorKind::TimerFd {
                    value_nanoseconds: after,
                    interval_nanoseconds: 5_000_000_000,
                    ..
                },
            ) => assert!(before >= after && before - after < 60_000_000_000),
            (one, other) => assert_eq!(one, other),
        }
        assert_eq!(one.flags, other.flags, "{:?}", one.kind);
    }
    let mut text = [0; 10];
    borrow(321).read_exact(&mut text).unwrap();
    assert_eq!(&text, b"on its way");
    borrow(322).write_all(b"x").unwrap();
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: the kernel writes at most one event, which lives on this stack.
    assert_eq!(unsafe { libc::epoll_wait(326, &raw mut event, 1, 1000) }, 1);
    assert_eq!({ event.u64 }, 0x1234_5678_9abc);
    close(&numbers[1..2]);
    let mut rest = Vec::new();
    borrow(321).read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"x", "no copy of the writing end is left open");
    close(&numbers);
}

#[test]
fn locks_are_taken_again_or_who_holds_them_is_named() {
    let _alone = PROCESS.lock();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locked");
    let range = libc::flock {
        l_type: libc::F_WRLCK as i16,
        l_whence: 0,
        l_start: 10,
        l_len: 10,
        l_pid: 0,
    };
    let numbers = [at(331, File::create(&path).unwrap())];
    // SAFETY: the lock's structure lives on this stack; the descriptor is this test's own.
    unsafe {
        assert_eq!(libc::flock(331, libc::LOCK_EX), 0);
        assert_eq!(libc::fcntl(331, libc::F_SETLK, &raw const range), 0);
    }
    let image = directory.path().join("image");
    write(&image, &numbers);
    close(&numbers);
    let other = OpenOptions::new().write(true).open(&path).unwrap();
    let try_lock = || {
        // SAFETY: the call takes numbers; the descriptor is this test's own.
        unsafe { libc::flock(other.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }
    };
    assert_eq!(try_lock(), 0);
    let refused = restore_descriptors(&image).unwrap_err().to_string();
    assert!(
        refused.contains("a lock on all of") && refused.contains("holds it now")
            || refused.contains("may hold it now"),
        "{refused}"
    );
    // SAFETY: the lock's structure lives on this stack; the descriptor is this test's own. The open file's lock is in the way of the process's.
    unsafe {
        libc::flock(other.as_raw_fd(), libc::LOCK_UN);
        let taken = libc::fcntl(other.as_raw_fd(), libc::F_OFD_SETLK, &raw const range);
        assert_eq!(taken, 0);
    }
    let refused = restore_descriptors(&image).unwrap_err().to_string();
    assert!(refused.contains("a lock on bytes 10 to 19 of"), "{refused}");
    drop(other);
    restore_descriptors(&image).unwrap();
    let locks = std::fs::read_to_string("/proc/self/fdinfo/331").unwrap();
    assert!(
        locks.contains("FLOCK") && locks.contains("POSIX"),
        "{locks}"
    );
    close(&numbers);
}

#[test]
fn what_cannot_be_carried_is_named() {
    let _alone = PROCESS.lock();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let kept = std::process::Command::new("sleep")
        .arg("100")
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = kept;
    let pipe = child.stdin.take().unwrap();
    let numbers = [at(341, listener), at(342, stream), at(343, pipe)];
    let refusals = capture::descriptors::survey(&numbers, &mut Contents::default()).unwrap_err();
    assert!(
        refusals[0].details().starts_with(&format!(
            "descriptor 341 is a listening TCP socket at 127.0.0.1:{port}"
        )),
        "{refusals:?}"
    );
    assert!(
        refusals[1].details().starts_with(&format!(
            "descriptor 342 is a TCP connection to 127.0.0.1:{port}"
        )),
        "{refusals:?}"
    );
    assert!(
        refusals[2].details().contains(&format!(
            "a pipe whose other end process {} (sleep) has",
            child.id()
        )),
        "{refusals:?}"
    );
    let children = capture::children::alive(&[]);
    assert!(
        children
            .iter()
            .any(|reason| reason.details().contains("(sleep)")),
        "{children:?}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    close(&numbers);
}

#[test]
fn a_file_that_has_become_shorter_stops_the_restart() {
    let _alone = PROCESS.lock();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    std::fs::write(&path, "twelve bytes").unwrap();
    let numbers = [at(351, OpenOptions::new().write(true).open(&path).unwrap())];
    let image = directory.path().join("image");
    let table = write(&image, &numbers);
    close(&numbers);
    std::fs::write(&path, "short").unwrap();
    let reasons = descriptors::missing(&table);
    assert!(
        reasons[0]
            .details()
            .contains("has 5 bytes now and had 12 at the checkpoint"),
        "{reasons:?}"
    );
    let refused = Restore::check(
        Reader::open(&image).unwrap(),
        &environment::here(),
        1,
        |_| vec![],
    )
    .err()
    .unwrap();
    assert!(
        refused.to_string().contains("had 12 at the checkpoint"),
        "{refused}"
    );
    std::fs::remove_file(&path).unwrap();
    assert!(
        descriptors::missing(&table)[0]
            .details()
            .contains("cannot be opened")
    );
}
