// Runs the edge, and answers `GET /closures` with the number of Rust closures that exist. wasm-bindgen registers
// each closure so that it is freed after its last use; a closure that leaks stays registered.
let closures = 0;
globalThis.FinalizationRegistry = class extends FinalizationRegistry {
  register(...values) {
    closures += 1;
    super.register(...values);
  }
  unregister(token) {
    const was = super.unregister(token);
    closures -= was ? 1 : 0;
    return was;
  }
};
// Not a static import: it would run before the class is replaced.
const edge = await import("./index.js");

export default {
  fetch(request, ...rest) {
    return new URL(request.url).pathname === "/closures"
      ? new Response(closures)
      : edge.default.fetch(request, ...rest);
  },
};
