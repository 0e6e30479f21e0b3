//! The OpenAPI document: made of the same table as the addresses are.

use super::BASE;
use super::door::{ApiBack, ApiRoute, ApiShape};
use super::routes::table;
use super::stop::ApiFailure;
use crate::web::answer::Answer;
use axum::body::Body;
use axum::http::{Method, Response, StatusCode};
use std::sync::OnceLock;
use utoipa::openapi::path::{HttpMethod, Operation, OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, ObjectBuilder, OpenApi, OpenApiBuilder, PathItem,
    PathsBuilder, Ref, Required, ResponseBuilder, Type,
};
use utoipa::{PartialSchema, ToSchema};

const JSON: &str = "application/json";
/// How a token is called in the document.
const TOKEN: &str = "token";

/// As JSON.
pub fn text() -> &'static [u8] {
    static TEXT: OnceLock<Vec<u8>> = OnceLock::new();
    TEXT.get_or_init(|| serde_json::to_vec_pretty(&document()).unwrap_or_default())
}

/// The answer that has it: it says nothing that is not in the program, so it takes no token.
pub async fn show() -> Response<Body> {
    Answer::json(StatusCode::OK, text().to_vec()).into_response()
}

fn document() -> OpenApi {
    let mut shapes = vec![(ApiFailure::name().into_owned(), ApiFailure::schema())];
    ApiFailure::schemas(&mut shapes);
    let mut paths = PathsBuilder::new();
    for route in table() {
        let mut add = |shape: &ApiShape| (shape.all)(&mut shapes);
        route.sent.iter().for_each(&mut add);
        if let ApiBack::Object(_, shape) = &route.back {
            add(shape);
        }
        let item = PathItem::new(method(&route.method), operation(&route));
        paths = paths.path(format!("{BASE}{}", route.path), item);
    }
    for (path, said, kind) in [
        ("events", "Tells what happens as it happens: `study` and `line`.", "text/event-stream"),
        ("health", "Answers while the service does.", ""),
        ("openapi.json", "Gives this document.", JSON),
    ] {
        let back = ResponseBuilder::new().description("It is there.");
        let back = if kind.is_empty() { back } else { back.content(kind, ContentBuilder::new().build()) };
        let mut operation = OperationBuilder::new().summary(Some(said)).response("200", back.build());
        if path == "events" {
            operation = operation.security(SecurityRequirement::new(TOKEN, ["studies"]));
        }
        paths = paths.path(format!("{BASE}/{path}"), PathItem::new(HttpMethod::Get, operation.build()));
    }
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    let components = ComponentsBuilder::new()
        .schemas_from_iter(shapes)
        .security_scheme(TOKEN, SecurityScheme::Http(scheme))
        .build();
    let info = InfoBuilder::new()
        .title("The service of an organisation")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("Fields are added within a version of the address, never renamed."))
        .build();
    OpenApiBuilder::new().info(info).paths(paths.build()).components(Some(components)).build()
}

fn method(method: &Method) -> HttpMethod {
    match *method {
        Method::POST => HttpMethod::Post,
        Method::PUT => HttpMethod::Put,
        Method::DELETE => HttpMethod::Delete,
        _ => HttpMethod::Get,
    }
}

fn operation(route: &ApiRoute) -> Operation {
    let string = || ObjectBuilder::new().schema_type(Type::String).build();
    let parameter = |name: &str, place: ParameterIn, required: Required, said: Option<&str>| {
        let parameter = ParameterBuilder::new().name(name).parameter_in(place).required(required);
        parameter.description(said).schema(Some(string())).build()
    };
    let mut operation = OperationBuilder::new().summary(Some(route.said));
    for part in route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
        operation = operation.parameter(parameter(part, ParameterIn::Path, Required::True, None));
    }
    for (name, said) in route.query {
        operation = operation.parameter(parameter(name, ParameterIn::Query, Required::False, Some(said)));
    }
    let shaped = |shape: &ApiShape| {
        ContentBuilder::new().schema(Some(Ref::from_schema_name((shape.name)().into_owned()))).build()
    };
    if let Some(shape) = &route.sent {
        let said = "What comes twice with it is done once.";
        let key = parameter("Idempotency-Key", ParameterIn::Header, Required::False, Some(said));
        let body = RequestBodyBuilder::new().content(JSON, shaped(shape)).required(Some(Required::True));
        operation = operation.parameter(key).request_body(Some(body.build()));
    }
    let (status, back) = match &route.back {
        ApiBack::Object(status, shape) => {
            (status.as_str().to_owned(), ResponseBuilder::new().content(JSON, shaped(shape)))
        }
        ApiBack::File(kinds) => {
            let back = kinds.iter().fold(ResponseBuilder::new(), |back, kind| {
                back.content(*kind, ContentBuilder::new().build())
            });
            ("200".to_owned(), back)
        }
    };
    let failure = Ref::from_schema_name(ApiFailure::name().into_owned());
    let failure = ContentBuilder::new().schema(Some(failure)).build();
    let failure = ResponseBuilder::new().description("It was not done.").content(JSON, failure).build();
    let scopes = route.scopes.iter().map(|scope| scope.name());
    operation
        .response(status, back.description("It is as asked.").build())
        .response("default", failure)
        .security(SecurityRequirement::new(TOKEN, scopes))
        .build()
}
