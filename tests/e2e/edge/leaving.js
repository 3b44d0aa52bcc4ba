// Hands requests on, and breaks them off after as many milliseconds as they say.
export default {
  async fetch(request, env) {
    const controller = new AbortController();
    const patience = request.headers.get("x-leaves-after-ms");
    if (patience !== null) {
      setTimeout(() => controller.abort(), Number(patience));
    }
    try {
      return await env.EDGE.fetch(request, { signal: controller.signal });
    } catch {
      return new Response("left", { status: 499 });
    }
  },
};
