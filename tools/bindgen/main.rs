//! `bindgen WASM DIRECTORY` generates the JavaScript of the compiled worker: it writes `worker.js`
//! and `worker_bg.wasm` to the directory.

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let wasm = arguments.next().context("usage: bindgen WASM DIRECTORY")?;
    let directory = arguments.next().context("usage: bindgen WASM DIRECTORY")?;
    let mut bindgen = Bindgen::new();
    bindgen.module(true)?.input_path(wasm).out_name("worker").typescript(false);
    // After a panic, the worker resets its state instead of answering all later requests with
    // errors.
    bindgen.reset_state_function(true).force_enable_abort_handler(true);
    bindgen.generate(directory)
}
