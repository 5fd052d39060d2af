//! Output of `sluicegate serve` at a terminal.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::common::eventually;

/// Output of `sluicegate serve` on a terminal, from its start to its end by Ctrl-C.
fn on_a_terminal(environment: &[(&str, &str)]) -> String {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let theirs = File::options().read(true).write(true).open(name).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_sluicegate"))
        .args(["serve", "--listen-http", "127.0.0.1:0"])
        .args(["--listen-grpc", "127.0.0.1:0", "--listen-resp", "127.0.0.1:0"])
        .env_clear()
        .envs(environment.iter().copied())
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::from(theirs))
        .spawn()
        .unwrap();

    let seen = Arc::new(Mutex::new(String::new()));
    let writer = Arc::clone(&seen);
    let reading = thread::spawn(move || {
        let (mut ours, mut bytes) = (File::from(ours), [0; 4096]);
        // A closed terminal reads as an error instead of the end of the file.
        while let Ok(read @ 1..) = ours.read(&mut bytes) {
            writer.lock().push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    });
    eventually("the start-up message", || {
        seen.lock().contains("Press Ctrl-C to stop.").then_some(())
    });
    let interrupt = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
    let status = eventually("the end", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
    reading.join().unwrap();
    let seen = seen.lock();
    seen.replace("\r\n", "\n")
}

#[test]
fn a_person_gets_a_message_and_colours() {
    let seen = on_a_terminal(&[("TERM", "xterm")]);
    assert!(seen.starts_with("sluicegate ") && seen.contains(", gRPC on 127."), "{seen}");
    assert!(seen.contains("the 9 starter rules in sqlite:sluicegate.db"), "{seen}");
    // The line is the same with and without a built page.
    assert!(seen.contains("\n  page     http://127.0.0.1:"), "{seen}");
    assert!(seen.contains("\u{1b}[") && seen.contains("SIGINT"), "{seen}");
    assert!(!seen.contains("{\"timestamp\""), "{seen}");
}

#[test]
fn no_color_is_honoured() {
    for environment in [[("TERM", "xterm"), ("NO_COLOR", "1")], [("TERM", "dumb"), ("X", "1")]] {
        let seen = on_a_terminal(&environment);
        assert!(seen.contains("SIGINT") && !seen.contains('\u{1b}'), "{seen:?}");
    }
}
