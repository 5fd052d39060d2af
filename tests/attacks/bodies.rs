//! Bodies that cost more than they should.

use std::fs;
use std::time::Duration;

use sluicegate_tests::hostile::{self, BATCH, Body, GRPC};

use crate::common::{Client, Server};

/// A hostile batch may cost at most this many times as much processor time per byte as an accepted one. Before parsing
/// stopped at its bounds, it was several hundred times; `make bench-bodies` counts instructions, and allows three.
const RATIO_MAX: f64 = 20.0;
/// Processor time that a measurement lasts at least: many of the kernel's ticks.
const MEASURED: Duration = Duration::from_millis(300);
/// Length of the kernel's ticks.
const TICK: Duration = Duration::from_millis(10);

/// Processor time that a service has used.
fn processor_time(server: &Server) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap();
    // The name of the process is in parentheses, and may contain spaces.
    let fields: Vec<_> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks: u32 = fields[11..13].iter().map(|ticks| ticks.parse::<u32>().unwrap()).sum();
    TICK * ticks
}

/// Processor time per byte of sending a body again and again, in nanoseconds.
fn cost_per_byte(server: &Server, client: &mut Client, body: &Body) -> f64 {
    let started = processor_time(server);
    let mut bytes = 0;
    while processor_time(server) - started < MEASURED {
        for _ in 0..5 {
            send(client, body);
            bytes += body.bytes.len();
        }
    }
    (processor_time(server) - started).as_nanos() as f64 / bytes as f64
}

/// Status of the answer.
fn send(client: &mut Client, Body { path, name, bytes }: &Body) -> u16 {
    let json = [("content-type", "application/json")];
    let response = client.request("POST", path, &json, bytes).unwrap();
    let is_problem = response.header("content-type") == Some("application/problem+json");
    assert_eq!(is_problem, response.status == 400, "{path}, {name}: {response:?}");
    response.status
}

/// All are answered with 400 over a connection that lives on, or are accepted.
#[test]
fn a02_hostile_bodies_are_rejected() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    let bodies: Vec<_> = hostile::hostile().into_iter().filter(|body| body.path != GRPC).collect();
    let before = processor_time(&server);
    let statuses: Vec<_> = bodies.iter().map(|body| send(&mut client, body)).collect();
    assert!(statuses.iter().all(|status| [200, 400].contains(status)), "{statuses:?}");
    let rejected = statuses.iter().filter(|status| **status == 400).count();
    let bytes: usize = bodies.iter().map(|body| body.bytes.len()).sum();
    eprintln!(
        "{} hostile bodies of {} KiB, {rejected} of them rejected, took {:?} of processor time",
        bodies.len(),
        bytes / 1024,
        processor_time(&server) - before
    );
    for body in hostile::accepted().iter().filter(|body| body.path != GRPC) {
        assert!([200, 429].contains(&send(&mut client, body)), "{}, {}", body.path, body.name);
    }
}

/// A batch with as many attributes as fit was compared pairwise: 2.2 s for 261 KB.
#[test]
fn a02_a_batch_of_many_attributes_costs_no_more_than_an_ordinary_one() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    let accepted = hostile::accepted().into_iter().find(|body| body.path == BATCH).unwrap();
    let ordinary = cost_per_byte(&server, &mut client, &accepted);
    for body in hostile::hostile().iter().filter(|body| body.path == BATCH).take(2) {
        let hostile = cost_per_byte(&server, &mut client, body);
        let ratio = hostile / ordinary;
        eprintln!("{}: {hostile:.0} ns a byte, {ratio:.2} times an accepted one", body.name);
        assert!(ratio < RATIO_MAX, "{}: {ratio}", body.name);
    }
}
