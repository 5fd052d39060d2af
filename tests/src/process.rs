//! Child processes that never outlive the test.
//!
//! A child is killed when its [`Process`] is dropped, and by the kernel when the test process dies in any
//! other way (`setpriv --pdeathsig`). That signal is tied to the *thread* that started the child, and test
//! threads are short-lived: so all children are started by one lasting thread.

use std::ffi::OsStr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};

type Job = Box<dyn FnOnce() + Send>;

/// Runs `job` on the thread that lives as long as the process, and returns its result.
fn on_lasting_thread<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> T {
    static JOBS: OnceLock<Mutex<mpsc::Sender<Job>>> = OnceLock::new();
    let jobs = JOBS.get_or_init(|| {
        let (sender, receiver) = mpsc::channel::<Job>();
        std::thread::Builder::new()
            .name("children".to_owned())
            .spawn(move || receiver.into_iter().for_each(|job| job()))
            .expect("a thread can be started");
        Mutex::new(sender)
    });
    let (answer, answered) = mpsc::sync_channel(1);
    let job = Box::new(move || {
        let _ = answer.send(job());
    });
    jobs.lock().send(job).expect("the thread that starts children lives");
    answered.recv().expect("the thread that starts children answers")
}

/// A running child, killed on drop.
#[derive(Debug)]
pub struct Process {
    child: Mutex<Child>,
    pid: Pid,
}

impl Process {
    /// Starts `program` with its standard input closed. `configure` sets arguments, environment and the other
    /// streams.
    ///
    /// # Panics
    ///
    /// If `setpriv` (of util-linux) cannot be run. A missing `program` shows as an early exit.
    pub fn start(program: impl AsRef<OsStr>, configure: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program).stdin(Stdio::null());
        configure(&mut command);
        let child = on_lasting_thread(move || command.spawn())
            .expect("setpriv can be run (it is part of util-linux)");
        let pid = Pid::from_child(&child);
        Self { child: Mutex::new(child), pid }
    }

    /// Process id. It stays the same while setpriv executes the program.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Takes a stream of the child, such as its piped standard output.
    pub fn take<T>(&self, stream: impl FnOnce(&mut Child) -> Option<T>) -> Option<T> {
        stream(&mut self.child.lock())
    }

    /// Exit status; `None` while it is running.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.child.lock().try_wait().expect("the state of our own child is available")
    }

    /// Sends `signal`, unless the process has ended: its id may have been reused.
    pub fn signal(&self, signal: Signal) {
        let mut child = self.child.lock();
        if child.try_wait().expect("the state of our own child is available").is_none() {
            kill_process(self.pid, signal).expect("our own child can be sent a signal");
        }
    }

    /// Kills it (SIGKILL, which also ends a stopped process) and waits until it is gone.
    pub fn kill(&self) {
        let mut child = self.child.lock();
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
