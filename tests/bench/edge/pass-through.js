// A minimal worker that only forwards: the edge's cost is measured as the difference to it.
export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    return fetch(env.ORIGIN_URL + url.pathname + url.search, request);
  },
};
