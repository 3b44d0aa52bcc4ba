// The least that a worker can do: what the edge adds to a request is what it takes beyond this.
export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    return fetch(env.ORIGIN_URL + url.pathname + url.search, request);
  },
};
