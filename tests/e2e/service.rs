//! The service under test: `selkie dev` in a directory of its own, its addresses and keys, its CLI, its MariaDB as
//! root, and its end. Knows how the binary is started; must not know what is inside it.

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

/// A first start makes a database and its 1,000 posts; on a loaded machine that takes a while.
const START_MAX: Duration = Duration::from_secs(120);
const STOP_MAX: Duration = Duration::from_secs(40);
const PAUSE: Duration = Duration::from_millis(50);
/// The variable by which the processes of one service are known, however deep: children inherit it.
const MARK: &str = "SELKIE_TEST_MARK";

/// Whether a service gets a worker in front.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    With,
    Without,
}

/// One running `selkie dev`.
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

/// The service that all cases share, started by the first that asks.
pub(crate) fn shared() -> &'static Service {
    let edge = if crate::case::edge_is_open() { Edge::With } else { Edge::Without };
    // Cases run side by side, on whatever machine: none is about who waits too long for the pool.
    let settings = [("SELKIE_POOL_WAIT_TIMEOUT", "60s")];
    match SHARED.get_or_init(|| Service::start(edge, &settings)) {
        Ok(service) => service,
        Err(error) => panic!("the service did not start: {error}"),
    }
}

/// Stops the shared service, if it was started, and says what is wrong with how it ended.
pub(crate) fn stop_shared() -> Vec<String> {
    match SHARED.get() {
        Some(Ok(service)) => service.stop().err().into_iter().collect(),
        Some(Err(error)) => vec![error.clone()],
        None => Vec::new(),
    }
}

impl Service {
    /// Starts one with these `SELKIE_*` settings on a copy of the [template](scratch::template), and waits until it answers.
    pub(crate) fn start(edge: Edge, settings: &[(&str, &str)]) -> Result<Self, String> {
        let dir = scratch::service_directory()?;
        let copied = Command::new("cp")
            .args(["--archive", "--sparse=always"])
            .args([&scratch::template()?.join("data"), dir.path()])
            .status();
        if !copied.is_ok_and(|status| status.success()) {
            return Err("the template can't be copied".to_owned());
        }
        Self::start_in(dir, edge, settings)
    }

    /// Starts one on a data directory that may have been used before.
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

    /// The command line of `selkie dev`, for cases that start it by themselves.
    pub(crate) fn command(dir: &Path, origin_port: u16, edge: Edge, edge_port: u16) -> Result<Command, String> {
        let mut command = Command::new(binary()?);
        clear_settings(&mut command);
        command.arg("dev").arg("--data-dir").arg(dir.join("data"));
        command.args(["--listen", &format!("127.0.0.1:{origin_port}")]);
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

    /// Reads `dev.env`; false while it is not there or not whole.
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

    /// All that the service wrote to its terminal.
    pub(crate) fn log(&self) -> String {
        let bytes = fs::read(self.dir.path().join("output.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(crate) fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// Runs `selkie --data-dir … <arguments>` against the running service.
    pub(crate) fn cli(&self, arguments: &[&str]) -> Output {
        let mut command = self.cli_command(arguments);
        command.output().expect("the CLI runs")
    }

    /// The same, to be run: in another directory, with other settings, or with something to read.
    pub(crate) fn cli_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary().expect("the binary"));
        clear_settings(&mut command);
        command.arg("--data-dir").arg(self.data_dir()).args(arguments).current_dir(workspace()).stdin(Stdio::null());
        command
    }

    /// Runs the CLI and gives what it printed; panics if it failed.
    pub(crate) fn cli_ok(&self, arguments: &[&str]) -> String {
        let output = self.cli(arguments);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "selkie {arguments:?} failed ({}):\n{out}{err}", output.status);
        out.into_owned()
    }

    /// Makes a project.
    pub(crate) fn create_project(&self, name: &str) {
        self.cli_ok(&["project", "create", name]);
    }

    /// Issues a key, with more arguments if wanted.
    pub(crate) fn create_key(&self, project: &str, access: &str, more: &[&str]) -> IssuedKey {
        let mut arguments = vec!["key", "create", "--access", access, "--project", project, "--json"];
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

    /// Runs statements as MariaDB's root, through its socket: what happens behind the service's back.
    pub(crate) fn root_sql(&self, statements: &str) -> Result<String, String> {
        let socket = find_socket(&self.data_dir()).ok_or("no socket in the data directory")?;
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "--user=root", "--batch", "--raw", "--skip-column-names"]);
        command.args(["--default-character-set=utf8mb4"]);
        command.arg(format!("--socket={}", socket.display())).arg(format!("--execute={statements}"));
        let output = command.stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    /// The ids and command lines of this service's processes, children of children too.
    pub(crate) fn processes(&self) -> Vec<(i32, String)> {
        processes_marked(&self.mark)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.lock().unwrap().id()).expect("a process id");
        kill(id, signal);
    }

    /// Waits for the end of the main process.
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

    /// Waits until no process of this service is left.
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

    /// SIGTERM; then it must end with success and leave nothing behind.
    pub(crate) fn stop(&self) -> Result<(), String> {
        self.signal(Signal::TERM);
        let status = self.wait()?;
        crate::ledger::read_log(&self.log());
        // A helper process may still be on its way out when its parent is gone.
        self.wait_until_gone(Duration::from_secs(5))?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("after SIGTERM it ended with {status}:\n{}", self.log_tail()))
        }
    }

    /// Stops it and gives the directory, so that it can be started again.
    pub(crate) fn stop_and_keep(self) -> Result<TempDir, String> {
        self.stop()?;
        Ok(self.leave())
    }

    /// The directory of a service that is gone, so that another can be started on it.
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

/// A key and its id.
pub(crate) struct IssuedKey {
    pub(crate) id: String,
    pub(crate) token: String,
}

/// Sends a signal; that the process may be gone already is no fault.
pub(crate) fn kill(id: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(id) {
        let _ = kill_process(pid, signal);
    }
}

/// The processes that carry a mark in their environment, and are no zombies.
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

/// The mark of a process that a case starts by itself.
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

/// The binary built with the same profile as these tests, which lie in `target/{profile}/deps`; or
/// `SELKIE_BIN`. One of another profile may be of older code.
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

/// The root of the workspace.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a parent").to_owned()
}

/// Settings of the terminal that the tests run in must not reach the service.
pub(crate) fn clear_settings(command: &mut Command) {
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SELKIE_")) {
        command.env_remove(name);
    }
}

/// A port on which nothing listens now. Runs side by side begin at different places.
pub(crate) fn free_port() -> u16 {
    const FIRST: u16 = 19_100;
    const COUNT: u16 = 200;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(std::process::id() % u32::from(COUNT)).unwrap_or(0);
    (0..COUNT)
        .map(|_| FIRST + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}
