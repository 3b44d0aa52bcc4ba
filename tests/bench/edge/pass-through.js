// A minimal worker that only forwards. The cost of the edge is its difference from this worker.
export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    return fetch(env.ORIGIN_URL + url.pathname + url.search, request);
  },
};
