//! The service under test: `selkie dev` in a directory of its own, with its addresses and keys, its CLI, access to its
//! MariaDB as root, and its end. Knows how the binary is started, but not how it works.

use crate::scratch;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Maximum time of a first start, which creates the demo with its 1,200 posts, on a loaded machine.
const START_MAX: Duration = Duration::from_secs(120);
const STOP_MAX: Duration = Duration::from_secs(40);
const PAUSE: Duration = Duration::from_millis(50);
/// The environment variable that marks the processes of one service. Child processes inherit it.
const MARK: &str = "SELKIE_TEST_MARK";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    With,
    Without,
}

pub(crate) struct Service {
    dir: TempDir,
    mark: String,
    child: Mutex<Child>,
    pub(crate) origin: String,
    pub(crate) edge: Option<String>,
    pub(crate) full_key: String,
    pub(crate) read_key: String,
    pub(crate) database: String,
    pub(crate) project: String,
}

static SHARED: OnceLock<Result<Service, String>> = OnceLock::new();

pub(crate) fn shared() -> &'static Service {
    let edge = if crate::case::edge_is_open() { Edge::With } else { Edge::Without };
    // Cases run in parallel and perhaps on a slow machine, so a request may wait for a connection for a long time.
    let settings = [("SELKIE_POOL_WAIT_TIMEOUT", "60s")];
    match SHARED.get_or_init(|| Service::start(edge, &settings)) {
        Ok(service) => service,
        Err(error) => panic!("the service did not start: {error}"),
    }
}

/// Stops the shared service if it was started, and returns the faults found at its end.
pub(crate) fn stop_shared() -> Vec<String> {
    match SHARED.get() {
        Some(Ok(service)) => service.stop().err().into_iter().collect(),
        Some(Err(error)) => vec![error.clone()],
        None => Vec::new(),
    }
}

impl Service {
    /// Starts a service with these settings on a copy of the [template](scratch::template), and waits until it answers.
    pub(crate) fn start(edge: Edge, settings: &[(&str, &str)]) -> Result<Self, String> {
        let dir = scratch::service_directory()?;
        let copied = Command::new("cp")
            .args(["--archive", "--sparse=always"])
            .args([&scratch::template()?.join("data"), dir.path()])
            .status();
        if !copied.is_ok_and(|status| status.success()) {
            return Err("the template can't be copied".to_owned());
        }
        let service = Self::start_in(dir, edge, settings)?;
        // A server may be configured to sort by fewer bytes than the default of 1,024.
        service.root_sql("SET GLOBAL max_sort_length = 64")?;
        Ok(service)
    }

    /// Starts a service on a data directory that may have been used before.
    pub(crate) fn start_in(dir: TempDir, edge: Edge, settings: &[(&str, &str)]) -> Result<Self, String> {
        let (origin_port, edge_port) = (free_port(), free_port());
        let mark = format!("{}-{}", std::process::id(), origin_port);
        let mut command = Self::command(dir.path(), origin_port, edge, edge_port)?;
        let output = File::create(dir.path().join("output.log")).map_err(|e| e.to_string())?;
        command.stdout(output.try_clone().map_err(|e| e.to_string())?).stderr(output).stdin(Stdio::null());
        command.env(MARK, &mark).envs(settings.iter().copied());
        let child = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
        let mut service = Self {
            dir,
            mark,
            child: Mutex::new(child),
            origin: format!("http://127.0.0.1:{origin_port}"),
            edge: (edge == Edge::With).then(|| format!("http://127.0.0.1:{edge_port}")),
            full_key: String::new(),
            read_key: String::new(),
            database: String::new(),
            project: String::new(),
        };
        service.wait_until_ready()?;
        Ok(service)
    }

