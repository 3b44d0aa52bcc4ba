//! Waits for an HTTP server on this machine to answer.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

const ANSWER_LIMIT: Duration = Duration::from_secs(2);

const POLL_INTERVAL: Duration = Duration::from_millis(20);

const GOOD: &[u8] = b"HTTP/1.1 200";

pub(super) async fn answers_within(address: SocketAddr, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        let answer = timeout(ANSWER_LIMIT, ask(callable(address))).await;
        if answer.is_ok_and(|answer| answer.is_ok_and(|good| good)) {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        sleep(POLL_INTERVAL).await;
    }
}

async fn ask(address: SocketAddr) -> io::Result<bool> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut head = [0_u8; GOOD.len()];
    stream.read_exact(&mut head).await?;
    Ok(head == GOOD)
}

pub(super) fn url(address: SocketAddr) -> String {
    format!("http://{}", callable(address))
}

fn callable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_all_interfaces_is_called_by_the_local_one() {
        assert_eq!(url("0.0.0.0:80".parse().unwrap()), "http://127.0.0.1:80");
        assert_eq!(url("[::]:80".parse().unwrap()), "http://[::1]:80");
        assert_eq!(url("10.0.0.1:80".parse().unwrap()), "http://10.0.0.1:80");
    }
}
