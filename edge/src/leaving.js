// What src/leaving.rs has the runtime do.

/** Tells `left` the request's number if its caller leaves before the answer. */
export function watch(request, context, number, left) {
  // Without the compatibility flag enable_request_signal there is none, or one that never speaks.
  request.signal?.addEventListener("abort", () => {
    left(number);
    // Keeps the request's context for another turn: what is broken off now tells its end only then.
    context.waitUntil(scheduler.wait(0));
  });
}
