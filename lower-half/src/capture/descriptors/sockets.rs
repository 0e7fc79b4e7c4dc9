//! Sockets: pairs can be carried; others are described in words, because the other side of a connection cannot be taken along.

use std::os::fd::RawFd;

use stillpoint_image::descriptors::DescriptorKind;
use stillpoint_refusals::{Refusal, refusal};

use super::pairs::OtherEnd;
use super::{All, OpenDescriptor, outward, pairs, unconnected};
use crate::capture::contents::Contents;
use crate::ground::socket_names;
use crate::ground::socket_options::option;

const ADVICE: &str = "close it before a checkpoint";
const MAY_BE_LOST: &str = ", or let a restart lose it (--sockets reset)";
const MAY_BE_MADE: &str = ", or let a restart make it again (--sockets reset)";

/// Describes a socket, or says why it cannot be carried.
pub fn describe(
    open: &OpenDescriptor,
    all: &All<'_>,
    contents: &mut Contents,
) -> Result<DescriptorKind, Refusal> {
    let number = open.number;
    let (domain, kind) = (
        option(number, libc::SO_DOMAIN),
        option(number, libc::SO_TYPE),
    );
    let listens = option(number, libc::SO_ACCEPTCONN) == 1;
    let may_be_lost = outward::may_be_lost();
    let what = match (domain, kind) {
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM) if may_be_lost => {
            return match outward::connection(number, domain) {
                Some(lost) => Ok(lost),
                None => unconnected::describe(open, all, (domain, kind)),
            };
        }
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM) if may_be_lost => {
            return unconnected::describe(open, all, (domain, kind));
        }
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM) => "TCP",
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM) => "UDP",
        (libc::AF_UNIX, _) if listens && (may_be_lost || has_abstract_name(number)) => {
            return unconnected::describe(open, all, (domain, kind));
        }
        (libc::AF_UNIX, _) => {
            let streams = kind != libc::SOCK_DGRAM;
            match pairs::other_end(open, all) {
                OtherEnd::Elsewhere if streams && may_be_lost => {
                    return Ok(pairs::lost(open, kind));
                }
                // Its name matters no more.
                OtherEnd::Closed if streams && may_be_lost => {}
                other => {
                    if let Some(reason) = named(number) {
                        let hint = match other {
                            _ if listens => MAY_BE_MADE,
                            OtherEnd::Elsewhere if streams => MAY_BE_LOST,
                            _ => "",
                        };
                        return Err(refusal!(OpenSocket, "{reason}: {ADVICE}{hint}"));
                    }
                }
            }
            return pairs::describe(open, all, kind, contents);
        }
        (libc::AF_NETLINK, _) => "netlink",
        _ => "network",
    };
    let hint = match what {
        "TCP" if !listens => MAY_BE_LOST,
        "TCP" | "UDP" => MAY_BE_MADE,
        _ => "",
    };
    if listens {
        let at = name(number, libc::getsockname).map_or(String::new(), |at| format!(" at {at}"));
        return Err(refusal!(
            OpenSocket,
            "a listening {what} socket{at}: {ADVICE}{hint}"
        ));
    }
    Err(match name(number, libc::getpeername) {
        Some(peer) => refusal!(OpenSocket, "a {what} connection to {peer}: {ADVICE}{hint}"),
        None => refusal!(OpenSocket, "a {what} socket: {ADVICE}{hint}"),
    })
}

fn has_abstract_name(number: RawFd) -> bool {
    let name = socket_names::of(number, libc::getsockname);
    socket_names::abstract_name(&name).is_some()
}

/// Returns words for a Unix socket that has a name, or is connected to one.
fn named(number: RawFd) -> Option<String> {
    if option(number, libc::SO_ACCEPTCONN) == 1 {
        let name = name(number, libc::getsockname).unwrap_or_default();
        return Some(format!("a listening Unix socket at '{name}'"));
    }
    if let Some(peer) = name(number, libc::getpeername) {
        return Some(format!("a Unix connection to '{peer}'"));
    }
    let name = name(number, libc::getsockname)?;
    Some(format!("a Unix socket named '{name}'"))
}

/// Returns the name of one end of a socket in words, except names that the kernel gives by itself.
fn name(number: RawFd, ask: socket_names::Ask) -> Option<String> {
    let name = socket_names::of(number, ask);
    let given = (!socket_names::is_the_kernels(&name)).then_some(name)?;
    socket_names::in_words(&given)
}
