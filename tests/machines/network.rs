//! A virtual network whose machines can be cut off from each other. Each machine is a network
//! namespace; bridges connect them. This process must be in a network namespace of its own (see
//! [`enter`]), so that the host's network is not changed and the kernel removes everything when the
//! processes end.

use std::{
    fs,
    net::Ipv4Addr,
    path::Path,
    process::{Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use tokio::time::sleep;

use crate::{process::Started, server::Site};

/// The environment variable that [`enter`] sets for the process in the new namespace.
const MARK: &str = "SELKIE_TEST_NETWORK";
const START_MAX: Duration = Duration::from_secs(10);

/// The bridge over which clients reach the machines. This process has the address [`HOME`] on it.
const CLIENTS: &str = "selkie-clients";
/// The bridge over which the nodes of a database cluster reach each other.
const GROUP: &str = "selkie-group";

/// The address at which all machines reach this process and the programs in its namespace.
pub const HOME: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

/// One of a machine's two network links. Each can be cut by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    Clients,
    Group,
}

#[derive(Debug)]
pub struct Network {
    machines: Vec<Started>,
}

impl Network {
    /// Creates the two bridges in this process's namespace, without machines.
    pub fn create() -> Result<Self> {
        ip(&["link", "set", "lo", "up"])?;
        for bridge in [CLIENTS, GROUP] {
            ip(&["link", "add", bridge, "type", "bridge"])?;
            ip(&["link", "set", bridge, "up"])?;
        }
        ip(&["address", "add", &format!("{HOME}/24"), "dev", CLIENTS])?;
        Ok(Self { machines: Vec::new() })
    }

    /// Adds a machine with a link to each bridge, and returns its site. Machines are numbered from
    /// 0, in the order of these calls.
    pub async fn add(&mut self) -> Result<Site> {
        let number = self.machines.len();
        let machine = Started::new(Path::new("unshare"), |command| {
            command.args(["--net", "--", "sleep", "infinity"]).stdout(Stdio::null());
        })?;
        let pid = machine.pid();
        self.machines.push(machine);
        wait_for_namespace(pid).await?;
        inside(pid, &["link", "set", "lo", "up"])?;
        let last = u8::try_from(number + 11)?;
        let (address, group) = (Ipv4Addr::new(10, 77, 0, last), Ipv4Addr::new(10, 77, 1, last));
        for (link, bridge, address) in [(Link::Clients, CLIENTS, address), (Link::Group, GROUP, group)] {
            let outer = interface(number, link);
            let namespace = pid.to_string();
            ip(&["link", "add", &outer, "type", "veth", "peer", "name", bridge, "netns", &namespace])?;
            ip(&["link", "set", &outer, "master", bridge, "up"])?;
            inside(pid, &["address", "add", &format!("{address}/24"), "dev", bridge])?;
            inside(pid, &["link", "set", bridge, "up"])?;
        }
        Ok(Site { address, group, namespace: Some(pid) })
    }

    /// Cuts a machine's link: packets are lost, but neither side closes its connections.
    pub fn cut(&self, machine: usize, link: Link) -> Result<()> {
        ip(&["link", "set", &interface(machine, link), "down"])
    }

    pub fn mend(&self, machine: usize, link: Link) -> Result<()> {
        ip(&["link", "set", &interface(machine, link), "up"])
    }
}

fn interface(machine: usize, link: Link) -> String {
    match link {
        Link::Clients => format!("clients-{machine}"),
        Link::Group => format!("group-{machine}"),
    }
}

/// Returns whether this process is in a network namespace that [`enter`] made.
pub fn is_own() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Runs this program again with the same arguments in a new network namespace, and returns its exit
/// status. Returns `None` if this user may create no namespace with bridges, not even as root of a
/// new user namespace.
pub fn enter() -> Result<Option<ExitStatus>> {
    let ways: [&[&str]; 2] = [&["--net"], &["--user", "--map-root-user", "--net"]];
    for way in ways {
        let probe = "ip link add bridge0 type bridge && ip link add veth0 type veth peer name veth1";
        let tried = Command::new("unshare")
            .args(way)
            .args(["--", "sh", "-c", probe])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if tried.is_ok_and(|status| status.success()) {
            let status = Command::new("setpriv")
                .args(["--pdeathsig", "KILL", "--", "unshare"])
                .args(way)
                .arg("--")
                .arg(std::env::current_exe()?)
                .args(std::env::args_os().skip(1))
                .env(MARK, "own")
                .status()?;
            return Ok(Some(status));
        }
    }
    Ok(None)
}

async fn wait_for_namespace(pid: u32) -> Result<()> {
    let own = fs::read_link("/proc/self/ns/net")?;
    let deadline = Instant::now() + START_MAX;
    while fs::read_link(format!("/proc/{pid}/ns/net"))? == own {
        if Instant::now() > deadline {
            bail!("`unshare --net` makes no network namespace");
        }
        sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

fn ip(arguments: &[&str]) -> Result<()> {
    run(Command::new("ip").args(arguments))
}

fn inside(pid: u32, arguments: &[&str]) -> Result<()> {
    run(Command::new("nsenter").arg(format!("--net=/proc/{pid}/ns/net")).args(["--", "ip"]).args(arguments))
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().context("ip (Debian: apt install iproute2)")?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
