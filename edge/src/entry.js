// Where requests enter, and the short way of those that are only passed on: what has to be asked of the runtime for them.
// What is sent, to whom, what is believed of an answer and what is changed in it, `begin`, `end` and `goOn` say, which are
// src/short_way.rs.
import { __wbg_reset_state, __worker_init_state, begin, end, goOn } from "worker";
import { changedResponse, readAnswer, readHead } from "./headers.js";

// More would be kept of each error than anybody reads.
Error.stackTraceLimit = 100;

const state = __worker_init_state();

/** Wasm that broke down is started anew with the next request. */
function notice(error) {
  if (error instanceof WebAssembly.RuntimeError) {
    console.error("the worker broke down", error);
    state.criticalError = true;
  }
}
addEventListener("error", (event) => notice(event.error));

/** Headers as the runtime takes them: an object without the names that every object has. */
function Bag() {}
Bag.prototype = Object.create(null);

/** What a promise comes to, if it comes to something in time. */
function within(milliseconds, promise) {
  return new Promise((tell) => {
    const timer = setTimeout(tell, milliseconds);
    const settled = (value) => {
      clearTimeout(timer);
      tell(value);
    };
    promise.then(settled, () => settled());
  });
}

/** Asks the counter of requests for a key; a binding that is none fails like one that is out of order. */
async function count(limiter, key) {
  return limiter.limit({ key });
}

/** Milliseconds that the counter of requests may take; it is nearby. */
const LIMIT_PATIENCE = 250;

export default {
  async fetch(request, env, context) {
    if (state.criticalError) {
      __wbg_reset_state();
      state.criticalError = false;
      state.instanceId++;
    }
    try {
      // The number; and if it goes this way: milliseconds of patience, the key to be counted, if it is, method, URL, then
      // headers' names and values.
      const plan = begin(readHead(request), request, env).split("\n");
      const number = Number(plan[0]);
      if (plan.length === 1) return goOn(number, request, env, context);
      if (plan[2] !== "" && env.RATE_LIMITER) {
        const counted = await within(LIMIT_PATIENCE, count(env.RATE_LIMITER, plan[2]));
        if (!counted?.success) return goOn(number, request, env, context);
      }
      const headers = new Bag();
      for (let at = 5; at < plan.length; at += 2) headers[plan[at]] = plan[at + 1];
      const asked = fetch(plan[4], { method: plan[3], headers, redirect: "manual", cache: "no-store" });
      // Who goes on waits for the same promise, and hears of the same fault.
      const response = await within(Number(plan[1]), asked);
      const changes = response && end(number, readAnswer(response));
      return changes === undefined ? goOn(number, request, env, context, asked) : changedResponse(response, changes);
    } catch (error) {
      notice(error);
      throw error;
    }
  },
};