    pub(crate) fn command(dir: &Path, origin_port: u16, edge: Edge, edge_port: u16) -> Result<Command, String> {
        let mut command = Command::new(binary()?);
        clear_settings(&mut command);
        command.arg("dev").arg("--data-dir").arg(dir.join("data"));
        command.args(["--listen", &format!("127.0.0.1:{origin_port}"), "--webhook-allow", "127.0.0.0/8"]);
        command.args(["--project-sign-in", "on"]);
        match edge {
            Edge::With => command.args(["--edge-listen", &format!("127.0.0.1:{edge_port}")]),
            Edge::Without => command.arg("--no-edge"),
        };
        command.current_dir(workspace());
        Ok(command)
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + START_MAX;
        loop {
            if let Some(status) = self.child.lock().unwrap().try_wait().map_err(|e| e.to_string())? {
                return Err(format!("it ended at once, {status}; it wrote:\n{}", self.log_tail()));
            }
            if self.read_env() && self.hosts().all(is_alive) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("not ready after {START_MAX:?}; it wrote:\n{}", self.log_tail()));
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn hosts(&self) -> impl Iterator<Item = &str> {
        [Some(self.origin.as_str()), self.edge.as_deref()].into_iter().flatten()
    }

    /// Reads `dev.env`; returns false if it doesn't exist or is incomplete.
    fn read_env(&mut self) -> bool {
        let Ok(text) = fs::read_to_string(self.data_dir().join("dev.env")) else {
            return false;
        };
        let get = |name: &str| {
            let value = text
                .lines()
                .find_map(|line| line.trim_start_matches("export ").strip_prefix(name)?.strip_prefix('='))?;
            Some(value.trim().trim_matches(['"', '\'']).to_owned())
        };
        let all = (get("SELKIE_FULL_KEY"), get("SELKIE_READ_KEY"), get("SELKIE_DATABASE"), get("SELKIE_PROJECT"));
        let (Some(full), Some(read), Some(database), Some(project)) = all else {
            return false;
        };
        (self.full_key, self.read_key, self.database, self.project) = (full, read, database, project);
        if let Some(url) = get("SELKIE_ORIGIN_URL") {
            self.origin = url.trim_end_matches('/').to_owned();
        }
        if let (Some(url), Some(edge)) = (get("SELKIE_EDGE_URL"), &mut self.edge) {
            *edge = url.trim_end_matches('/').to_owned();
        }
        true
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub(crate) fn log(&self) -> String {
        let bytes = fs::read(self.dir.path().join("output.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(crate) fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    pub(crate) fn cli(&self, arguments: &[&str]) -> Output {
        let mut command = self.cli_command(arguments);
        command.output().expect("the CLI runs")
    }

    /// Returns the command that [`Self::cli`] runs, for a case that changes it before running it.
    pub(crate) fn cli_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary().expect("the binary"));
        clear_settings(&mut command);
        command.arg("--data-dir").arg(self.data_dir()).args(arguments).current_dir(workspace()).stdin(Stdio::null());
        command
    }

    /// Runs the CLI and returns its standard output. Panics if it fails.
    pub(crate) fn cli_ok(&self, arguments: &[&str]) -> String {
        let output = self.cli(arguments);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "selkie {arguments:?} failed ({}):\n{out}{err}", output.status);
        out.into_owned()
    }

    pub(crate) fn create_project(&self, name: &str) {
        self.cli_ok(&["project", "create", name]);
    }

    /// Issues a key; `more` are further arguments of the CLI.
    pub(crate) fn create_key(&self, project: &str, access: &str, more: &[&str]) -> IssuedKey {
        self.issue_key(project, &[&["--access", access], more].concat())
    }

    /// Issues a key with a role; `claims` are `name=value`.
    pub(crate) fn create_role_key(&self, project: &str, role: &str, claims: &[String]) -> IssuedKey {
        let claims = claims.iter().flat_map(|claim| ["--claim", claim]);
        self.issue_key(project, &["--role", role].into_iter().chain(claims).collect::<Vec<_>>())
    }

    fn issue_key(&self, project: &str, more: &[&str]) -> IssuedKey {
        let mut arguments = vec!["key", "create", "--project", project, "--json"];
        arguments.extend(more);
        let printed = self.cli_ok(&arguments);
        let token = printed
            .split(|c: char| c.is_whitespace() || c == '"')
            .find(|word| word.starts_with("ey") && word.matches('.').count() == 2)
            .unwrap_or_else(|| panic!("`key create` printed no key:\n{printed}"))
            .to_owned();
        crate::ledger::keep_secret(&token);
        let id = crate::forged::claims(&token)["sub"].as_str().expect("a sub").to_owned();
        IssuedKey { id, token }
    }

    /// Runs statements as MariaDB's root, so that the service doesn't notice them.
    pub(crate) fn root_sql(&self, statements: &str) -> Result<String, String> {
        let output = self.root_command(statements)?.output().map_err(|e| e.to_string())?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    /// Starts statements as MariaDB's root without waiting for them.
    pub(crate) fn root_session(&self, statements: &str) -> Child {
        let mut command = self.root_command(statements).expect("a socket");
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("mariadb")
    }

    fn root_command(&self, statements: &str) -> Result<Command, String> {
        let socket = find_socket(&self.data_dir()).ok_or("no socket in the data directory")?;
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "--user=root", "--batch", "--raw", "--skip-column-names"]);
        command.args(["--default-character-set=utf8mb4"]);
        command.arg(format!("--socket={}", socket.display())).arg(format!("--execute={statements}"));
        command.stdin(Stdio::null());
        Ok(command)
    }

    pub(crate) fn processes(&self) -> Vec<(i32, String)> {
        processes_marked(&self.mark)
    }

