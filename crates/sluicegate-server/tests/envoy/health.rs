//! gRPC health, which agrees with `/readyz`, and reflection.

use futures_util::{StreamExt, stream};
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1alpha;
use tonic_reflection::pb::v1alpha::server_reflection_client::ServerReflectionClient as AlphaClient;

use crate::common::{Launch, now};
use crate::envoy::rls::{Rls, descriptor};

const NAME: &str = "envoy.service.ratelimit.v3.RateLimitService";

fn of(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.into() }
}

#[test]
fn it_serves_until_it_is_asked_to_end() {
    let server = Launch::serve(&["--shutdown-grace-ms", "1500"]).with_grpc().start();
    let rls = Rls::of(&server);
    let mut health = HealthClient::new(rls.channel());
    for service in ["", NAME] {
        let answer = rls.wait(health.check(of(service))).unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
    }
    let unknown = rls.wait(health.check(of("nobody"))).unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);

    let mut watching = rls.wait(health.watch(of(NAME))).unwrap().into_inner();
    let mut lost = rls.wait(health.watch(of("nobody"))).unwrap().into_inner();
    let first = rls.wait(watching.message()).unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::Serving);
    let first = rls.wait(lost.message()).unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::ServiceUnknown);

    let asked = now();
    server.signal("TERM");
    let last = rls.wait(watching.message()).unwrap().unwrap();
    assert_eq!(last.status(), ServingStatus::NotServing);
    assert_eq!(rls.wait(watching.message()).unwrap(), None, "watchers do not delay the shutdown");
    // Clients that have not noticed yet are still answered.
    let answer = rls.wait(health.check(of(""))).unwrap().into_inner();
    assert_eq!(answer.status(), ServingStatus::NotServing);
    assert!(rls.ask(&[descriptor(&[("user_id", "42")])]).is_ok());
    drop((health, lost, rls));
    assert_eq!(server.wait().code, Some(0));
    assert!((now() - asked).as_secs() < 4, "{:?}", now() - asked);
}

#[test]
fn open_reflection_streams_do_not_delay_the_shutdown() {
    let server = Launch::serve(&["--shutdown-grace-ms", "300"]).with_grpc().start();
    let rls = Rls::of(&server);
    let list = Some(MessageRequest::ListServices(String::new()));
    let list = ServerReflectionRequest { host: String::new(), message_request: list };
    let asked = stream::iter([list]).chain(stream::pending());
    let mut client = ServerReflectionClient::new(rls.channel());
    let mut answers = rls.wait(client.server_reflection_info(asked)).unwrap().into_inner();
    assert!(rls.wait(answers.message()).unwrap().is_some());
    server.signal("TERM");
    assert_eq!(rls.wait(answers.message()).unwrap(), None);
    drop((answers, client, rls));
    let ended = server.wait();
    assert_eq!(ended.code, Some(0));
}

#[test]
fn it_describes_itself() {
    let server = Launch::serve(&[]).with_grpc().start();
    let rls = Rls::of(&server);
    let ask =
        |message| ServerReflectionRequest { host: String::new(), message_request: Some(message) };
    let asked = vec![
        ask(MessageRequest::ListServices(String::new())),
        ask(MessageRequest::FileContainingSymbol(NAME.into())),
        ask(MessageRequest::FileByFilename("validate/validate.proto".into())),
    ];
    let mut client = ServerReflectionClient::new(rls.channel());
    let asking = client.server_reflection_info(stream::iter(asked));
    let mut answers = rls.wait(asking).unwrap().into_inner();
    let mut next = || rls.wait(answers.message()).unwrap().unwrap().message_response.unwrap();
    let MessageResponse::ListServicesResponse(services) = next() else { panic!("no list") };
    let names: Vec<_> = services.service.iter().map(|service| service.name.as_str()).collect();
    for name in [NAME, "grpc.health.v1.Health"] {
        assert!(names.contains(&name), "{names:?}");
    }
    for what in ["the service", "what it imports"] {
        let MessageResponse::FileDescriptorResponse(files) = next() else { panic!("{what}") };
        assert!(!files.file_descriptor_proto.is_empty(), "{what}");
    }

    let list = v1alpha::server_reflection_request::MessageRequest::ListServices(String::new());
    let list =
        v1alpha::ServerReflectionRequest { host: String::new(), message_request: Some(list) };
    let mut client = AlphaClient::new(rls.channel());
    let asking = client.server_reflection_info(stream::iter(vec![list]));
    let mut answers = rls.wait(asking).unwrap().into_inner();
    assert!(rls.wait(answers.message()).unwrap().is_some());
}
