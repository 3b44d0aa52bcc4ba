// A minimal worker that only forwards. The difference to this worker is the edge's cost.
export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    return fetch(env.ORIGIN_URL + url.pathname + url.search, request);
  },
};
