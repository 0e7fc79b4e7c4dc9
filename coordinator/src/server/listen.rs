//! Opens the coordinator's socket, and finds the addresses at which others can reach it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use stillpoint_protocol::Silence;
use stillpoint_protocol::lasting::end_when_silent;
use tokio::net::{TcpListener, TcpStream};

/// The most addresses that other hosts are told to try.
const MAX_ADDRESSES: usize = 6;

/// A socket that accepts connections.
pub struct Listening(TcpListener);

impl Listening {
    /// Accepts the next connection.
    pub(super) async fn accept(&self, silence: Silence) -> io::Result<TcpStream> {
        let (stream, _) = self.0.accept().await?;
        stream.set_nodelay(true)?;
        end_when_silent(&stream, silence)?;
        Ok(stream)
    }
}

/// Listens on a port of the system's choice, on the loopback interface only, or on all interfaces.
pub async fn listen(one_host: bool) -> io::Result<Listening> {
    if one_host {
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        return Ok(Listening(TcpListener::bind(loopback).await?));
    }
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    match TcpListener::bind(any).await {
        Ok(listener) => Ok(Listening(listener)),
        Err(_) => Ok(Listening(
            TcpListener::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))).await?,
        )),
    }
}

/// The addresses ("host:port") at which the socket can be reached, the likeliest first.
pub fn addresses(listening: &Listening, one_host: bool) -> io::Result<Vec<String>> {
    let local = listening.0.local_addr()?;
    if one_host {
        return Ok(vec![local.to_string()]);
    }
    let mut addresses: Vec<String> = interface_addresses()
        .into_iter()
        .filter(|address| address.is_ipv4() == local.is_ipv4())
        .take(MAX_ADDRESSES)
        .map(|address| SocketAddr::new(address, local.port()).to_string())
        .collect();
    // The name is the last resort: it may mean another interface, or be unknown on other hosts.
    let name = stillpoint_protocol::job_file::host_name();
    addresses.push(format!("{name}:{}", local.port()));
    Ok(addresses)
}

/// Addresses of interfaces that are up and lead to other hosts.
fn interface_addresses() -> Vec<IpAddr> {
    let Ok(interfaces) = getifaddrs() else {
        return vec![];
    };
    interfaces
        .filter(|interface| {
            let flags = interface.flags;
            flags.contains(InterfaceFlags::IFF_UP) && !flags.contains(InterfaceFlags::IFF_LOOPBACK)
        })
        .filter_map(|interface| {
            let address = interface.address?;
            let ip = match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
                (Some(v4), _) => IpAddr::V4(v4.ip()),
                (_, Some(v6)) => IpAddr::V6(v6.ip()),
                _ => return None,
            };
            // Link-local addresses mean nothing without an interface's name.
            let link_local = match ip {
                IpAddr::V4(v4) => v4.is_link_local(),
                IpAddr::V6(v6) => v6.is_unicast_link_local(),
            };
            (!link_local).then_some(ip)
        })
        .collect()
}
