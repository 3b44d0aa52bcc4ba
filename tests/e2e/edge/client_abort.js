// Forwards requests, and aborts each after the number of milliseconds in the request's header `x-aborts-after-ms`.
export default {
  async fetch(request, env) {
    const controller = new AbortController();
    const time = request.headers.get("x-aborts-after-ms");
    if (time !== null) {
      setTimeout(() => controller.abort(), Number(time));
    }
    try {
      return await env.EDGE.fetch(request, { signal: controller.signal });
    } catch {
      return new Response("aborted", { status: 499 });
    }
  },
};
