//! x
use worker::{Context, Env, Result, event, web_sys};

/// Answers one request.
///
/// # Errors
/// None.
#[event(fetch)]
pub async fn fetch(
    request: web_sys::Request,
    env: Env,
    _context: Context,
) -> Result<web_sys::Response> {
    let origin = env.var("ORIGIN_URL")?.to_string();
    let _ = (request, origin);
    Ok(web_sys::Response::new()?)
}