    /// The highest memory of the origin so far.
    pub(crate) fn peak_bytes(&self) -> u64 {
        let processes = self.processes();
        let (id, _) = processes.iter().find(|(_, name)| name.contains("selkie dev")).expect("the origin");
        peak_bytes(*id).expect("a peak")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.lock().unwrap().id()).expect("a process id");
        kill(id, signal);
    }

    /// Waits until the main process has ended.
    pub(crate) fn wait(&self) -> Result<ExitStatus, String> {
        let deadline = Instant::now() + STOP_MAX;
        loop {
            if let Some(status) = self.child.lock().unwrap().try_wait().map_err(|e| e.to_string())? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                return Err(format!("it still runs {STOP_MAX:?} after the signal:\n{}", self.log_tail()));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits until all processes of this service have ended.
    pub(crate) fn wait_until_gone(&self, limit: Duration) -> Result<(), String> {
        let deadline = Instant::now() + limit;
        loop {
            let left = self.processes();
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("processes are left behind: {left:?}"));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Sends SIGTERM. The service must then end with success and leave no process.
    pub(crate) fn stop(&self) -> Result<(), String> {
        self.signal(Signal::TERM);
        let status = self.wait()?;
        crate::ledger::read_log(&self.log());
        // A child process may end slightly later than its parent.
        self.wait_until_gone(Duration::from_secs(5))?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("after SIGTERM it ended with {status}:\n{}", self.log_tail()))
        }
    }

    /// Stops the service and returns its directory, with which the service can be started again.
    pub(crate) fn stop_and_keep(self) -> Result<TempDir, String> {
        self.stop()?;
        Ok(self.leave())
    }

    /// Returns the directory of a service that has ended, so that another service can use it.
    pub(crate) fn leave(mut self) -> TempDir {
        std::mem::replace(&mut self.dir, tempfile::tempdir().expect("a directory"))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        for (id, _) in self.processes() {
            kill(id, Signal::KILL);
        }
        let _ = self.child.lock().unwrap().wait();
    }
}

pub(crate) struct IssuedKey {
    pub(crate) id: String,
    pub(crate) token: String,
}

/// Sends a signal. Does nothing if the process has ended.
pub(crate) fn kill(id: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(id) {
        let _ = kill_process(pid, signal);
    }
}

/// Returns the processes with this mark in their environment, without zombies.
/// The highest memory of a process so far; `None` if it has ended.
pub(crate) fn peak_bytes(id: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim_end_matches("kB").trim().parse::<u64>().expect("a number") * 1024)
}

pub(crate) fn processes_marked(mark: &str) -> Vec<(i32, String)> {
    let wanted = format!("{MARK}={mark}");
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    ids.filter_map(|id| {
        let environment = fs::read(format!("/proc/{id}/environ")).ok()?;
        environment.split(|byte| *byte == 0).find(|entry| *entry == wanted.as_bytes())?;
        let command = fs::read(format!("/proc/{id}/cmdline")).ok()?;
        Some((id, String::from_utf8_lossy(&command).replace('\0', " ")))
    })
    .collect()
}

/// Marks a process that a case starts itself, so that [`processes_marked`] finds it.
pub(crate) fn mark(command: &mut Command, mark: &str) {
    command.env(MARK, mark);
}

pub(crate) fn is_alive(host: &str) -> bool {
    let Some(address) = host.strip_prefix("http://") else {
        return false;
    };
    let Ok(answer) =
        crate::raw::status_line_blocking(address, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    else {
        return false;
    };
    answer.starts_with(b"HTTP/1.1 200")
}

pub(crate) fn find_socket(dir: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(dir.join("mariadb")).ok()?.flatten().chain(fs::read_dir(dir).ok()?.flatten());
    entries.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|extension| extension == "sock"))
}

/// Returns the path in `SELKIE_BIN`, or else the binary of the same build profile as these tests (they are in
/// `target/{profile}/deps`): the binary of another profile may be outdated.
pub(crate) fn binary() -> Result<PathBuf, String> {
    if let Ok(path) = std::env::var("SELKIE_BIN") {
        return Ok(PathBuf::from(path));
    }
    let tests = std::env::current_exe().map_err(|error| error.to_string())?;
    tests
        .ancestors()
        .nth(2)
        .map(|profile| profile.join("selkie"))
        .filter(|binary| binary.exists())
        .ok_or_else(|| "no `selkie` in target/: run `make test`, or set SELKIE_BIN".to_owned())
}

pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a parent").to_owned()
}

/// Removes `SELKIE_*` variables of the terminal from the command's environment.
pub(crate) fn clear_settings(command: &mut Command) {
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SELKIE_")) {
        command.env_remove(name);
    }
}

pub(crate) fn free_port() -> u16 {
    const FIRST: u16 = 19_100;
    const COUNT: u16 = 2_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(std::process::id() % u32::from(COUNT)).unwrap_or(0);
    (0..COUNT)
        .map(|_| FIRST + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}
